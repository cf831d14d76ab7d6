"""Real patches of dividing cells (AMi-Br; the others are presumed), by the study as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from scant.studies.mitosis.settings import FIXED, MitosisSettings
from scant.studies.mitosis.study import Study
from scant.studies.mitosis.table import LabeledImages
from tests.engine.studies.mitosis.nuclei import CPU
from tests.engine.studies.studying import run, value
from tests.paths import REAL_DATA


def test_dividing_cells_of_other_slides_are_told() -> None:
    file = (
        Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / "mitosis_amibr" / "patches_gray30.npz"
    )
    if not file.is_file():
        pytest.skip("SCANT_REAL_DATA names no folder mitosis_amibr")
    kept = np.load(file)
    rng = np.random.default_rng(0)
    rare, others = (rng.permutation(np.flatnonzero(kept["label"] == k)) for k in (1, 0))
    chosen = np.concatenate([rare[:200], others[:1600]])
    table = LabeledImages(
        ["other", "mitosis"],
        kept["label"][chosen].astype(np.int64),
        [str(name) for name in kept["slide_names"]],
        kept["slide"][chosen].astype(np.int64),
        kept["images"][chosen].reshape(len(chosen), -1) / 255,
        [f"p{i}" for i in range(900)],
    ).frame()
    study = Study(
        MitosisSettings(**FIXED | {"imbalance": 8, "max_steps": 90, "baselines": False}), table, CPU
    )
    slide = kept["slide"][chosen]
    assert not set(slide[study.data.places[study.data.train]]) & set(
        slide[study.data.places[study.data.test]]
    )
    report = run(study)
    share = float((study.data.label[study.data.test] == 0).mean())
    assert share < 0.2
    assert value(report, "average precision") > 3 * share
    assert value(report, "F1") > 0.45
    assert value(report, "ECE") < 0.15
