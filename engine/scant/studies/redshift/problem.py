"""The redshift study as a plain regression, for baselines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Float
from numpy import ndarray

from scant.learners.knocked_out import Blocks
from scant.problem import Problem
from scant.studies.redshift.preprocessing import Features


def problem_of(features: Features, learn: pd.DataFrame, held: pd.DataFrame, target: str) -> Problem:
    """Regression of the target, in its unit, on bands and errors.

    Args:
        features: Features of the run.
        learn: Rows to learn from.
        held: Held-out rows.
        target: Column to predict.
    """
    return Problem(
        x=table_of(features, learn),
        y=learn[target].to_numpy(float),
        x_test=table_of(features, held),
        y_test=held[target].to_numpy(float),
        scores=("RMSE", "mean log-likelihood", "CRPS"),
        replaces=True,
        by=target,
        blocks=blocks_of(features),
        contrasts=features.colors,
    )


def blocks_of(features: Features) -> Blocks:
    """Band index of each column of `table_of`; -1: no row lacks it."""
    number = {band: k for k, band in enumerate(features.optional)}
    return np.array([number.get(features.bands[k], -1) for k in features.owners])


def table_of(features: Features, table: pd.DataFrame) -> Float[ndarray, "n d"]:
    """Inputs of baselines: bands and log errors as they are, NaN where missing."""
    table = table.copy()
    for band in features.bands:  # baselines take a limit for the magnitude of an undetected band
        if f"{band}_lim" in table and band in table:
            table[band] = table[band].fillna(table[f"{band}_lim"])
    measured = features.measured(table)
    return np.where(np.isfinite(measured), measured, np.nan)
