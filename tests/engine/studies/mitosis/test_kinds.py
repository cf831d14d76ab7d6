"""The mitosis study on tables with gaps, of features, of several classes, and of few rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.events import Note
from scant.studies.mitosis.study import Study
from scant.studies.mitosis.table import breast_cancer
from scant.training.loop import train
from tests.engine.studies.mitosis.nuclei import CPU, clouds, patches, settings
from tests.engine.studies.studying import run, value


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return patches()


@pytest.mark.slow
@pytest.mark.parametrize("components", [0, 8])
def test_missing_pixels_are_allowed(cells: pd.DataFrame, components: int) -> None:
    rng = np.random.default_rng(0)
    pixels = [c for c in cells if c[0] == "p"]
    holes = cells.copy()
    few = pixels[40:43] if components == 0 else pixels  # a pattern of gaps a column costs time
    holes[few] = holes[few].mask(rng.uniform(size=(len(cells), len(few))) < 0.1)
    study = Study(settings(n_components=components, imbalance=1), holes, CPU)
    how = "left to the model" if components == 0 else "filled in by principal components"
    assert any(how in note for note in study.notes)
    report = run(study)
    assert np.isfinite(report.arrays["test_p"]).all()
    assert np.isfinite(report.arrays["generated"]).all()
    told = study.predict(holes.head(5))
    assert told["probability"].between(0, 1).all()
    empty = holes.head(1).assign(**dict.fromkeys(pixels, np.nan))
    assert np.isfinite(study.predict(empty)["probability"]).all()


def test_filled_in_pixels_resemble_what_was_there(cells: pd.DataFrame) -> None:
    from scant.studies.mitosis.preprocessing import Columns

    x = cells[[c for c in cells if c[0] == "p"]].to_numpy()
    holes = np.where(np.random.default_rng(1).uniform(size=x.shape) < 0.2, np.nan, x)
    columns = Columns.of(holes, 10, pixels=True)
    gaps = np.isnan(holes)
    error = (columns.back(columns.forward(holes)) - x)[gaps]
    assert error.std() < 0.6 * (x - np.nanmean(holes, 0))[gaps].std()
    whole = Columns.of(x, 100, pixels=True)
    np.testing.assert_allclose(whole.back(whole.forward(x)), x, atol=1e-5)


@pytest.mark.slow
def test_three_classes_are_told_apart() -> None:
    table = clouds({"few": 30, "some": 60, "many": 200})
    study = Study(settings(imbalance=0, max_steps=80, n_inducing=8), table, CPU)
    report = run(study)
    p, label = report.arrays["test_p"], report.arrays["test_label"]
    assert p.shape[1] == 3
    assert (p.argmax(1) == label).mean() > 0.7
    assert value(report, "F1") > 0.5
    assert set(study.predict(table)["predicted"]) == {"few", "some", "many"}


@pytest.mark.slow
def test_features_that_scikit_learn_carries() -> None:
    values = settings(imbalance=10, n_components=20, max_steps=60, n_inducing=15, n_private_dims=3)
    study = Study(values, breast_cancer(values), CPU)
    assert study.metadata["features"][0] == "mean_radius"
    assert study.metadata["size"] == []
    report = run(study)
    assert value(report, "average precision") > 0.8
    assert value(report, "recall") > 0.6


@pytest.mark.slow
def test_a_prior_moves_the_probabilities(cells: pd.DataFrame) -> None:
    told = {}
    for prior in ("as in training", "even", "as in the table"):
        study = Study(settings(prior=prior, imbalance=0, max_steps=20), cells, CPU)
        told[prior] = run(study).arrays["test_p"][:, 0].mean()
    assert told["even"] > told["as in training"]
    assert told["as in the table"] == pytest.approx(told["as in training"], rel=0.05)


def test_too_few_to_spare_are_not_tempered() -> None:
    study = Study(settings(), clouds({"few": 8, "many": 40}), CPU)
    assert not len(study.data.split.validation)
    assert any("none are spared" in note for note in study.notes)
    report = run(study)
    assert np.isnan(report.arrays["threshold"]).all()
    none = Study(settings(test_share=0.0), clouds({"few": 20, "many": 40}), CPU)
    events = list(train(none))
    assert any("No row is held out" in e.text for e in events if isinstance(e, Note))
    last = events[-1]
    assert [m.name for m in last.report.metrics] == ["bound (nats a row)"]
