"""The publication's comparison (Yousefi 2021, Table 3.1): all methods on the same test sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from sklearn.metrics import average_precision_score, f1_score, precision_recall_fscore_support

from scant.studies.mitosis import published_data
from scant.studies.mitosis.published_data import Case, sets_of, split
from scant.studies.mitosis.published_methods import AS_PUBLISHED, Rows, Way, ways
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

NEAR = 9  # width of the moving average over thresholds
SOURCES = ("invented cells, stand-in for AMIDA13", "AMi-Br, stand-in for AMIDA13")
METRICS = ("precision", "recall", "F1")


@dataclass(frozen=True)
class Scored:
    """Scores of the rare class of one candidate.

    Attributes:
        choose: Scores of validation rows, to choose settings and threshold.
        test: Scores of the rows of the test slides.
    """

    choose: Float[np.ndarray, " b"]
    test: Float[np.ndarray, " c"]


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Precision, recall and F1 of the rare class, on ten test sets per split of the slides.

    Settings and thresholds are chosen on validation slides; methods "as published" use their own
    threshold.

    Args:
        quick: True for the first experiment only, with a fifth of the rows and half the steps,
            instead of convergence.
        data: Folder with `mitosis_amibr` (`scant.studies.mitosis.published_data`); None: simulated
            cells.
        fit: Not used.
    """
    cases = [("invented cells", published_data.drawn())]
    if data is not None:
        cases = list(published_data.real(data))
    if quick:
        name, case = cases[0]
        learn = (case.learn[0] // 5, case.learn[1] // 5)
        steps = case.steps // 2
        cases = [(name, replace(case, learn=learn, steps=steps, most=steps))]
    for k in range(max(case.splits for _, case in cases)):
        for position, (name, case) in enumerate(cases):
            if k < case.splits:
                varies = "test sets" if case.splits == 1 else "splits of the slides and test sets"
                experiment = Experiment(name, SOURCES[data is not None], varies)
                for way in ways(published=position == 0):
                    key = f"{name}, {way.__name__}, split {k}"
                    yield Run(key, partial(_scores_of, experiment, case, way, k))


def _scores_of(experiment: Experiment, case: Case, way: Way, seed: int) -> list[Score]:
    return [Score(experiment, *one) for one in scores(case, way, seed)]


def scores(case: Case, way: Way, seed: int = 0) -> list[tuple[str, str, float]]:
    """Method, metric and value on each test set of one split.

    Args:
        case: The experiment.
        way: Function that trains methods (`published_methods.ways`).
        seed: Seed of slides, rows and starts.
    """
    rows = Rows(case, split(case, seed))
    candidates_by_method: dict[str, list[Scored]] = {}
    for method, choose, test in way(rows, seed):
        candidates_by_method.setdefault(method, []).append(Scored(choose, test))
    return [
        (method, metric, value)
        for method, candidates in candidates_by_method.items()
        for measured in _best(candidates, method, rows, seed)
        for metric, value in measured.items()
    ]


def _best(candidates: list[Scored], method: str, rows: Rows, seed: int) -> list[dict[str, float]]:
    """Measures on each test set for the candidate that is best on the validation rows."""
    ratio, rare = rows.case.test[1] / rows.case.test[0], rows.rare[1]
    if method.endswith(AS_PUBLISHED):
        levels = [(0.0, f1(candidate.choose, rare, ratio, 0.0)) for candidate in candidates]
    else:
        levels = [threshold(candidate.choose, rare, ratio) for candidate in candidates]
    best = int(np.argmax([value for _, value in levels]))
    level = levels[best][0]
    return [
        measures(candidates[best].test[rows_of_set], rows.rare[2][rows_of_set], level)
        for rows_of_set in sets_of(rows.case, rows.index[2], seed)
    ]


def measures(
    score: Float[np.ndarray, " n"], rare: Bool[np.ndarray, " n"], level: float
) -> dict[str, float]:
    """Precision, recall and F1 of the rare class above a level, and average precision."""
    result = precision_recall_fscore_support(
        rare, score > level, average="binary", zero_division=0.0
    )
    return dict(zip(METRICS, map(float, result))) | {
        "average precision": float(average_precision_score(rare, score))
    }


def f1(
    score: Float[np.ndarray, " n"], rare: Bool[np.ndarray, " n"], ratio: float, level: float
) -> float:
    """F1 of the rare class above a level, with `ratio` other rows per rare row."""
    weight = np.where(rare, 1.0, ratio * rare.sum() / max((~rare).sum(), 1))
    return float(f1_score(rare, score > level, sample_weight=weight, zero_division=0.0))


def threshold(
    score: Float[np.ndarray, " n"], rare: Bool[np.ndarray, " n"], ratio: float
) -> tuple[float, float]:
    """Return the threshold with the best F1, and that F1, with `ratio` other rows per rare row.

    F1 is averaged over neighboring thresholds, so that no single row decides.
    """
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(rare[order])
    alarms = np.cumsum(~rare[order]) * ratio * rare.sum() / max((~rare).sum(), 1)
    f1 = 2 * hits / (hits + alarms + rare.sum())
    width = min(NEAR, len(f1))
    smooth = np.convolve(f1, np.ones(width), "same") / np.convolve(
        np.ones_like(f1), np.ones(width), "same"
    )
    best = int(smooth.argmax())
    following = min(best + 1, len(score) - 1)
    return float(score[order][[best, following]].mean()), float(smooth[best])
