"""Results that are merged row by row, and repeats that are pooled."""

import numpy as np
import pandas as pd

from scant.reproduce.results import Results
from scant.reproduce.stored import FinishedRun
from scant.studies.reproduction import Experiment, Score
from scripts.merge_results import merged

FOLDS = np.array([0.5, 0.7, 0.4, 0.9, 0.8])


def table(values: np.ndarray, experiment: str = "one") -> pd.DataFrame:
    results = Results("omniglot")
    for value in values:
        score = Score(Experiment(experiment, "data", "folds"), "ours", "recall", float(value))
        results.add(FinishedRun([score], 10 * float(value), {"date": "2026-01-01"}))
    return results.rows().fillna("").astype(str).assign(study_hours="")


def test_pooled_repeats_are_those_of_all_runs() -> None:
    pooled = merged(table(FOLDS[:2]), table(FOLDS[2:]), pool=True)
    whole = merged(table(FOLDS), table(FOLDS))
    pd.testing.assert_frame_equal(pooled, whole)


def test_rows_without_seconds_are_left() -> None:
    stored = table(FOLDS).assign(seconds="")
    pd.testing.assert_frame_equal(merged(stored, stored.assign(ours="0"), True), stored)


def test_rows_replace_their_like_and_follow_their_experiment() -> None:
    stored = pd.concat([table(FOLDS), table(FOLDS, "two")], ignore_index=True)
    new = table(FOLDS[:1]).assign(method="theirs")
    result = merged(stored, pd.concat([new, table(FOLDS[:3])], ignore_index=True))
    assert list(result["experiment"]) == ["one", "one", "two"]
    assert list(result["method"]) == ["ours", "theirs", "ours"]
    assert list(result["repeats"]) == ["3", "1", "5"]
