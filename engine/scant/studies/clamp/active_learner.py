"""Active learning sessions: labeled rows, their classifier, and the next queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from scant.models.laplace import acquisition, stopping
from scant.models.laplace.acquisition import CandidatePool
from scant.models.laplace.classifier import Prior
from scant.models.laplace.one_vs_rest import (
    Classifier,
    built,
    parts_of,
    probabilities,
)
from scant.studies.clamp.settings import KERNELS, ClampSettings
from scant.studies.protocol import Tensors, part

FIRST, FURTHER = 40, 6  # steps of L-BFGS with the first labels, and with more
# Labels of each class that end the search of "rare class first". Over 80 sessions of eleven pools
# it and "least confident" have the same area under F1 (0.719, 0.722). In 25 sessions BALD and
# random have 0.015 and 0.013 less (0.739, 0.741, 0.754), and an acquisition chosen again and again
# by sessions simulated on the labeled rows was no better (-0.002 +- 0.001).
ENOUGH = 10
WIDE = 10.0  # prior median amplitude with a linear part; at 1 : 20 better than 3 by 0.04 of F1
UNIT = 1.0  # inverse strength of logistic regression's prior, scikit-learn's default


def start_of(
    label: Int[np.ndarray, " n"],
    askable: Int[np.ndarray, " a"],
    count: int,
    seed: int,
    repeat: int,
    sought: int = 1,
) -> tuple[Int[np.ndarray, " s"], Int[np.ndarray, " a"]]:
    """Initial rows of a session, and all rows in random order.

    There are more than `count` if these lack the class of interest or all have it: an expert labels
    until both occur.
    """
    order = np.random.default_rng([seed, 63, repeat]).permutation(askable)
    shows = label[order] == sought
    first = [int(np.flatnonzero(shows == which)[0]) + 1 for which in (False, True)]
    return order[: max(count, *first)], order


class ActiveLearner:
    """Active learner with one Gaussian process, or one per class.

    Attributes:
        classes: Number of classes; the last is the class of interest.
        rows: Rows labeled so far, in order; numbers beyond the pool's rows are placed patches.
        model: Model of these labels; None before the first fit.
        like: Model of other labels, whose kernel initializes the first fit.
        each: Probability of each class, of every row of the pool, after the last fit.
        pending: Rows to query next.
        evidence: Log evidence, nats a label.
        flips: Share of the askable rows whose class the last fit changed; NaN after the first.
        change: Estimated change of F1 by the last fit (`stopping.change`); NaN after the first.
        expected: Number of predictions that the pending rows are expected to change.
    """

    def __init__(
        self,
        settings: ClampSettings,
        x: Float[Tensor, "n q"],
        askable: Int[np.ndarray, " a"],
        seed: int,
        acquisition: str,
        order: Int[np.ndarray, " a"] | None = None,
        names: Sequence[str] = ("", ""),
        placed: Mapping[int, Float[Tensor, " q"]] | None = None,
    ) -> None:
        self.settings, self.x, self.askable = settings, x, askable
        self.placed = {} if placed is None else placed
        self.method, self.order, self.names = acquisition, order, names
        self.generator = torch.Generator().manual_seed(seed)
        self.rows: list[int] = []
        self.labels: list[int] = []
        self.model: Classifier | None = None
        self.like: Classifier | None = None
        k = len(names)
        self.each = torch.full((len(x), k), 1 / k, dtype=torch.float64, device=x.device)
        self.pending: list[int] = []
        self.evidence, self.flips, self.expected = float("nan"), float("nan"), 0.0
        self.change = float("nan")

    @property
    def classes(self) -> int:
        return len(self.names)

    @property
    def p(self) -> Float[Tensor, " n"]:
        """Probability of the class of interest."""
        return self.each[:, -1]

    @property
    def predicted(self) -> Int[np.ndarray, " n"]:
        """Most probable class of every row; the first one in a tie."""
        return np.asarray(self.each.cpu().numpy().argmax(1))

    @property
    def counts(self) -> list[int]:
        """Labels of each class."""
        return [self.labels.count(c) for c in range(self.classes)]

    def answer(self, rows: list[int], labels: list[int]) -> None:
        """Add labels of the expert, without a fit."""
        self.rows += rows
        self.labels += labels

    def fit(self) -> None:
        """Fit to all labels, starting from the last fit."""
        last = self.model or self.like
        n_fitted = 0 if self.model is None else len(self.model.x)
        x, label = self._training_data(len(self.rows))
        self.model = self._built(x, label) if last is None else last.refit(x, label)
        value = self.model.fit(FIRST if last is None else FURTHER)
        self.evidence = float(value.detach()) / len(self.rows)
        before, old = self.each, self.predicted
        self.each = probabilities(self.model, self.x)
        self.flips = self.change = float("nan")
        if n_fitted:
            at = torch.as_tensor(self.askable, device=self.x.device)
            self.flips = stopping.flips(before[at], self.each[at])
            self.change = self.changed(old)

    def changed(self, before: Int[np.ndarray, " n"]) -> float:
        """Change of F1 from earlier predictions, on the rows that can be queried."""
        at, sought = self.askable, self.classes - 1
        return stopping.change(before[at] == sought, self.predicted[at] == sought)

    def predicted_from(self, count: int) -> Int[np.ndarray, " n"]:
        """Classes predicted from the first labels alone, with the kernel of all."""
        assert self.model is not None
        model = self.model.refit(*self._training_data(count))
        return np.asarray(probabilities(model, self.x).cpu().numpy().argmax(1))

    def _built(self, x: Tensor, label: Tensor) -> Classifier:
        s = self.settings
        linear = s.kernel == KERNELS[1]
        prior = (Prior(amplitude=WIDE) if linear else Prior()) if s.hyperprior else None
        return built(x, label, self.classes, s.link, s.ard, prior, linear)

    def _training_data(self, count: int) -> tuple[Float[Tensor, "k q"], Int[Tensor, " k"]]:
        """First labeled rows, and their labels."""
        label = torch.tensor(self.labels[:count], device=self.x.device).long()
        return self.inputs(self.rows[:count]), label

    def inputs(self, rows: Sequence[int]) -> Float[Tensor, "k q"]:
        """Components of rows of the pool and of placed patches."""
        n = len(self.x)
        at = torch.tensor([r if r < n else 0 for r in rows], dtype=torch.long)
        x = self.x[at.to(self.x.device)]
        for i, row in enumerate(rows):
            if row >= n:
                x[i] = self.placed[row]
        return x

    def free(self) -> Int[Tensor, " f"]:
        """Rows that can still be queried."""
        rows = np.setdiff1d(self.askable, self.rows, assume_unique=True)
        return torch.as_tensor(rows, device=self.x.device)

    def ask(self, k: int) -> list[int]:
        """Choose the next rows to query, and store them in `pending`."""
        free = self.free()
        if self.method == "random" and self.order is not None:
            unlabeled = self.order[~np.isin(self.order, self.rows)]
            self.pending = [int(i) for i in unlabeled[:k]]
            return self.pending
        assert self.model is not None
        s, mean, variance = self.settings, *self.model.latent(self.x[free])
        p = self.each if self.classes > 2 else self.p
        pool = CandidatePool(p[free], mean, variance)
        score = acquisition.scores(self.method, pool, s.link, self.generator, s.delta, self.sought)
        diversity = "none" if self.method == "random" else s.diverse
        picks = acquisition.chosen(score, self.x[free], k, diversity, self.model)
        self.pending = free[picks].tolist()
        self.expected = self._expected(free, pool, picks)
        return self.pending

    @property
    def sought(self) -> int | None:
        """Class to query before any others; None if there is none."""
        return acquisition.sought(self.counts, ENOUGH)

    def _expected(self, free: Tensor, pool: CandidatePool, picks: Tensor) -> float:
        """Number of predictions of other rows that the picked labels are expected to change.

        This is the sum over single labels, an upper bound.
        """
        if not len(picks) or self.model is None:
            return 0.0
        models, total = parts_of(self.model), 0.0
        means, variances = (v.reshape(len(free), -1).unbind(1) for v in pool[1:])
        for model, mean, variance in zip(models, means, variances):
            K = acquisition.posterior_covariance(model, self.x[free], self.x[free[picks]])
            flips = stopping.expected_flips(model, mean, K, mean[picks], variance[picks])
            total += float(flips.sum())
        return total if len(models) == 1 else total / 2  # each change counts in two classes

    def reasons(self, rows: list[int]) -> list[str]:
        """Reason for the query of each row."""
        if self.model is None or len(set(self.labels)) < 2:
            return ["drawn at random, until both classes have labels"] * len(rows)
        at = torch.tensor(rows, dtype=torch.long, device=self.x.device)
        nearness = acquisition.nearness(self.model, self.x[at], self.model.x)
        last = parts_of(self.model)[-1]
        variance_ratio = last.latent(self.x[at])[1] / last.variance(self.x[at]).detach()
        sought_name = "" if self.sought is None else self.names[self.sought]
        p = self.p[at] if self.sought is None else self.each[at, self.sought]
        if self.method != acquisition.RARE:
            p = self.p[at]
        return acquisition.reasons(
            p, nearness, variance_ratio, self.method, self.settings.delta, sought_name
        )

    def state(self) -> Tensors:
        """State from which the session continues exactly."""
        tensors: Tensors = {
            "rows": torch.tensor(self.rows, dtype=torch.long),
            "labels": torch.tensor(self.labels, dtype=torch.long),
            "pending": torch.tensor(self.pending, dtype=torch.long),
            "p": self.p.clone() if self.classes == 2 else self.each,
            "measures": torch.tensor(
                [self.evidence, self.flips, self.expected, self.change], dtype=torch.float64
            ),
            "generator": self.generator.get_state(),
        }
        if self.model is not None:
            for name, model in zip(self._places(), parts_of(self.model)):
                tensors |= {f"{name}kernel.{k}": v for k, v in model.kernel.state_dict().items()}
                tensors[f"{name}a"] = model.a
        return tensors

    def load(self, state: Tensors) -> None:
        """Restore a `state`."""
        self.rows, self.labels = state["rows"].tolist(), state["labels"].tolist()
        self.pending = state["pending"].tolist()
        p = state["p"].to(self.x)
        self.each = torch.stack([1 - p, p], 1) if p.ndim == 1 else p
        self.evidence, self.flips, self.expected, *change = state["measures"].tolist()
        self.change = change[0] if change else float("nan")  # absent in older models
        self.generator.set_state(state["generator"].cpu())
        self.model = None
        first = f"{self._places()[0]}a"
        if first in state:
            self.model = self._built(*self._training_data(len(state[first])))
            for name, model in zip(self._places(), parts_of(self.model)):
                model.kernel.load_state_dict(part(state, f"{name}kernel."))
                model.a = state[f"{name}a"].to(self.x)

    def _places(self) -> list[str]:
        """Prefixes of the tensors of each binary model."""
        return [""] if self.classes == 2 else [f"{c}." for c in range(self.classes)]


class Linear:
    """Active learner with logistic regression in place of the Gaussian process."""

    def __init__(
        self, x: Float[np.ndarray, "n q"], askable: Int[np.ndarray, " a"], classes: int
    ) -> None:
        self.x, self.askable, self.classes = x, askable, classes
        self.rows: list[int] = []
        self.each = np.full((len(x), classes), 1 / classes)
        self.counts = [0] * classes

    @property
    def predicted(self) -> Int[np.ndarray, " n"]:
        return np.asarray(self.each.argmax(1))

    def fit(self, label: Int[np.ndarray, " n"]) -> None:
        """Fit to the rows labeled so far."""
        labels = label[self.rows]
        model = LogisticRegression(C=UNIT, max_iter=1000).fit(self.x[self.rows], labels)
        self.each = np.zeros_like(self.each)
        self.each[:, model.classes_] = model.predict_proba(self.x)
        self.counts = np.bincount(labels, minlength=self.classes).tolist()

    def ask(self, k: int, method: str, diversity: str) -> list[int]:
        """Next rows by the same acquisition, with diversity as for the Gaussian process.

        The least confident rows replace acquisitions that need a latent function's variance, or a
        band that may be empty.
        """
        free = np.setdiff1d(self.askable, self.rows)
        p = torch.as_tensor(self.each[free] if self.classes > 2 else self.each[free, 1])
        rare = method == acquisition.RARE
        pool = CandidatePool(p, torch.logit(p), torch.zeros_like(p))
        score = acquisition.scores(
            acquisition.RARE if rare else acquisition.LEAST, pool, "logistic", torch.Generator(),
            sought=acquisition.sought(self.counts, ENOUGH) if rare else None,
        )  # fmt: skip
        spread = "none" if diversity == "none" else "distance"
        picks = acquisition.chosen(score, torch.as_tensor(self.x[free]), k, spread)
        return [int(i) for i in free[picks.numpy()]]
