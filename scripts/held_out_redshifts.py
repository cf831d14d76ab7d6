"""Redshifts for `scripts/held_out.py`: surveys, rows held back, with up to four bands missing.

Baselines are those of a redshift run's report (`scant.learners.knocked_out`), but here they learn
from all rows: a random forest, gradient boosting, and CatBoost where it is installed. They have all
colors, too, and for rows that lack bands they learn from copies of the rows with bands removed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import h5py
import numpy as np
import pandas as pd
from scipy.stats import kstest

from held_out_cases import REAL_DATA, Held, Scores
from scant.deadline import NEVER
from scant.learners.knocked_out import learners, without
from scant.learners.learner import Learner
from scant.predictive import MixturePredictive
from scant.problem import Problem
from scant.studies.redshift.bands import by_wavelength
from scant.studies.redshift.colors import color_matrix, colors

MOST_MISSING = 4
TARGET = "z_spec"
PARTS = ("weight", "mean", "std")  # of the densities that `--densities columns` adds


def sdss(seed: int, sample: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """SDSS galaxies of one or all samples, 8,000 to learn from and 4,000 to predict."""
    read = pd.read_parquet(REAL_DATA / "photoz_sdss" / "galaxies.parquet")
    read = read if sample is None else read[read["sample"] == sample]
    table = read.drop(columns=["id", "sample"]).sample(12_000, random_state=seed)
    return table[:8000], table[8000:]


def lsst(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulated galaxies of six bands, some not detected; 5,700 to learn from."""
    read = pd.read_parquet(REAL_DATA / "photoz_lsst_sim" / "dc2_galaxies.parquet")
    table = read.drop(columns="id").rename(columns={"z_true": TARGET})
    table = table.sample(frac=1, random_state=seed)
    return table[:5700], table[5700:]


def rail(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """RAIL's training file, one half of it to learn from; magnitude 99 is a non-detection."""
    with h5py.File(REAL_DATA / "photoz_rail" / "test_dc2_training_9816.hdf5") as file:
        table = pd.DataFrame({name: column[:] for name, column in file["photometry"].items()})
    table = table.drop(columns="id").rename(columns={"redshift": TARGET})
    table = table.sample(frac=1, random_state=seed)
    half = len(table) // 2
    return table[:half], table[half:]


TABLES: dict[str, Callable[[int], tuple[pd.DataFrame, pd.DataFrame]]] = {
    "sdss": sdss,
    "boss": partial(sdss, sample="boss_dr10"),
    "lsst": lsst,
    "rail": rail,
}


def held(
    table: Callable[[int], tuple[pd.DataFrame, pd.DataFrame]], missing: int, seed: int
) -> Held:
    """Rows to learn from, all complete, and rows that each lack `missing` bands drawn at random.

    A band that is missing lacks its error and its limit, too.
    """
    train, test = (rows.reset_index(drop=True) for rows in table(seed))
    y, test = test[TARGET].to_numpy(), test.drop(columns=TARGET)
    of_column = [name.removesuffix("_lsst").split("_")[-1] for name in test]
    bands = list(dict.fromkeys(of_column))
    block = np.array([bands.index(band) for band in of_column])
    drawn = np.random.default_rng(seed).random((len(test), len(bands))).argsort(axis=1)
    test = pd.DataFrame(without(test.to_numpy(), block, drawn < missing), columns=test.columns)
    x, new = (_at_limits(rows) for rows in (train.drop(columns=TARGET), test))
    block = block[[name in x for name in test]]
    magnitudes = by_wavelength([name for name in x if "err" not in name])
    neighbors = np.zeros((len(magnitudes) - 1, x.shape[1]))
    neighbors[:, x.columns.get_indexer(magnitudes)] = color_matrix(len(magnitudes))[1:]
    problem = Problem(
        x.to_numpy(),
        train[TARGET].to_numpy(),
        new.to_numpy(),
        y,
        scores=(),
        blocks=block,
        contrasts=colors(neighbors),
    )
    baselines = {each.name: partial(_predicted, each, problem) for each in learners(seed)}
    settings = (f"target={TARGET}",)
    return Held("redshift", train, test, partial(_scores, y), baselines, settings, densities=True)


def _at_limits(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the limit as the magnitude of a band that was not detected, for baselines."""
    limits = table.filter(regex="^lim_").rename(columns=lambda name: name.removeprefix("lim_"))
    return table.fillna(limits).drop(columns=table.filter(regex="^lim_").columns)


def _predicted(learner: Learner, problem: Problem) -> pd.DataFrame:
    predictive = learner.predict(problem, NEVER)
    assert isinstance(predictive, MixturePredictive), "baselines of values predict mixtures"
    low, high = predictive.quantile(np.array([0.025, 0.975]))
    columns = {**predictive.columns(), "lo95": low, "hi95": high}
    return pd.DataFrame({"mean": predictive.mean, **columns})


def _scores(z: np.ndarray, prediction: pd.DataFrame) -> Scores:
    """Scores of the means and of the mixtures, here as everywhere of the rows in their order."""
    error = prediction["mean"].to_numpy() - z
    low, high = np.quantile(error / (1 + z), [0.25, 0.75])
    weight, mean, std = (
        prediction.filter(regex=rf"^{part}_\d+$").fillna(part == "std").to_numpy(float)
        for part in PARTS
    )
    mixture = MixturePredictive(weight, mean, std**2)
    covered = prediction["lo95"].le(z) & prediction["hi95"].ge(z)
    return {
        "RMSE": float(np.sqrt(np.mean(error**2))),
        "σ_IQR": float(high - low) / 1.349,
        "log-likelihood": float(mixture.log_prob(z).mean()),
        "CRPS": float(mixture.crps(z).mean()),
        "PIT-KS": float(kstest(mixture.cdf(z), "uniform").statistic),
        "coverage": 100 * float(covered.mean()),
    }
