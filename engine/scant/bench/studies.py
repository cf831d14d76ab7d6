"""Measurement of the training steps of studies."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pandas as pd
import torch

from scant.bench.timing import timed
from scant.studies import STUDIES, entry

# Settings that determine the cost of a step, with the values to measure.
SIZES: dict[str, tuple[int, ...]] = {
    "training_size": (1000, 4000),
    "n_basis": (25, 100),
    "fine_rows": (80, 1000),
    "n_inducing": (50, 100),
}
STEPS = 8


def bench(study: str | None = None) -> pd.DataFrame:
    """Measure the median time of a training step by size.

    Args:
        study: Name of the study; None for all studies.

    Returns:
        Table with a row for each study and combination of sizes: `study`, sizes, and `ms` per step.
    """
    rows = []
    for name in [study] if study else STUDIES:
        names = entry(name).settings.names()
        sizes = {k: v for k, v in SIZES.items() if k in names}
        for values in itertools.product(*sizes.values()):
            values_by_name = dict(zip(sizes, values))
            rows.append({"study": name, **values_by_name, "ms": _step_ms(name, values_by_name)})
    return pd.DataFrame(rows)


def _step_ms(name: str, values: dict[str, Any]) -> float:
    from scant.training.api import fit

    study = fit(name, **values).study
    study.start_restart(0, 0, None)
    return round(timed(study.step, torch.device("cpu"), rounds=STEPS, seconds=math.inf).ms, 3)
