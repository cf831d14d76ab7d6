"""A simulated cohort: patients, tissue samples of each, and survival times.

The stage of the disease is visible in a part of the tissue only, in nonlinear ways (cells grow
larger, then fall apart), and determines only a part of the survival time. Some times are censored.
The sizes follow Kandemir & Hamprecht (2015), section 5.2: 77 patients, several rows each.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from scant.studies.aggregation.thinning import Seeded, thinned

PATIENTS = 77
ROWS = (6, 18)  # minimum and maximum number of rows of a patient
WIDTHS = {"intensity": 10, "texture": 14, "shape": 12, "stain": 6}  # features of each view
MEDIAN = 26.0  # months
SPREAD = 0.30  # standard deviation of the log time that tissue does not explain


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """918 rows of 77 patients.

    Returns:
        `patient`, `time` (months), `event` (0: censored), features in four views; `stain` depends
        on the laboratory's day and not on the patient.
    """
    return thinned(cohort(settings.data_seed), rows)


def cohort(
    seed: int = 0, patients: int = PATIENTS, widths: Mapping[str, int] = WIDTHS
) -> pd.DataFrame:
    """Simulate `patients` patients with `widths` features in each view (see `demo`)."""
    rng = np.random.default_rng([seed, 41])
    stage = rng.uniform(-1.6, 1.6, patients)
    log_time = np.log(MEDIAN) - 0.75 * stage + SPREAD * rng.standard_normal(patients)
    lived = np.exp(log_time)
    observed = rng.uniform(8, 90, patients)  # time of last contact
    row_counts = np.arange(ROWS[0], ROWS[1] + 1)
    count = rng.permutation(np.resize(row_counts, patients))
    patient_index = np.repeat(np.arange(patients), count)
    head = pd.DataFrame(
        {
            "patient": [f"patient {i + 1:02}" for i in patient_index],
            "time": np.round(np.minimum(lived, observed), 1).clip(0.1)[patient_index],
            "event": (lived <= observed).astype(int)[patient_index],
        }
    )
    day = rng.standard_normal((patients, 2))[patient_index]
    features = _tissue(rng, stage[patient_index], day, widths)
    tables = [
        pd.DataFrame(values, columns=[f"{view}.f{i:02}" for i in range(values.shape[1])])
        for view, values in features.items()
    ]
    return pd.concat([head, *tables], axis=1).round({c: 4 for t in tables for c in t})


def _tissue(
    rng: np.random.Generator,
    stage: Float[np.ndarray, " n"],
    day: Float[np.ndarray, "n 2"],
    widths: Mapping[str, int],
) -> dict[str, Float[np.ndarray, "n v"]]:
    """Features of each row by view, with an effect of the laboratory's day on all of them."""
    n = len(stage)
    tumor_share = rng.beta(2.0, 1.2, n)  # share of the patch that is tumor
    visible_stage = stage * tumor_share
    signals_by_view = {
        "intensity": [np.cos(1.5 * visible_stage + 0.7), tumor_share],
        "texture": [
            np.sin(1.6 * visible_stage),
            tumor_share * np.cos(1.6 * visible_stage),
            tumor_share,
        ],
        "shape": [
            np.exp(-((visible_stage - 0.5) ** 2) / 0.3),
            np.exp(-((visible_stage + 0.6) ** 2) / 0.3),
            tumor_share**2,
        ],
        "stain": [np.zeros(n)],
    }
    result = {}
    for view, width in widths.items():
        signals = np.stack(signals_by_view[view], axis=1)
        result[view] = (
            signals @ rng.standard_normal((signals.shape[1], width))
            + 0.35 * day @ rng.standard_normal((2, width))
            + 0.7 * rng.standard_normal((n, width))
        )
    return result
