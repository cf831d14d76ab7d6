"""Scores by the names that reports print, each defined once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    precision_score,
    recall_score,
)

from scant import metrics
from scant.events import Metric
from scant.predictive.scored import Scored
from scant.problem import Problem

At = Int[ndarray, " b"]
Score = Callable[[Problem, Scored, At], float]
COVERAGE = {f"coverage of the {100 * level:.0f}% interval": level for level in metrics.LEVELS}
WIDEST = list(COVERAGE)[-1]


def metrics_of(
    problem: Problem, scored: Scored, method: str, names: Iterable[str], source: str = "baseline"
) -> list[Metric]:
    """Scores of all held-out rows, if there are two; without those that the method, or the rows,
    do not have."""
    if len(scored) < 2:
        return []
    values = zip(names := tuple(names), scores_of(problem, scored, names))
    return [Metric(method, n, v, source=source) for n, v in values if np.isfinite(v)]


def scores_of(problem: Problem, scored: Scored | None, names: Iterable[str]) -> list[float]:
    """Scores of all rows; NaN of those that the method does not have, or of no method."""
    if scored is None:
        return [float("nan") for _ in names]
    at = np.arange(len(scored))
    return [SCORES[name](problem, scored, at) for name in names]


def coverage(scored: Scored) -> Float[ndarray, "2 c"]:
    """Nominal levels of central intervals and their empirical coverage."""
    at = np.arange(len(scored))
    return np.array([[level, _covered(level, scored, at)] for level in metrics.LEVELS]).T


def _covered(level: float, p: Scored, at: At) -> float:
    pit = p.pit[at]
    if np.isnan(pit).any():
        return float("nan")
    return float(np.mean(np.abs(pit - 0.5) <= level / 2))


def _coverage(level: float) -> Score:
    return lambda c, p, at: 100 * _covered(level, p, at)


def _mean(of: Callable[[Scored], ndarray]) -> Score:
    return lambda c, p, at: float(np.mean(of(p)[at]))


def _point(metric: Callable[[ndarray, ndarray], float]) -> Score:
    return lambda c, p, at: metric(p.y[at], p.value[at])


def _error(metric: Callable[[ndarray], float]) -> Score:
    """A metric of normalized redshift errors."""
    return lambda c, p, at: metric(metrics.normalized_error(p.y[at], p.value[at]))


def _restricted(c: Problem, p: Scored, at: At) -> float:
    horizon, weight = c.observation
    y, w = np.minimum(c.y_test, horizon)[at], weight[at]
    if not w.any():
        return float("nan")
    spread = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    if spread == 0:  # all outlived the horizon
        return float("nan")
    return float(np.average((y - p.value[at]) ** 2, weights=w) / spread)


def _concordance(c: Problem, p: Scored, at: At) -> float:
    late = np.zeros(len(c.y_test), dtype=bool) if c.late_test is None else c.late_test
    return metrics.concordance(c.y_test[at], ~late[at], p.value[at])


def _of_classes(metric: Callable[..., float]) -> Score:
    """Of the rare class, where there is one; else of all classes, weighted by their rows."""

    def score(c: Problem, p: Scored, at: At) -> float:
        truth, named = p.y[at], p.value[at]
        if c.rare is None:
            return float(metric(truth, named, average="weighted", zero_division=0.0))
        return float(metric(truth == c.rare, named == c.rare, zero_division=0.0))

    return score


def _balanced(c: Problem, p: Scored, at: At) -> float:
    truth = p.y[at]
    if len(np.unique(truth == c.rare)) < 2:
        return float("nan")
    return float(balanced_accuracy_score(truth, p.value[at]))


def _average_precision(c: Problem, p: Scored, at: At) -> float:
    positive = p.y[at] == c.rare
    if not p.dense or not positive.any():
        return float("nan")
    return float(average_precision_score(positive, p.classes.probabilities[at, c.rare]))


def _calibration(c: Problem, p: Scored, at: At) -> float:
    if not p.dense:
        return float("nan")
    return metrics.expected_calibration_error(p.confidence[at], p.correct[at])


_DENSITY = _mean(lambda p: p.log_density)
_NEGATIVE = _mean(lambda p: -p.log_density)
SCORES: dict[str, Score] = {
    "RMSE": _point(metrics.rmse),
    "NMSE": _point(metrics.nmse),
    "SMSE": _point(metrics.smse),
    "mean log-likelihood": _DENSITY,
    "CRPS": _mean(lambda p: p.crps),
    "CDE loss": _mean(lambda p: p.cde),
    "PIT-KS": lambda c, p, at: metrics.pit_ks(p.pit[at]),
    "NLPD": _NEGATIVE,
    "SNLP": lambda c, p, at: metrics.snlp(p.y[at], p.log_density[at], np.asarray(c.y, float)),
    **{name: _coverage(level) for name, level in COVERAGE.items()},
    "F_0.05": _point(lambda y, mean: metrics.fraction_within(y, mean, 0.05)),
    "F_0.15": _point(lambda y, mean: metrics.fraction_within(y, mean, 0.15)),
    "bias": _error(lambda e: float(e.mean())),
    "median bias": _error(lambda e: float(np.median(e))),
    "sigma_MAD": _error(metrics.sigma_mad),
    "sigma_IQR": _error(metrics.sigma_iqr),
    "outlier rate": _error(metrics.outlier_rate),
    "outliers beyond 0.15": _error(lambda e: metrics.far_share(e, 0.15)),
    "outliers beyond 3 sigma": _error(metrics.far_share),
    "NMSE by patient (log time)": _point(metrics.nmse),
    "NLPD (log time)": _NEGATIVE,
    "restricted NMSE (log time)": _restricted,
    "censored NLPD (log time)": _NEGATIVE,
    "concordance": _concordance,
    "F1": _of_classes(f1_score),
    "precision": _of_classes(precision_score),
    "recall": _of_classes(recall_score),
    "average precision": _average_precision,
    "accuracy": lambda c, p, at: float(np.mean(p.y[at] == p.value[at])),
    "balanced accuracy": _balanced,
    "mean log probability (nats)": _DENSITY,
    "ECE": _calibration,
}
