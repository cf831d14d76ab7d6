"""Settings and pools of rows that the tests of the clamp study share."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import torch

from tests.engine.studies import studying

CPU = torch.device("cpu")
NAMES = ["soil", "pipe", "clamp"]
settings = partial(studying.settings, "clamp")


def clouds(n: int = 240, seed: int = 0, pictures: int = 24) -> pd.DataFrame:
    """One row in five lies in a ball; pictures of ten rows each; six features."""
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(size=n) < 0.2
    x = rng.normal(0, 1, (n, 6)) + np.where(wanted, 1.6, 0)[:, None] * np.array([1, 1, 1, 0, 0, 0])
    frame = pd.DataFrame(x, columns=[f"f{i}" for i in range(6)])
    names = [f"picture {i % pictures:02}" for i in range(n)]
    return frame.assign(label=np.where(wanted, "clamp", "no clamp"), picture=names)


def three(n: int = 300) -> pd.DataFrame:
    """Three clouds of six features; the last has one row in seven."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, n, p=[0.5, 0.35, 0.15])
    centers = 2.2 * np.eye(3, 6)
    frame = pd.DataFrame(rng.normal(0, 1, (n, 6)) + centers[kind])
    frame.columns = [f"f{i}" for i in range(6)]
    return frame.assign(label=[NAMES[k] for k in kind], picture=[f"p{i % 30}" for i in range(n)])
