"""Speed of a study: the cost of a training step on this machine."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pandas as pd
import torch

from scant.bench.timing import timed
from scant.studies import STUDIES, entry

# Settings that a step's cost grows with, where a study has them, and the values to try.
SIZES: dict[str, tuple[int, ...]] = {
    "training_size": (1000, 4000),
    "n_basis": (25, 100),
    "fine_rows": (80, 1000),
    "n_inducing": (50, 100),
}
STEPS = 8


def bench(study: str | None = None) -> pd.DataFrame:
    """Median milliseconds of a training step, against the sizes that it grows with.

    Args:
        study: Its name; None: every study.

    Returns:
        A row for each study and combination of sizes: `study`, the sizes, `ms` a step.
    """
    rows = []
    for name in [study] if study else STUDIES:
        known = entry(name).settings.names()
        sizes = {k: v for k, v in SIZES.items() if k in known}
        for values in itertools.product(*sizes.values()):
            chosen = dict(zip(sizes, values))
            rows.append({"study": name, **chosen, "ms": _step_ms(name, chosen)})
    return pd.DataFrame(rows)


def _step_ms(name: str, values: dict[str, Any]) -> float:
    from scant.training.api import fit

    study = fit(name, **values).study
    study.start_restart(0, 0, None)
    return round(timed(study.step, torch.device("cpu"), rounds=STEPS, seconds=math.inf).ms, 3)
