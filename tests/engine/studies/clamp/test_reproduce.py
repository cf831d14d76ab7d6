"""Label-efficiency beside Table 4.1."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies.clamp import network
from scant.studies.clamp import reproduce as tables
from scant.studies.clamp.published import SETTINGS
from scant.studies.clamp.settings import CNN, COMPARED, FIXED, VALIDATION_F1, ClampSettings
from scant.studies.clamp.study import Study
from scant.studies.published import values as as_published
from scant.tables.images.cutting import cut, table_of
from scant.tables.images.kinds import HANDMADE, JOINED
from scant.training.api import fit
from tests.engine.studies.clamp.test_study import clouds
from tests.engine.studies.studying import gathered
from tests.paths import REAL_DATA

needs_data = pytest.mark.skipif(
    not (REAL_DATA / "clamp_standin_screws").is_dir(),
    reason="SCANT_REAL_DATA names no folder clamp_standin_screws",
)
SMALL = {"start": 20, "budget": 40, "n_components": 5}


@pytest.fixture(scope="module")
def photographs() -> pd.DataFrame:
    """24 pictures of noise; two in three have red squares."""
    rng = np.random.default_rng(0)
    cuts, labels = [], []
    for i in range(24):
        image = rng.integers(60, 120, (160, 240, 3)).astype(np.uint8)
        if i % 3:
            image[:40, 80 * (i % 3) : 80 * (i % 3) + 40] = (250, 30, 30)
        for one in cut(image, f"photo {i}", 80):
            cuts.append(one)
            labels.append("clamp" if (one.image[..., 0] > 200).mean() > 0.1 else "no clamp")
    return table_of(cuts, labels)


def test_every_experiment_is_run_with_every_method(
    photographs: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables.simulate, "patches", lambda seed, count: photographs)
    monkeypatch.setattr(tables, "SESSION", {**tables.SESSION, **SMALL})
    monkeypatch.setattr(network, "EPOCHS", 2)
    monkeypatch.setattr(tables, "automatic", lambda: HANDMADE)
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    result = gathered("clamp", tables.reproduce(quick=True, data=None, fit=fit))
    every = [tables.LIKE, "trenches, 1 : 4", "trenches, 1 : 20"]
    assert list(result["experiment"].unique()) == every
    scores = result[result["metric"].isin(["F1", "precision", "recall"])]
    assert set(scores["method"]) == {*COMPARED, CNN, "fine-tuned CNN"}
    assert scores["ours"].dropna().between(0, 1).all()
    theirs = result.set_index(["experiment", "method", "metric"])["published"]
    assert theirs[tables.LIKE, "GP, active", "F1"] == 0.78
    assert theirs[tables.LIKE, "fine-tuned CNN", "F1"] == 0.56
    assert np.isnan(theirs[tables.LIKE, COMPARED[3], "F1"])
    assert np.isnan(theirs["trenches, 1 : 4", "GP, active", "F1"])  # of another class
    gains = result[result["metric"].str.startswith(tables.GAIN)]
    assert len(gains) == 6


def test_sessions_are_repeated_with_the_features_of_a_network_that_is_installed(
    photographs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables.simulate, "patches", lambda seed, count: photographs)
    features = {}
    for installed in (HANDMADE, JOINED):
        monkeypatch.setattr(tables, "automatic", partial(str, installed))
        settings = [
            ClampSettings.parse(FIXED | values)
            for _, _, values in tables.experiments(quick=False, folder=None)
        ]
        features[installed] = [s.feature_extractor for s in settings]
        assert all(isinstance(s.n_components, int) for s in settings)  # none is left to choose
    assert features == {
        HANDMADE: [HANDMADE] * 3,
        JOINED: [HANDMADE, HANDMADE, JOINED, HANDMADE, JOINED],
    }


def test_curves_are_those_of_the_sessions() -> None:
    table = clouds()
    result = tables.curves(Study, table, 2, **SMALL)
    assert list(result["labels"].unique()) == [20, 30, 40]
    values = [
        tables.session(Study, table, {**tables.SESSION, **SMALL, "seed": s})[1][0, 2, 0]
        for s in (0, 1)
    ]
    last = result[(result["method"] == COMPARED[0]) & (result["labels"] == 40)]
    assert last["F1"].item() == pytest.approx(np.mean(values))
    assert last["spread"].item() == pytest.approx(np.std(values))


def test_sessions_end_as_the_preset_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the session of the row as published, by the validation F1 of three batches."""
    monkeypatch.setattr(tables.simulate, "patches", lambda seed, count: pd.DataFrame())
    (like, _, values), *others = tables.experiments(quick=False, folder=None)
    assert like == tables.LIKE
    preset = as_published(SETTINGS)
    assert {k: v for k, v in values.items() if preset.get(k) != v} == {
        "repeats": 1,
        "fixed_split": False,
        "network": True,
    }
    for _, _, other in others:
        assert (tables.SESSION | other)["patience"] == 0
    few = {**SMALL, "budget": 100, "seed": 0, "batch_size": 5, "validation_share": 0.2}
    stop = {"stop_rule": VALIDATION_F1, "patience": 3, "count_validation": False}
    labels, scores = tables.session(Study, clouds(), {**tables.SESSION, **few, **stop})
    every, _ = tables.session(Study, clouds(), {**tables.SESSION, **few, **stop, "patience": 0})
    assert len(labels) == scores.shape[1]
    assert labels == every[: len(labels)]
    assert len(labels) < len(every)


def test_a_folder_without_the_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no file site_crops_48\.npz"):
        tables.screws(tmp_path)


@needs_data
def test_holes_are_found_with_few_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    table = tables.screws(REAL_DATA)
    assert table["label"].value_counts()["hole"] == pytest.approx(140, abs=8)
    assert isinstance(table, pd.DataFrame)
    values = {"positive_class": "hole", "imbalance": 4.0, "start": 20, "budget": 60, "seed": 0}
    labels, scores = tables.session(Study, table, {**tables.SESSION, **values})
    assert labels[-1] == 60
    assert scores[0, -1, 0] > 0.7
