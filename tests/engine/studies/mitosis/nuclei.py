"""Settings and tables that the tests of the mitosis study share."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import torch

from scant.studies.mitosis import simulate
from scant.studies.mitosis.table import LabeledImages
from scant.studies.omniglot.table import area
from tests.engine.studies import studying

CPU = torch.device("cpu")
settings = partial(studying.settings, "mitosis")


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
