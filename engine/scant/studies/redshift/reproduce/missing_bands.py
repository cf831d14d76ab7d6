"""Bands missing from rows to predict, or to learn from (Almosallam 2017, Figures 6.17 to 6.19).

Section 6.4 does not state how its random forest handles missing values. Ours is trained on them as
in scikit-learn, which sends rows with a gap to the side of a split that fits them better; in
prediction a tree stops at a split by a missing band (`forest_moments`).

GPVC is trained on magnitudes with gaps: principal components, as in the preset (section 6.3.1),
need complete rows. A run with gaps in training takes 50 to 200 seconds of a core, and all of them
some two hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from numpy import ndarray

from scant import metrics
from scant.studies.figure_data import PREDICTIONS, FigureData
from scant.studies.published import values as as_published
from scant.studies.redshift.problem import table_of
from scant.studies.redshift.published import SETTINGS
from scant.studies.redshift.reproduce.noise_and_gaps import forest_moments
from scant.studies.redshift.reproduce.survey import MISSING, SIZES, SMALL, boss
from scant.studies.redshift.simulate import simulate
from scant.studies.reproduction import Experiment, Fit, Run, Runs, Score, finish
from scant.studies.split import TEST, TRAIN, VALIDATION

TRAINED = "photometric redshifts, learning with bands missing"
BANDS = [f"mag_{band}" for band in "ugriz"]
ERRORS = [f"{band}_err" for band in BANDS]
DRAWN = 200  # test rows, in random order, in each panel of Figure 6.18
COUNTS = range(5)  # of missing bands
SHARES = range(5, 100, 5)  # percentages of the magnitudes to learn from that are missing


class Predicted(NamedTuple):
    """Predictions of test rows: mean and variance of the redshift."""

    method: str
    mean: Float[ndarray, " n"]
    variance: Float[ndarray, " n"]


def runs(quick: bool, data: Path | None, fit: Fit) -> Runs:
    """Scores with bands missing, of GPVC and of a random forest, seed after seed.

    Args:
        quick: One seed, a quarter of the rows, two shares, and few basis functions and trees.
        data: A folder with `photoz_sdss/galaxies.parquet`; None: the simulated survey.
        fit: `scant.fit`.
    """
    m, shares = (20, SHARES[1::9]) if quick else (200, SHARES)
    source = (
        "simulated survey, stand-in for SDSS-DR12"
        if data is None
        else "SDSS-III BOSS DR10, stand-in for SDSS-DR12"
    )
    for seed in range(1 if quick else 3):
        table = partial(divided, data, SMALL if quick else SIZES, seed)
        experiment = Experiment(MISSING, source, "splits and starts")
        yield Run(f"{MISSING}, m={m}, seed {seed}", partial(_tested, fit, table, m, experiment))
        experiment = experiment._replace(name=TRAINED)
        for share in shares:
            learn = partial(_trained, fit, table, m, share, experiment)
            yield Run(f"{TRAINED}, {share}%, seed {seed}", learn)


def divided(data: Path | None, sizes: dict[str, int], seed: int) -> pd.DataFrame:
    """Galaxies with a column `split`, in random order, and `seed` in `attrs`."""
    count = sum(sizes.values())
    table = simulate(count, seed) if data is None else boss(data)
    roles = np.repeat([TRAIN, VALIDATION, TEST], list(sizes.values()))
    table = table.sample(count, random_state=seed, ignore_index=True).assign(split=roles)
    table.attrs["seed"] = seed
    return table


def _tested(fit: Fit, table: Any, m: int, experiment: Experiment) -> Iterator[Score | FigureData]:
    """Scores of Figure 6.17, and predictions of the first split (Figure 6.18)."""
    galaxies, panels = table(), []
    for count, test, answers in tested(fit, galaxies, m):
        for metric, method, value in _scores(test, answers):
            yield Score(experiment, method, f"{metric}, {count} missing", value)
        for method, mean, variance in answers if count else ():
            panel = f"{method.removesuffix(', as published')}, {count} missing"
            columns = [np.full(len(test), panel), test["z"], mean, np.sqrt(variance)]
            panels.append(pd.DataFrame(dict(zip(PREDICTIONS, columns))).head(DRAWN))
    if galaxies.attrs["seed"] == 0:
        yield FigureData("A17 Figure 6.18", pd.concat(panels))


def tested(
    fit: Fit, table: pd.DataFrame, m: int
) -> Iterator[tuple[int, pd.DataFrame, list[Predicted]]]:
    """Learn from complete rows, and predict test rows with 0 to 4 bands missing (section 6.4.1).

    Args:
        fit: `scant.fit`.
        table: Galaxies (`divided`).
        m: Number of basis functions, and of trees.

    Yields:
        Number of missing bands, the test rows, and predictions of both methods.
    """
    rng = np.random.default_rng(table.attrs["seed"])
    test = table[table["split"] == TEST]
    queries = [without(test, rng.random((len(test), 5)).argsort(1) < count) for count in COUNTS]
    for count, answers in zip(COUNTS, _answers(fit, table, m, queries)):
        yield count, test, answers


def _trained(fit: Fit, table: Any, m: int, share: int, experiment: Experiment) -> Iterator[Score]:
    """Scores of Figure 6.19: complete test rows, after learning from incomplete ones.

    Validation rows are complete. Rows without any magnitude are left out.
    """
    galaxies = table()
    rng = np.random.default_rng(galaxies.attrs["seed"])
    hidden = rng.random((len(galaxies), 5)) < share / 100
    hidden[galaxies["split"] != TRAIN] = False
    learn = without(galaxies, hidden).iloc[np.flatnonzero(~hidden.all(1))]
    test = galaxies[galaxies["split"] == TEST]
    [answers] = _answers(fit, learn, m, [test])
    for metric, method, value in _scores(test, answers):
        yield Score(experiment, method, f"{metric}, {share}% missing", value)


def without(table: pd.DataFrame, hidden: Bool[ndarray, "n 5"]) -> pd.DataFrame:
    """Remove magnitudes and their errors from a copy of the table."""
    table = table.copy()
    for columns in (BANDS, ERRORS):
        table[columns] = table[columns].mask(hidden)
    return table


def _answers(
    fit: Fit, table: pd.DataFrame, m: int, queries: list[pd.DataFrame]
) -> Iterator[list[Predicted]]:
    """Yield predictions of each table by GPVC and a random forest, trained on the same rows."""
    seed = table.attrs["seed"]
    sizes = dict.fromkeys(SIZES, 0)  # the column `split` divides the rows
    values = {**as_published(SETTINGS), **sizes, "n_basis": m, "covariance": "VC", "seed": seed}
    events = fit("redshift", table, own=False, **values)
    finish(events)
    fitted = events.study.posterior
    learn = table[table["split"] == TRAIN]
    x, y = table_of(fitted.features, learn), learn["z"].to_numpy()
    for query in queries:
        gpvc = fitted.score(query).predictive
        forest = forest_moments(x, y, table_of(fitted.features, query), m, seed)
        yield [
            Predicted(f"GPVC m={m}, as published", gpvc.mean, gpvc.variance),
            Predicted(f"random forest, {m} trees", *forest),
        ]


def _scores(test: pd.DataFrame, answers: list[Predicted]) -> Iterator[tuple[str, str, float]]:
    """Metric, method and value of predictions."""
    z = test["z"].to_numpy()
    for method, mean, variance in answers:
        yield "RMSE", method, metrics.rmse(z, mean)
        yield "mean log-likelihood", method, metrics.mean_log_likelihood(z, mean, variance)
        for error in (0.15, 0.05):
            yield f"F_{error}", method, metrics.fraction_within(z, mean, error)
