"""A cohort by simulation: patients, the tissue taken from each, and how long they lived.

How far the disease has gone shows in some of the tissue that was taken and not in the rest, bends
as it goes (cells grow larger, then fall apart), and decides only a part of how long a patient
lives. Some were last seen alive: their times are censored. The sizes follow Kandemir & Hamprecht
(2015), section 5.2: 77 patients, several rows each.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.studies.aggregation.thinning import Seeded, thinned

PATIENTS = 77
ROWS = (6, 18)  # least and most of a patient
WIDTHS = {"intensity": 10, "texture": 14, "shape": 12, "stain": 6}  # features of each view
MEDIAN = 26.0  # months
SPREAD = 0.30  # of the log time, beyond what tissue shows


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """918 rows of 77 patients.

    Returns:
        `patient`, `time` (months), `event` (0: last seen alive), features in four views, of which
        `stain` tells the laboratory's day and nothing of the patient.
    """
    return thinned(cohort(settings.data_seed), rows)


def cohort(
    seed: int = 0, patients: int = PATIENTS, widths: Mapping[str, int] = WIDTHS
) -> pd.DataFrame:
    """The table of so many patients, with so many features in each view (see `demo`)."""
    rng = np.random.default_rng([seed, 41])
    stage = rng.uniform(-1.6, 1.6, patients)
    log_time = np.log(MEDIAN) - 0.75 * stage + SPREAD * rng.standard_normal(patients)
    lived = np.exp(log_time)
    observed = rng.uniform(8, 90, patients)  # when each was last heard of
    every = np.arange(ROWS[0], ROWS[1] + 1)
    count = rng.permutation(np.resize(every, patients))
    owner = np.repeat(np.arange(patients), count)
    head = pd.DataFrame(
        {
            "patient": [f"patient {i + 1:02}" for i in owner],
            "time": np.round(np.minimum(lived, observed), 1).clip(0.1)[owner],
            "event": (lived <= observed).astype(int)[owner],
        }
    )
    day = rng.standard_normal((patients, 2))[owner]
    shown = _tissue(rng, stage[owner], day, widths)
    tables = [
        pd.DataFrame(values, columns=[f"{view}.f{i:02}" for i in range(values.shape[1])])
        for view, values in shown.items()
    ]
    return pd.concat([head, *tables], axis=1).round({c: 4 for t in tables for c in t})


def _tissue(
    rng: np.random.Generator,
    stage: Float[np.ndarray, " n"],
    day: Float[np.ndarray, "n 2"],
    widths: Mapping[str, int],
) -> dict[str, Float[np.ndarray, "n v"]]:
    """What each view shows of every row, with the laboratory's day over all of it."""
    n = len(stage)
    ill = rng.beta(2.0, 1.2, n)  # how much of the patch is tumor
    felt = stage * ill
    bent = {
        "intensity": [np.cos(1.5 * felt + 0.7), ill],
        "texture": [np.sin(1.6 * felt), ill * np.cos(1.6 * felt), ill],
        "shape": [np.exp(-((felt - 0.5) ** 2) / 0.3), np.exp(-((felt + 0.6) ** 2) / 0.3), ill**2],
        "stain": [np.zeros(n)],
    }
    result = {}
    for view, width in widths.items():
        signals = np.stack(bent[view], axis=1)
        result[view] = (
            signals @ rng.standard_normal((signals.shape[1], width))
            + 0.35 * day @ rng.standard_normal((2, width))
            + 0.7 * rng.standard_normal((n, width))
        )
    return result
