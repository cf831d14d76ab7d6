"""Photometric redshifts (Almosallam 2017, Table 6.7 and Figure 6.17)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.events import Finished, Report
from scant.learners.knocked_out import NAMES as RIVALS
from scant.studies.published import values as as_published
from scant.studies.redshift.published import SETTINGS
from scant.studies.redshift.report import NAMES, TABLE
from scant.studies.redshift.settings import FIXED
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score

SIZES = {"training_size": 4000, "validation_size": 1000, "test_size": 5000}
SMALL = {"training_size": 1000, "validation_size": 250, "test_size": 1000}
SHAPES = ("VL", "VD", "VC")
MISSING = "photometric redshifts with bands missing"
MIXED = "photometric redshifts, three samples mixed"
MIXED_SIZES = {"training_size": 7000, "validation_size": 1000, "test_size": 4000}
COVERED = "coverage of the 95% interval"


def runs(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Metrics of every structure, of baselines and of four bands' absence, seed after seed.

    Args:
        quick: One seed, few basis functions, a quarter of the rows.
        data: A folder with `photoz_sdss/galaxies.parquet` (see `boss`); None: the simulated survey.
        fit: `scant.fit`.
    """
    table, source = None, "simulated survey, stand-in for SDSS-DR12"
    if data is not None:
        table, source = boss(data), "SDSS-III BOSS DR10, stand-in for SDSS-DR12"
    sizes = SMALL if quick else SIZES
    for seed in range(1 if quick else 3):
        for place, (method, values) in enumerate(_variants(quick)):
            seeds = {"seed": seed, "data_seed": seed}
            case = (fit, table, {**values, **sizes, **seeds}, method, source, place == 0)
            yield Run(f"{TABLE}, {method}, seed {seed}", partial(_scores, *case))
        if data is not None and not quick:
            for m in (25, 100):
                yield Run(f"{MIXED}, m={m}, seed {seed}", partial(_mixed, data, seed, m, fit))


def _scores(
    fit: Fit,
    table: pd.DataFrame | None,
    values: dict[str, Any],
    method: str,
    source: str,
    baselines: bool,
) -> list[Score]:
    """Scores of a run; and, if asked for, of its baselines, which do not depend on the method."""
    return [
        Score(Experiment(experiment, source, "splits and starts"), name, metric, value)
        for experiment, name, metric, value in _figures(method, _run(fit, table, values))
        if baselines or name == method
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


def _mixed(folder: Path, seed: int, m: int, fit: Fit) -> list[Score]:
    """Galaxies of several surveys, with errors gone wild; all but size and starts as the study has
    it."""
    source = "SDSS: main sample, early release, BOSS; 8,000 to learn from"
    experiment = Experiment(MIXED, source, "galaxies, splits and starts")
    table = galaxies(folder, sum(MIXED_SIZES.values()), seed=seed)
    report = _run(fit, table, {**FIXED, **MIXED_SIZES, "n_basis": m, "restarts": 5, "seed": seed})
    return [
        Score(experiment, name, metric, value)
        for part, name, metric, value in _figures(f"GPVC m={m}, five starts", report)
        if part == TABLE and (m == 25 or name.startswith("GP"))
    ]


def _variants(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of methods, and their settings: as published for Table 6.7, and ours."""
    published = as_published(SETTINGS) | ({"n_basis": 25} if quick else {})
    for covariance in SHAPES:
        name = f"GP{covariance} m={published['n_basis']}, as published"
        yield name, {**published, "covariance": covariance}
    for m in (25,) if quick else (25, 100):
        for covariance in SHAPES:
            yield f"GP{covariance} m={m}, ours", {**FIXED, "n_basis": m, "covariance": covariance}


def _run(fit: Fit, data: pd.DataFrame | None, values: dict[str, Any]) -> Report:
    *_, last = fit("redshift", data, own=False, **values)
    assert isinstance(last, Finished)
    return last.report


def _figures(method: str, report: Report) -> Iterator[tuple[str, str, str, float]]:
    """(experiment, method, metric, value) of a run, of its baselines, and with bands missing."""
    for m in report.metrics:
        if m.source == "run" and m.name in (*NAMES, COVERED):
            yield TABLE, method, m.name, m.value
        elif m.source == "baseline":
            yield TABLE, m.method, m.name, m.value
    for count, *scores in report.arrays["missing"].T:
        for name, error in zip((method, *RIVALS), scores):
            if np.isfinite(error):
                yield MISSING, name, f"RMSE, {count:.0f} missing", float(error)
