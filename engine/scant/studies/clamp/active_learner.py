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
ENOUGH = 10  # labels of each class that "rare class first" looks for
WIDE = 10.0  # median amplitude beside a linear part: on 1 : 20 better than 3 by 0.04 of F1
UNIT = 1.0  # inverse strength of logistic regression's prior, as scikit-learn has it


def start_of(
    label: Int[np.ndarray, " n"],
    askable: Int[np.ndarray, " a"],
    count: int,
    seed: int,
    repeat: int,
    sought: int = 1,
) -> tuple[Int[np.ndarray, " s"], Int[np.ndarray, " a"]]:
    """The rows that a session begins with, and the order of all at random.

    More than `count` where those lack the class of interest or all have it: an expert goes on until
    both were seen.
    """
    order = np.random.default_rng([seed, 63, repeat]).permutation(askable)
    shows = label[order] == sought
    first = [int(np.flatnonzero(shows == which)[0]) + 1 for which in (False, True)]
    return order[: max(count, *first)], order


class ActiveLearner:
    """One Gaussian process, or one a class, and one expert.

    Attributes:
        classes: How many there are; the last is looked for.
        rows: Labeled so far, in order; a number beyond the pool's rows is a placed patch.
        model: Of them; None before the first fit.
        like: A model of other labels, from whose kernel the first fit begins.
        each: Probability of each class, of every row of the pool, after the last fit.
        pending: Rows to be asked about next.
        evidence: Log evidence, nats a label.
        flips: Share of the askable rows whose class the last fit changed; NaN after the first.
        change: Of F1 by the last fit, as predictions tell (`stopping.change`); NaN after the first.
        expected: How many the pending ones are expected to change.
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
        """The likeliest class of every row; of two equally likely ones the first."""
        return np.asarray(self.each.cpu().numpy().argmax(1))

    @property
    def counts(self) -> list[int]:
        """Labels of each class."""
        return [self.labels.count(c) for c in range(self.classes)]

    def answer(self, rows: list[int], labels: list[int]) -> None:
        """Labels of the expert, not yet learned from."""
        self.rows += rows
        self.labels += labels

    def fit(self) -> None:
        """Learn from the labels that have come since the last fit, beginning there."""
        last = self.model or self.like
        known = 0 if self.model is None else len(self.model.x)
        x, label = self._training_data(len(self.rows))
        self.model = self._built(x, label) if last is None else last.refit(x, label)
        value = self.model.fit(FIRST if last is None else FURTHER)
        self.evidence = float(value.detach()) / len(self.rows)
        before, old = self.each, self.predicted
        self.each = probabilities(self.model, self.x)
        self.flips = self.change = float("nan")
        if known:
            at = torch.as_tensor(self.askable, device=self.x.device)
            self.flips = stopping.flips(before[at], self.each[at])
            self.change = self.changed(old)

    def changed(self, before: Int[np.ndarray, " n"]) -> float:
        """Change of F1 from earlier predictions, on the rows that may be asked about."""
        at, sought = self.askable, self.classes - 1
        return stopping.change(before[at] == sought, self.predicted[at] == sought)

    def predicted_from(self, count: int) -> Int[np.ndarray, " n"]:
        """Classes as predicted from the first labels alone, with the kernel of all."""
        assert self.model is not None
        shorter = self.model.refit(*self._training_data(count))
        return np.asarray(probabilities(shorter, self.x).cpu().numpy().argmax(1))

    def _built(self, x: Tensor, label: Tensor) -> Classifier:
        s = self.settings
        linear = s.kernel == KERNELS[1]
        prior = (Prior(amplitude=WIDE) if linear else Prior()) if s.hyperprior else None
        return built(x, label, self.classes, s.link, s.ard, prior, linear)

    def _training_data(self, count: int) -> tuple[Float[Tensor, "k q"], Int[Tensor, " k"]]:
        """The first rows that were labeled, and their labels."""
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
        """Rows that may still be asked about."""
        left = np.setdiff1d(self.askable, self.rows, assume_unique=True)
        return torch.as_tensor(left, device=self.x.device)

    def ask(self, k: int) -> list[int]:
        """The next rows to ask about, kept in `pending`."""
        free = self.free()
        if self.method == "random" and self.order is not None:
            left = self.order[~np.isin(self.order, self.rows)]
            self.pending = [int(i) for i in left[:k]]
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
        """The class of which more labels are sought before any others; None: of none."""
        return acquisition.sought(self.counts, ENOUGH)

    def _expected(self, free: Tensor, pool: CandidatePool, picks: Tensor) -> float:
        """Predictions of the rows not asked about that the picked labels are expected to change.

        The sum over the labels, each by itself: the most that they may come to.
        """
        if not len(picks) or self.model is None:
            return 0.0
        models, total = parts_of(self.model), 0.0
        means, variances = (v.reshape(len(free), -1).unbind(1) for v in pool[1:])
        for model, mean, variance in zip(models, means, variances):
            K = acquisition.posterior_covariance(model, self.x[free], self.x[free[picks]])
            flips = stopping.expected_flips(model, mean, K, mean[picks], variance[picks])
            total += float(flips.sum())
        return total if len(models) == 1 else total / 2  # a row leaves one class for another

    def reasons(self, rows: list[int]) -> list[str]:
        """Why each of some rows is asked about."""
        if self.model is None or len(set(self.labels)) < 2:
            return ["drawn at random, until both classes have labels"] * len(rows)
        at = torch.tensor(rows, dtype=torch.long, device=self.x.device)
        near = acquisition.nearness(self.model, self.x[at], self.model.x)
        last = parts_of(self.model)[-1]
        left = last.latent(self.x[at])[1] / last.variance(self.x[at]).detach()
        wanted = "" if self.sought is None else self.names[self.sought]
        p = self.p[at] if self.sought is None else self.each[at, self.sought]
        if self.method != acquisition.RARE:
            p = self.p[at]
        return acquisition.reasons(p, near, left, self.method, self.settings.delta, wanted)

    def state(self) -> Tensors:
        """All that goes on from here bit by bit."""
        own: Tensors = {
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
                own |= {f"{name}kernel.{k}": v for k, v in model.kernel.state_dict().items()}
                own[f"{name}a"] = model.a
        return own

    def load(self, state: Tensors) -> None:
        """As `state` says."""
        self.rows, self.labels = state["rows"].tolist(), state["labels"].tolist()
        self.pending = state["pending"].tolist()
        p = state["p"].to(self.x)
        self.each = torch.stack([1 - p, p], 1) if p.ndim == 1 else p
        self.evidence, self.flips, self.expected, *change = state["measures"].tolist()
        self.change = change[0] if change else float("nan")  # models kept before it was measured
        self.generator.set_state(state["generator"].cpu())
        self.model = None
        first = f"{self._places()[0]}a"
        if first in state:
            self.model = self._built(*self._training_data(len(state[first])))
            for name, model in zip(self._places(), parts_of(self.model)):
                model.kernel.load_state_dict(part(state, f"{name}kernel."))
                model.a = state[f"{name}a"].to(self.x)

    def _places(self) -> list[str]:
        """Before the names of what is kept of each binary model."""
        return [""] if self.classes == 2 else [f"{c}." for c in range(self.classes)]


class Linear:
    """Logistic regression in place of the Gaussian process, which asks as the settings say."""

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
        """Learn from the rows labeled so far."""
        known = label[self.rows]
        made = LogisticRegression(C=UNIT, max_iter=1000).fit(self.x[self.rows], known)
        self.each = np.zeros_like(self.each)
        self.each[:, made.classes_] = made.predict_proba(self.x)
        self.counts = np.bincount(known, minlength=self.classes).tolist()

    def ask(self, k: int, method: str, diversity: str) -> list[int]:
        """Rows by the same acquisition, spread out as those of the Gaussian process are.

        What needs a latent function's variance, or a band that may be empty, gives way to the least
        confident rows.
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
