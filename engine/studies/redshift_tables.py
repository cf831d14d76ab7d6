"""The publication's table for redshifts (Almosallam 2017, Table 6.7): ours beside theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from engine.events import Finished, Report
from engine.fitting import fit
from engine.studies.redshift_report import NAMES, PUBLISHED

SIZES = {"training_size": 4000, "validation_size": 1000, "test_size": 5000}
SMALL = {"training_size": 1000, "validation_size": 250, "test_size": 1000}
PLAIN: dict[str, Any] = {
    "features": "as given",
    "robust": False,
    "start": "direct",
    "combine": "best",
    "restarts": 1,
}
COVERED = "coverage of the 95% interval"


def reproduce(quick: bool, data: str | None) -> pd.DataFrame:
    """Metrics of every structure, of baselines and of four bands' absence, with spread over seeds.

    Args:
        quick: One seed, few basis functions, a quarter of the rows: a minute.
        data: A file or data set; None: the simulated survey, which is a stand-in for SDSS.

    Returns:
        Columns `method`, `metric`, `ours`, `spread` (deviation over seeds of split and start) and
        `published` (100,000 SDSS-DR12 galaxies, m = 100: another sample).
    """
    found: dict[tuple[str, str], list[float]] = {}
    for seed in range(1 if quick else 3):
        for method, values in _variants(quick):
            report = _run(data, {**(SMALL if quick else SIZES), **values, "seed": seed})
            for name, metric, value in _figures(method, report):
                found.setdefault((name, metric), []).append(value)
    return pd.DataFrame(
        [
            {
                "method": method,
                "metric": metric,
                "ours": round(float(np.mean(values)), 4),
                "spread": round(float(np.std(values)), 4) if len(values) > 1 else None,
                "published": _published(method, metric),
            }
            for (method, metric), values in found.items()
        ]
    )


def _variants(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for m in (25,) if quick else (25, 100):
        for covariance in ("VL", "VD", "VC"):
            yield f"GP{covariance} m={m}", {"n_basis": m, "covariance": covariance}
        yield f"GPVC m={m}, as published", {"n_basis": m, "covariance": "VC", **PLAIN}


def _run(data: str | None, values: dict[str, Any]) -> Report:
    *_, last = fit("redshift", data, **values)
    assert isinstance(last, Finished)
    return last.report


def _figures(method: str, report: Report) -> Iterator[tuple[str, str, float]]:
    """(method, metric, value) of a run, of its baselines, and with bands missing."""
    for m in report.metrics:
        if m.source == "run" and m.name in (*NAMES, COVERED):
            yield method, m.name, m.value
        elif m.source == "baseline":
            yield m.method, m.name, m.value
    for count, ours, forest in report.arrays["missing"].T:
        yield method, f"RMSE, {count:.0f} bands missing", float(ours)
        yield "random forest", f"RMSE, {count:.0f} bands missing", float(forest)


def _published(method: str, metric: str) -> float | None:
    """The publication's figure for the same method at m = 100, whatever our m."""
    values = PUBLISHED.get(method.split()[0])
    return values[NAMES.index(metric)] if values and metric in NAMES else None
