"""Settings and tables that the tests of the mitosis study share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.studies.mitosis import simulate
from scant.studies.mitosis.settings import FIXED, MitosisSettings
from scant.studies.mitosis.table import LabeledImages
from scant.studies.omniglot.table import area

CPU = torch.device("cpu")
QUICK: dict[str, Any] = {
    "test_share": 0.4,
    "n_shared_dims": 1,
    "n_private_dims": 2,
    "n_inducing": 6,
    "n_components": 8,
    "imbalance": 3,
    "max_steps": 6,
    "baselines": False,
}


def settings(**values: Any) -> MitosisSettings:
    made = MitosisSettings.parse(FIXED | QUICK | values)
    assert isinstance(made, MitosisSettings)
    return made


def patches(seed: int = 0, slides: int = 8, each: tuple[int, int] = (5, 20)) -> pd.DataFrame:
    """Invented cells at 10 x 10 pixels."""
    made = simulate.cells(seed, slides, each)
    x = area(made.x.reshape(-1, 30, 30), 10).reshape(len(made), -1)
    names = [f"p{i}" for i in range(100)]
    return LabeledImages(made.classes, made.label, made.groups, made.group, x, names).frame()


def clouds(counts: dict[str, int], seed: int = 0, width: int = 5) -> pd.DataFrame:
    """Classes as clouds of points, each about a place of its own."""
    rng = np.random.default_rng(seed)
    parts = []
    for i, (name, count) in enumerate(counts.items()):
        x = rng.normal(2.5 * np.eye(width)[i % width], 1.0, (count, width))
        part = pd.DataFrame(x, columns=[f"f{j}" for j in range(width)])
        part.insert(0, "label", pd.Series([name] * count, dtype=object))
        parts.append(part)
    whole = pd.concat(parts, ignore_index=True)
    return whole.iloc[rng.permutation(len(whole))].reset_index(drop=True)
