"""What rivals learn from and are asked, and what is scored of every method's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from sklearn.metrics import average_precision_score, f1_score, recall_score

from scant import metrics
from scant.inference import censored
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive, ValuePredictive


class RowScores(NamedTuple):
    """Predictions of the held-out rows beside their truth.

    Attributes:
        value: The mean; of classes, the predicted class.
        log_density: Log density or log probability of the truth, nats; None: the method has none.
        rare_probability: Probability of the rare class, where there is one.
        confidence: Probability of the most probable class.
        correct: Whether that is the true one.
        crps: CRPS of the density, in the unit of the values; None: the method has none.
    """

    value: Float[ndarray, " t"]
    log_density: Float[ndarray, " t"] | None = None
    rare_probability: Float[ndarray, " t"] | None = None
    confidence: Float[ndarray, " t"] | None = None
    correct: Bool[ndarray, " t"] | None = None
    crps: Float[ndarray, " t"] | None = None

    def rows(self, index: ndarray | slice) -> RowScores:
        """The same of some of the rows."""
        some = {n: v[index] for n, v in self._asdict().items() if v is not None}
        return RowScores(**some)


@dataclass(frozen=True)
class Comparison:
    """One supervised problem as a matrix, and this run's answer to it.

    Attributes:
        x: Rows learned from; NaN where a value is missing.
        y: Their values, or numbers of their classes.
        x_test: Held-out rows.
        y_test: Their truth.
        own: What this run says of the held-out rows.
        scores: Of `SCORES`, those that the study's report names.
        classes: How many there are; 0: values.
        rare: The class that F1 and average precision are of; None: all, weighted by their rows.
        images: Whether the columns are pixels or components of them.
        part: Of each row, the problem of its own that it belongs to (an alphabet); None: one.
        part_test: Of each held-out row.
        replaces: Whether the report's own baselines give way to the rivals, which are of the same
            kinds; else rivals that bear a baseline's name are not fitted.
        shown: Of the held-out rows, how many are of the run's own split, the first ones, which the
            report's table shows: the others are of further folds. 0: there are none.
        late: Whether a row's value is only a bound from below (`scant.inference.censored`); None:
            none is.
        late_test: Of each held-out row.
        others: What models of the study's own say of the held-out rows, by name; they are
            judged too where there are further folds.
        note: What a reader should know of the comparison with rivals.
        by: What the values are called, where a verdict is told by bins of them too; "": it is not.
        blocks: Of each column, the number of those that it is missing with; -1: it never is.
            Where held-out rows lack something, rivals then learn what to say of these from rows
            with such gaps.
    """

    x: Float[ndarray, "n d"]
    y: Float[ndarray, " n"] | Int[ndarray, " n"]
    x_test: Float[ndarray, "t d"]
    y_test: Float[ndarray, " t"] | Int[ndarray, " t"]
    own: Predictive
    scores: tuple[str, ...]
    classes: int = 0
    rare: int | None = None
    images: bool = False
    part: Int[ndarray, " n"] | None = None
    part_test: Int[ndarray, " t"] | None = None
    replaces: bool = False
    shown: int = 0
    late: Bool[ndarray, " n"] | None = None
    late_test: Bool[ndarray, " t"] | None = None
    others: Mapping[str, Predictive] = field(default_factory=dict)
    note: str = ""
    by: str = ""
    blocks: Int[ndarray, " d"] | None = None

    @property
    def table_rows(self) -> Int[ndarray, " s"]:
        """The held-out rows of the run's own split."""
        return np.arange(self.shown or len(self.y_test))

    def trivial(self) -> Predictive:
        """Predictions that ignore the inputs: mean and variance, or frequencies of the classes."""
        if not self.classes:
            mean, variance = float(np.mean(self.y)), max(float(np.var(self.y)), 1e-24)
            if self.late is not None:
                mean, variance, *_ = censored.uncensored(self.y, self.late)
            rows = np.ones(len(self.y_test))
            return MixturePredictive.gaussian(mean * rows, variance * rows)
        share = np.zeros((len(self.y_test), self.classes))
        for part, mine, asked in self.parts():
            del part
            counts = np.bincount(self.y[mine].astype(int), minlength=self.classes)
            share[asked] = counts / counts.sum()
        return CategoricalPredictive(share)

    @cached_property
    def observation(self) -> tuple[float, Float[ndarray, " t"]]:
        """Horizon of bounded values, and weights of the held-out rows' errors up to it."""
        assert self.late is not None
        assert self.late_test is not None
        y, late = np.append(self.y, self.y_test), np.append(self.late, self.late_test)
        horizon, weight = censored.observation(y, late)
        return horizon, weight[len(self.y) :]

    @cached_property
    def own_scores(self) -> RowScores:
        """Row by row, what is scored of this run."""
        return self.scored(self.own)

    def scored(self, predictive: Predictive) -> RowScores:
        """Compare predictions of the held-out rows with their truth."""
        return row_scores(
            self.y_test,
            predictive,
            self.rare,
            self.late_test,
            self._horizon,
            crps="CRPS" in self.scores,
        )

    @property
    def _horizon(self) -> float:
        return float("inf") if self.late_test is None else self.observation[0]

    def parts(self) -> list[tuple[int, Int[ndarray, " m"], Int[ndarray, " q"]]]:
        """Number of each problem, its rows to learn from, its held-out rows."""
        if self.part is None or self.part_test is None:
            return [(0, np.arange(len(self.y)), np.arange(len(self.y_test)))]
        return [
            (int(p), np.flatnonzero(self.part == p), np.flatnonzero(self.part_test == p))
            for p in np.unique(self.part_test)
        ]


def row_scores(
    y: ndarray,
    predictive: Predictive,
    rare: int | None = None,
    late: Bool[ndarray, " t"] | None = None,
    horizon: float = float("inf"),
    crps: bool = True,
) -> RowScores:
    """Compare predictions with the truth, row by row.

    Args:
        y: The truth; shape (t,).
        predictive: Of the same rows.
        rare: The class whose probability is kept.
        late: Rows whose value is only known to be above y.
        horizon: Beyond which such values count as the horizon.
        crps: Whether the CRPS is asked for; of counts it takes longer than all else.
    """
    if isinstance(predictive, CategoricalPredictive):
        if np.isnan(predictive.probabilities).any():
            return RowScores(predictive.point)
        p = predictive.probabilities
        rare_probability = None if rare is None else p[:, rare]
        right = predictive.most_probable == y
        return RowScores(
            predictive.point, predictive.log_prob(y), rare_probability, predictive.confidence, right
        )
    assert isinstance(predictive, ValuePredictive)
    if np.isnan(predictive.variance).any():
        return RowScores(predictive.mean)
    if late is None:
        own = predictive.crps(y) if crps else None
        return RowScores(predictive.mean, predictive.log_prob(y), crps=own)
    assert isinstance(predictive, MixturePredictive), "only mixtures have bounds for a truth"
    return RowScores(predictive.restricted_mean(horizon), predictive.log_prob(y, late))


def _density(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    return float("nan") if p.log_density is None else float(np.mean(p.log_density[at]))


def _crps(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    return float("nan") if p.crps is None else float(np.mean(p.crps[at]))


def _restricted(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    horizon, weight = c.observation
    y, w = np.minimum(c.y_test, horizon)[at], weight[at]
    if not w.any():
        return float("nan")
    spread = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    if spread == 0:  # all outlived the horizon
        return float("nan")
    return float(np.average((y - p.value[at]) ** 2, weights=w) / spread)


def _concordance(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    late = np.zeros(len(c.y_test), dtype=bool) if c.late_test is None else c.late_test
    return metrics.concordance(c.y_test[at], ~late[at], p.value[at])


def _snlp(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    if p.log_density is None:
        return float("nan")
    return metrics.snlp(c.y_test[at], p.log_density[at], np.asarray(c.y, float))


def _f1(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    truth, named = c.y_test[at], p.value[at]
    if c.rare is None:
        return float(f1_score(truth, named, average="weighted", zero_division=0.0))
    hit = float(((truth == c.rare) & (named == c.rare)).sum())
    return 2 * hit / max(float((truth == c.rare).sum() + (named == c.rare).sum()), 1.0)


def _recall(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    if c.rare is None:  # weighted by the classes' rows, recall is accuracy
        return float(np.mean(c.y_test[at] == p.value[at]))
    return float(recall_score(c.y_test[at] == c.rare, p.value[at] == c.rare, zero_division=0.0))


def _average_precision(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    positive = c.y_test[at] == c.rare
    if p.rare_probability is None or not positive.any():
        return float("nan")
    return float(average_precision_score(positive, p.rare_probability[at]))


def _calibration(c: Comparison, p: RowScores, at: Int[ndarray, " b"]) -> float:
    if p.confidence is None or p.correct is None:
        return float("nan")
    return metrics.expected_calibration_error(p.confidence[at], p.correct[at].astype(float))


Score = Callable[[Comparison, RowScores, Int[ndarray, " b"]], float]
SCORES: dict[str, Score] = {
    "RMSE": lambda c, p, at: metrics.rmse(c.y_test[at], p.value[at]),
    "NMSE": lambda c, p, at: metrics.nmse(c.y_test[at], p.value[at]),
    "SMSE": lambda c, p, at: metrics.smse(c.y_test[at], p.value[at]),
    "mean log-likelihood": _density,
    "CRPS": _crps,
    "NLPD": lambda c, p, at: -_density(c, p, at),
    "NMSE by patient (log time)": lambda c, p, at: metrics.nmse(c.y_test[at], p.value[at]),
    "NLPD (log time)": lambda c, p, at: -_density(c, p, at),
    "restricted NMSE (log time)": _restricted,
    "censored NLPD (log time)": lambda c, p, at: -_density(c, p, at),
    "concordance": _concordance,
    "SNLP": _snlp,
    "F1": _f1,
    "recall": _recall,
    "average precision": _average_precision,
    "mean log probability (nats)": _density,
    "ECE": _calibration,
}
