"""Settings and drawings that the tests of the omniglot study share."""

from __future__ import annotations

from functools import partial

import pandas as pd
import torch

from scant.studies.omniglot import simulate
from tests.engine.studies import studying

CPU = torch.device("cpu")
SIZES = {"Anu": (0, 3), "Bel": (0, 4)}
TIDY = simulate.Variation(knots=0.03, places=0.03, shift=0.06)
settings = partial(studying.settings, "omniglot")


def drawings(size: int = 12) -> pd.DataFrame:
    """Two alphabets of three and four characters by ten people."""
    return simulate.alphabets(0, size, sizes=SIZES, drawers=10, variation=TIDY).frame()
