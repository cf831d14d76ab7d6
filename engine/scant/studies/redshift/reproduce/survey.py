"""Photometric redshifts (Almosallam 2017, Tables 6.7 and 6.8, Figures 6.11 to 6.17)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant import metrics
from scant.errors import BadInput
from scant.events import Report
from scant.learners.knocked_out import NAMES as RIVALS
from scant.studies.published import values as as_published
from scant.studies.redshift.published import SETTINGS
from scant.studies.redshift.report import NAMES, TABLE
from scant.studies.redshift.settings import FIXED
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score, finish

SIZES = {"training_size": 4000, "validation_size": 1000, "test_size": 5000}
SMALL = {"training_size": 1000, "validation_size": 250, "test_size": 1000}
SHAPES = ("VL", "VD", "VC")
MISSING = "photometric redshifts with bands missing"
MIXED = "photometric redshifts, three samples mixed"
MIXED_SIZES = {"training_size": 7000, "validation_size": 1000, "test_size": 4000}
COVERED = "coverage of the 95% interval"
SIZES_TRIED = (5, 10, 25, 50, 250, 500)  # basis functions of Figure 6.11 beside 100
SELECTED = "photometric redshifts, the surest rows"  # Figure 6.14
ADVANTAGE = "photometric redshifts, advantage of GPVC"  # Table 6.8
WITHIN = "photometric redshifts, share within an error"  # Figure 6.13
UNCERTAIN = "photometric redshifts, uncertainty by redshift"  # Figure 6.16
ERRORS = np.arange(0.01, 0.16, 0.02)
SELECTION_SCORES = ("RMSE", "mean log-likelihood", "F_0.15", "F_0.05")  # of `by_confidence`
LEAST_ROWS = 20  # least number of rows of a bin for a median


def runs(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Metrics of all structures and baselines, also with up to four bands missing, by seed.

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
        for index, (method, values) in enumerate(_variants(quick)):
            seeds = {"seed": seed, "data_seed": seed}
            case = (fit, table, {**values, **sizes, **seeds}, method, source, index == 0)
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
    """Scores of a run and, if `baselines`, of its baselines, which are the same for all methods."""
    report = _run(fit, table, values)
    figures = list(_figures(method, report))
    published = "as published" in method
    if published and values["n_basis"] in SIZES_TRIED:  # only Figure 6.11 shows them
        figures = [figure for figure in figures if figure[0] == TABLE]
    elif published:
        figures += _selection(method, report)
    return [
        Score(Experiment(experiment, source, "splits and starts"), name, metric, value)
        for experiment, name, metric, value in figures
        if baselines or name == method
    ]


def boss(folder: Path) -> pd.DataFrame:
    """10,000 galaxies of one survey with one system of magnitudes (see `galaxies`)."""
    return galaxies(folder, sum(SIZES.values()), "boss_dr10")


def galaxies(folder: Path, count: int, sample: str = "", seed: int = 0) -> pd.DataFrame:
    """Real galaxies, with columns of the study.

    Args:
        folder: Folder with `photoz_sdss/galaxies.parquet`: `sample`, `z_spec`, and magnitudes and
            their deviations `u`, `err_u` …
        count: Number of galaxies, drawn at random.
        sample: Sample to draw from; "": all.
        seed: Seed of the draw.

    Raises:
        BadInput: The file is missing.
    """
    path = folder / "photoz_sdss" / "galaxies.parquet"
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in {path.parent}; put it there.")
    table = pd.read_parquet(path)
    table = table[table["sample"] == sample] if sample else table
    table = table.sample(count, random_state=seed)
    columns = {"z": table["z_spec"]}
    for band in "ugriz":
        columns |= {f"mag_{band}": table[band], f"mag_{band}_err": table[f"err_{band}"]}
    return pd.DataFrame(columns).astype(np.float64).reset_index(drop=True)


def _mixed(folder: Path, seed: int, m: int, fit: Fit) -> list[Score]:
    """Scores on galaxies of several surveys, some with extreme errors; all but size and starts as
    in the study."""
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
    # A quick run takes any number outside SIZES_TRIED, since those have fewer scores.
    published = as_published(SETTINGS) | ({"n_basis": 20} if quick else {})
    for covariance in SHAPES:
        name = f"GP{covariance} m={published['n_basis']}, as published"
        yield name, {**published, "covariance": covariance}
    for m in () if quick else SIZES_TRIED:
        for covariance in SHAPES:
            name = f"GP{covariance} m={m}, as published"
            yield name, {**published, "n_basis": m, "covariance": covariance}
    for m in (25,) if quick else (25, 100):
        for covariance in SHAPES:
            yield f"GP{covariance} m={m}, ours", {**FIXED, "n_basis": m, "covariance": covariance}


def _run(fit: Fit, data: pd.DataFrame | None, values: dict[str, Any]) -> Report:
    return finish(fit("redshift", data, own=False, **values))


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


def _selection(method: str, report: Report) -> Iterator[tuple[str, str, str, float]]:
    """Scores of the surest rows, by error, and medians of uncertainties by redshift (`_figures`).

    The last two use the test rows in the report.
    """
    for share, *scores, _ in report.arrays["kept"].T[1::2]:  # every tenth percent
        for metric, value in zip(SELECTION_SCORES, scores):
            yield SELECTED, method, f"{metric}, {100 * share:.0f}% selected", float(value)
    z, mean = report.arrays["z_true"], report.arrays["z_mean"]
    for error in ERRORS:
        yield WITHIN, method, f"F, error {error:.2f}", metrics.fraction_within(z, mean, error)
    bin_of_row = np.floor(z * 10).astype(int)
    bins, count = np.unique(bin_of_row, return_counts=True)  # below 0, too, by errors of redshifts
    for k in bins[count >= LEAST_ROWS]:
        for source in ("model", "noise"):
            median = np.median(report.arrays[f"std_{source}"][bin_of_row == k])
            yield (
                UNCERTAIN,
                method,
                f"deviation of the {source}, z={k / 10 + 0.05:.2f}",
                float(median),
            )


def advantages(scores: Sequence[Score]) -> list[Score]:
    """Relative advantage of GPVC over others, averaged over the selected shares (Table 6.8).

    It is 100 (other - GPVC) / |other| for the RMSE, and its negative for scores to be maximized:
    positive where GPVC is better.
    """
    values_by_key: dict[tuple[str, str], list[float]] = {}
    selected = [score for score in scores if score.experiment.name == SELECTED]
    for score in selected:
        values_by_key.setdefault((score.method, score.metric), []).append(score.value)
    result = []
    for other in sorted({m for m, _ in values_by_key if not m.startswith("GPVC")}):
        best = other.replace(other[:4], "GPVC", 1)
        for name in SELECTION_SCORES:
            sign = 1 if name == "RMSE" else -1
            pairs = [
                (values, values_by_key[best, metric])
                for (method, metric), values in values_by_key.items()
                if method == other
                and metric.startswith(f"{name},")
                and (best, metric) in values_by_key
            ]
            for seed in range(min((min(map(len, pair)) for pair in pairs), default=0)):
                gains = [
                    100 * sign * (a[seed] - b[seed]) / abs(a[seed]) for a, b in pairs if a[seed]
                ]
                experiment = selected[0].experiment._replace(name=ADVANTAGE)
                result.append(
                    Score(experiment, other, f"advantage in {name}", float(np.mean(gains)))
                )
    return result
