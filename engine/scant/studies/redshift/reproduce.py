"""The publication's table for redshifts (Almosallam 2017, Table 6.7): ours beside theirs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.events import Finished, Report
from scant.learners.knocked_out import NAMES as RIVALS
from scant.studies.redshift.report import NAMES, PUBLISHED
from scant.studies.redshift.settings import FIXED
from scant.studies.reproduction import Fit, Runs, Score

SIZES = {"training_size": 4000, "validation_size": 1000, "test_size": 5000}
SMALL = {"training_size": 1000, "validation_size": 250, "test_size": 1000}
PLAIN: dict[str, Any] = {
    "features": "as given",
    "robust": "no",
    "start": "direct",
    "combine": "best",
    "restarts": 1,
}
EXPERIMENT = "photometric redshifts (published: m = 100)"
MISSING = "photometric redshifts with bands missing"
MIXED = "photometric redshifts, three samples mixed"
MIXED_SIZES = {"training_size": 7000, "validation_size": 1000, "test_size": 4000}
# Table 6.7, methods without a counterpart here: SPGP and the authors' programs.
THEIRS_ALONE = {
    "ANNz2": PUBLISHED["ANNz2"],
    "TPZ": PUBLISHED["TPZ (forest)"],
    "SPGP": (0.0575, 1.9509, 90.60, 98.67),
}
COVERED = "coverage of the 95% interval"


def reproduce(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Metrics of every structure, of baselines and of four bands' absence, seed after seed.

    Args:
        quick: One seed, few basis functions, a quarter of the rows.
        data: A folder with `photoz_sdss/galaxies.parquet` (see `boss`); None: the simulated survey.
        fit: `scant.fit`.
    """
    table, source = None, "simulated survey, stand-in for SDSS-DR12"
    if data is not None:
        table, source = boss(data), "SDSS-III BOSS DR10, stand-in for SDSS-DR12"
    for seed in range(1 if quick else 3):
        known: set[tuple[str, str, str]] = (
            set()
        )  # baselines of a seed are the same beside every variant
        for method, values in _variants(quick):
            seeds = {"seed": seed, "data_seed": seed}
            report = _run(fit, table, {**(SMALL if quick else SIZES), **values, **seeds})
            results = [one for one in _figures(method, report) if one[:3] not in known]
            known |= {one[:3] for one in results}
            yield [
                Score(experiment, source, name, metric, value, _published(name, metric))
                for experiment, name, metric, value in results
            ]
        if data is not None and not quick:
            yield from mixed(galaxies(data, sum(MIXED_SIZES.values()), seed=seed), seed, fit)
    yield [
        Score(EXPERIMENT, source, f"{method} (not here)", metric, math.nan, value)
        for method, values in THEIRS_ALONE.items()
        for metric, value in zip(NAMES, values)
    ]


def boss(folder: Path) -> pd.DataFrame:
    """10,000 galaxies of one survey, whose magnitudes are of one system (see `galaxies`)."""
    return galaxies(folder, sum(SIZES.values()), "boss_dr10")


def galaxies(folder: Path, count: int, sample: str = "", seed: int = 0) -> pd.DataFrame:
    """Real galaxies, as the study takes them.

    Args:
        folder: Holds `photoz_sdss/galaxies.parquet`: `sample`, `z_spec`, and magnitudes and their
            deviations `u`, `err_u` …
        count: How many, by chance.
        sample: Of which; "" takes them from all.
        seed: Of chance.

    Raises:
        BadInput: The file is missing.
    """
    path = folder / "photoz_sdss" / "galaxies.parquet"
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; put it there.")
    known = pd.read_parquet(path)
    known = known[known["sample"] == sample] if sample else known
    known = known.sample(count, random_state=seed)
    columns = {"z": known["z_spec"]}
    for band in "ugriz":
        columns |= {f"mag_{band}": known[band], f"mag_{band}_err": known[f"err_{band}"]}
    return pd.DataFrame(columns).astype(np.float64).reset_index(drop=True)


def mixed(table: pd.DataFrame, seed: int, fit: Fit) -> Runs:
    """Galaxies of several surveys, with errors gone wild; all but size and starts as the study has
    it."""
    source = "SDSS: main sample, early release, BOSS; 8,000 to learn from"
    for m in (25, 100):
        report = _run(fit, table, {**MIXED_SIZES, "n_basis": m, "restarts": 5, "seed": seed})
        yield [
            Score(MIXED, source, name, metric, value, None)
            for experiment, name, metric, value in _figures(f"GPVC m={m}, five starts", report)
            if experiment == EXPERIMENT and (m == 25 or name.startswith("GP"))
        ]


def _variants(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for m in (25,) if quick else (25, 100):
        for covariance in ("VL", "VD", "VC"):
            yield f"GP{covariance} m={m}", {"n_basis": m, "covariance": covariance}
        yield f"GPVC m={m}, as published", {"n_basis": m, "covariance": "VC", **PLAIN}


def _run(fit: Fit, data: pd.DataFrame | None, values: dict[str, Any]) -> Report:
    *_, last = fit("redshift", data, own=False, **FIXED | values)
    assert isinstance(last, Finished)
    return last.report


def _figures(method: str, report: Report) -> Iterator[tuple[str, str, str, float]]:
    """(experiment, method, metric, value) of a run, of its baselines, and with bands missing."""
    for m in report.metrics:
        if m.source == "run" and m.name in (*NAMES, COVERED):
            yield EXPERIMENT, method, m.name, m.value
        elif m.source == "baseline":
            yield EXPERIMENT, m.method, m.name, m.value
    for count, *scores in report.arrays["missing"].T:
        for name, error in zip((method, *RIVALS), scores):
            if np.isfinite(error):
                yield MISSING, name, f"RMSE, {count:.0f} missing", float(error)


def _published(method: str, metric: str) -> float | None:
    """The publication's figure for the same method at m = 100, whatever our m."""
    values = PUBLISHED.get(method.split()[0])
    return values[NAMES.index(metric)] if values and metric in NAMES else None
