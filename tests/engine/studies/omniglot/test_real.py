"""Ojibwe and Blackfoot, the publication's two alphabets, by the study as it stands."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from scant.data_sources import omniglot
from scant.events import Finished
from scant.studies.omniglot.settings import FIXED, OmniglotSettings
from scant.studies.omniglot.study import Study
from scant.studies.omniglot.table import area
from scant.training.loop import train

from tests.paths import REAL_DATA


def test_two_alphabets_are_told_apart_better_than_by_the_nearest_drawing() -> None:
    folder = Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / "omniglot"
    if not folder.is_dir():
        pytest.skip("SCANT_REAL_DATA names no folder omniglot")
    kept = np.load(folder / "ojibwe_blackfoot.npz")
    names = [next(p for p in omniglot.PUBLISHED if p.startswith(n)) for n in kept["alphabet_names"]]
    table = omniglot.of_images(
        area(kept["images105"].astype(float), 20),
        [names[a] for a in kept["alphabet"]],
        [f"character{c:02}" for c in kept["character"]],
    )
    settings = OmniglotSettings(**FIXED | {"max_steps": 80, "n_latent": 8, "n_inducing": 30})
    *_, last = train(Study(settings, table, torch.device("cpu")))
    assert isinstance(last, Finished)
    told = {(m.method, m.name): m.value for m in last.report.metrics}
    assert told["this run", "recall"] > 0.6
    assert told["this run", "recall"] > told["nearest neighbor", "recall"]
    assert told["MOCGPs-AR (published)", "recall of Blackfoot"] == 0.714
    assert told["this run", "ECE"] < 0.2
