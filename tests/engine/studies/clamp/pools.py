"""Settings and a pool of rows that the tests of the clamp study share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from scant.studies.clamp.entry import ClampSettings

CPU = torch.device("cpu")
QUICK: dict[str, Any] = {
    "start": 20,
    "budget": 50,
    "batch_size": 10,
    "repeats": 2,
    "n_components": 5,
}


def settings(**values: Any) -> ClampSettings:
    made = ClampSettings.parse({**QUICK, **values})
    assert isinstance(made, ClampSettings)
    return made


def clouds(n: int = 240, seed: int = 0, pictures: int = 24) -> pd.DataFrame:
    """One row in five lies in a ball; pictures of ten rows each; six features."""
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(size=n) < 0.2
    x = rng.normal(0, 1, (n, 6)) + np.where(wanted, 1.6, 0)[:, None] * np.array([1, 1, 1, 0, 0, 0])
    frame = pd.DataFrame(x, columns=[f"f{i}" for i in range(6)])
    names = [f"picture {i % pictures:02}" for i in range(n)]
    return frame.assign(label=np.where(wanted, "clamp", "no clamp"), picture=names)
