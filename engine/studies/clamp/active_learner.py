"""Active learning sessions: labeled rows, their classifier, and the next queries."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from scant.models.laplace import acquisition, stopping
from scant.models.laplace.acquisition import CandidatePool
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.studies.clamp.entry import ClampSettings
from scant.studies.protocol import Tensors, part
from sklearn.linear_model import LogisticRegression
from torch import Tensor

FIRST, FURTHER = 40, 6  # steps of L-BFGS with the first labels, and with more
UNIT = 1.0  # inverse strength of logistic regression's prior, as scikit-learn has it


def start_of(
    label: Int[np.ndarray, " n"], askable: Int[np.ndarray, " a"], count: int, seed: int, repeat: int
) -> tuple[Int[np.ndarray, " s"], Int[np.ndarray, " a"]]:
    """The rows that a session begins with, and the order of all at random.

    More than `count` where those are all of one class: an expert goes on until both were seen.
    """
    order = np.random.default_rng([seed, 63, repeat]).permutation(askable)
    first = [int(np.flatnonzero(label[order] == c)[0]) + 1 for c in (0, 1)]
    return order[: max(count, *first)], order


class ActiveLearner:
    """One Gaussian process, one expert.

    Attributes:
        rows: Labeled so far, in order.
        model: Of them; None before the first fit.
        like: A model of other labels, from whose kernel the first fit begins.
        p: Of every row of the pool, after the last fit.
        pending: Rows to be asked about next.
        evidence: Log evidence, nats a label.
        flips: Share of the askable rows whose class the last fit changed; NaN after the first.
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
    ) -> None:
        self.settings, self.x, self.askable = settings, x, askable
        self.method, self.order = acquisition, order
        self.generator = torch.Generator().manual_seed(seed)
        self.rows: list[int] = []
        self.labels: list[int] = []
        self.model: LaplaceGPC | None = None
        self.like: LaplaceGPC | None = None
        self.p = torch.full((len(x),), 0.5, dtype=torch.float64, device=x.device)
        self.pending: list[int] = []
        self.evidence, self.flips, self.expected = float("nan"), float("nan"), 0.0

    def answer(self, rows: list[int], labels: list[int]) -> None:
        """Labels of the expert, not yet learned from."""
        self.rows += rows
        self.labels += labels

    def fit(self) -> None:
        """Learn from the labels that have come since the last fit, beginning there."""
        s, last = self.settings, self.model or self.like
        known = 0 if self.model is None else len(self.model.y)
        x, label = self._training_data(len(self.rows))
        if last is None:
            self.model = LaplaceGPC.build(x, label, s.link, s.ard, Prior())
        else:
            self.model = last.again(x, label)
        value = self.model.fit(FIRST if last is None else FURTHER)
        self.evidence = float(value.detach()) / len(self.rows)
        before = self.p
        self.p = self.model.probability(self.x)
        at = torch.as_tensor(self.askable, device=self.x.device)
        self.flips = stopping.flips(before[at], self.p[at]) if known else float("nan")

    def _training_data(self, count: int) -> tuple[Float[Tensor, "k q"], Int[Tensor, " k"]]:
        """The first rows that were labeled, and their labels."""
        at = torch.tensor(self.rows[:count], dtype=torch.long, device=self.x.device)
        return self.x[at], torch.tensor(self.labels[:count], device=self.x.device).long()

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
        pool = CandidatePool(self.p[free], mean, variance)
        score = acquisition.scores(self.method, pool, s.link, self.generator, s.delta)
        diversity = "none" if self.method == "random" else s.diverse
        picks = acquisition.chosen(score, self.x[free], k, diversity, self.model)
        self.pending = free[picks].tolist()
        self.expected = self._expected(free, pool, picks)
        return self.pending

    def _expected(self, free: Tensor, pool: CandidatePool, picks: Tensor) -> float:
        """Predictions of the rows not asked about that the picked labels are expected to change.

        The sum over the labels, each by itself: the most that they may come to.
        """
        if not len(picks) or self.model is None:
            return 0.0
        K = acquisition.posterior_covariance(self.model, self.x[free], self.x[free[picks]])
        result = stopping.expected_flips(
            self.model, pool.mean, K, pool.mean[picks], pool.variance[picks]
        )
        return float(result.sum())

    def reasons(self, rows: list[int]) -> list[str]:
        """Why each of some rows is asked about."""
        if self.model is None or len(set(self.labels)) < 2:
            return ["drawn at random, until both classes have been seen"] * len(rows)
        at = torch.tensor(rows, dtype=torch.long, device=self.x.device)
        near = acquisition.nearness(self.model, self.x[at], self.model.x)
        left = self.model.latent(self.x[at])[1] / self.model.kernel.outputscale.detach()
        return acquisition.reasons(self.p[at], near, left, self.method, self.settings.delta)

    def state(self) -> Tensors:
        """All that goes on from here bit by bit."""
        own: Tensors = {
            "rows": torch.tensor(self.rows, dtype=torch.long),
            "labels": torch.tensor(self.labels, dtype=torch.long),
            "pending": torch.tensor(self.pending, dtype=torch.long),
            "p": self.p,
            "measures": torch.tensor(
                [self.evidence, self.flips, self.expected], dtype=torch.float64
            ),
            "generator": self.generator.get_state(),
        }
        if self.model is not None:
            own |= {f"kernel.{k}": v for k, v in self.model.kernel.state_dict().items()}
            own["a"] = self.model.a
        return own

    def load(self, state: Tensors) -> None:
        """As `state` says."""
        self.rows, self.labels = state["rows"].tolist(), state["labels"].tolist()
        self.pending = state["pending"].tolist()
        self.p = state["p"].to(self.x)
        self.evidence, self.flips, self.expected = state["measures"].tolist()
        self.generator.set_state(state["generator"].cpu())
        self.model = None
        if "a" in state:
            s = self.settings
            self.model = LaplaceGPC.build(
                *self._training_data(len(state["a"])), s.link, s.ard, Prior()
            )
            self.model.kernel.load_state_dict(part(state, "kernel."))
            self.model.a = state["a"].to(self.x)


class Linear:
    """Logistic regression in place of the Gaussian process, which asks where p is next to 0.5."""

    def __init__(self, x: Float[np.ndarray, "n q"], askable: Int[np.ndarray, " a"]) -> None:
        self.x, self.askable = x, askable
        self.rows: list[int] = []
        self.p = np.full(len(x), 0.5)

    def fit(self, label: Int[np.ndarray, " n"]) -> None:
        """Learn from the rows labeled so far."""
        made = LogisticRegression(C=UNIT, max_iter=1000).fit(self.x[self.rows], label[self.rows])
        self.p = made.predict_proba(self.x)[:, 1]

    def ask(self, k: int, diversity: str) -> list[int]:
        """The least confident rows, spread out as those of the Gaussian process are."""
        free = np.setdiff1d(self.askable, self.rows)
        score = torch.as_tensor(-np.abs(self.p[free] - 0.5))
        spread = "none" if diversity == "none" else "distance"
        picks = acquisition.chosen(score, torch.as_tensor(self.x[free]), k, spread)
        return [int(i) for i in free[picks.numpy()]]
