"""Section 6.4: which values are removed, and that every run has its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from scant.studies.figure_data import FigureData
from scant.studies.redshift.reproduce import missing_bands as chapter
from scant.studies.redshift.reproduce import noise_and_gaps
from scant.studies.reproduction import Experiment, Score
from scant.studies.split import TEST, TRAIN, VALIDATION
from scant.training.api import Fit, fit

SIZES = {"training_size": 400, "validation_size": 30, "test_size": 50}


def briefly(study: str, data: pd.DataFrame, **values: Any) -> Fit:
    return fit(study, data, device="cpu", **{**values, "n_basis": 3, "max_steps": 2})


def test_a_share_of_the_magnitudes_to_learn_from_is_removed_and_no_row_is_empty() -> None:
    learned: list[pd.DataFrame] = []

    def recorded(study: str, data: pd.DataFrame, **values: Any) -> Fit:
        learned.append(data)
        raise InterruptedError

    whole = chapter.divided(None, SIZES, seed=1)
    experiment = Experiment("", "", "")
    with pytest.raises(InterruptedError):
        list(chapter._trained(recorded, lambda: whole, 4, 60, experiment))
    [table] = learned
    gone = table[chapter.BANDS].isna().to_numpy()
    assert (table[chapter.ERRORS].isna().to_numpy() == gone).all()
    train = (table["split"] == TRAIN).to_numpy()
    assert not gone[~train].any()
    assert not gone.all(1).any()
    # Share and number of rows of 400 rows without the empty ones, to four standard errors.
    assert gone[train].sum() + 5 * (400 - train.sum()) == pytest.approx(1200, abs=88)
    assert train.sum() == pytest.approx(400 * (1 - 0.6**5), abs=21)
    assert not whole.isna().any(axis=None)


def test_so_many_bands_are_removed_from_every_test_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[pd.DataFrame] = []
    monkeypatch.setattr(chapter, "_answers", lambda *given: asked.extend(given[-1]) or iter(()))
    whole = chapter.divided(None, SIZES, seed=0)
    list(chapter.tested(briefly, whole, 3))
    for count, query in enumerate(asked):
        gone = query[chapter.BANDS].isna()
        assert (gone.sum(axis=1) == count).all()
        assert (gone.to_numpy() == query[chapter.ERRORS].isna().to_numpy()).all()
        assert count == 0 or gone.any().all()  # another choice for each row
    assert len(asked) == 5


def test_rows_are_divided_at_random_by_the_seed() -> None:
    tables = [chapter.divided(None, SIZES, seed) for seed in (0, 0, 1)]
    for table in tables:
        assert table["split"].value_counts().to_dict() == {TRAIN: 400, TEST: 50, VALIDATION: 30}
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


def test_complete_rows_reach_the_leaves_also_of_trees_that_learned_from_gaps() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 50, (300, 3)).astype(float)  # trees round their inputs to 32 bits
    y = x[:, 0] + rng.standard_normal(300)
    x[rng.random(x.shape) < 0.3] = np.nan
    query = rng.integers(0, 50, (40, 3)).astype(float)
    forest = RandomForestRegressor(9, min_samples_leaf=3, max_features="sqrt", random_state=2)
    mean, variance = noise_and_gaps.forest_moments(x, y, query, 9, seed=2)
    assert mean == pytest.approx(forest.fit(x, y).predict(query))
    assert (variance > np.var([tree.predict(query) for tree in forest], axis=0)).all()


@pytest.mark.slow
def test_every_run_has_finite_scores_of_both_methods() -> None:
    runs = list(chapter.runs(quick=True, data=None, fit=briefly))
    assert len({run.key for run in runs}) == len(runs) == 3
    results = [result for run in runs for result in run.scores()]
    [figure] = [result for result in results if isinstance(result, FigureData)]
    assert figure.rows.groupby("panel").size().to_dict().keys() == {
        f"{method} {count} missing"
        for method in ("GPVC m=20,", "random forest, 20 trees,")
        for count in (1, 2, 3, 4)
    }
    scores = [result for result in results if isinstance(result, Score)]
    assert len(scores) == len({score[:3] for score in scores}) == 2 * 4 * (5 + 2)
    assert np.isfinite([score.value for score in scores]).all()
    assert {score.method for score in scores} == {
        "GPVC m=20, as published",
        "random forest, 20 trees",
    }
