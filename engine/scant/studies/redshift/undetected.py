"""Bands that were observed without a detection: what is known of them is that they are fainter.

Their magnitudes are integrated over, beyond the limits (columns `<band>_lim`). Given what else of a
row was measured they have the density of the inputs, a mixture of Gaussians, cut off at the
limits. For a prediction such a row becomes several, each with one draw of its undetected bands and
a weight, and the answer is their mixture. To learn from, it becomes one row with one draw; the
density is learned from such draws in turn (stochastic EM, Celeux & Diebolt 1985). Of several bands
one is drawn after the other, each given those before (Genz 1992); errors follow their bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import ndtr, ndtri
from scipy.stats import qmc
from torch import Tensor

from scant.models.gpz.input_density import Mixture, spread_mixture
from scant.predictive import MixturePredictive
from scant.studies.redshift.fluxes import as_magnitudes, flux_of, slope
from scant.studies.redshift.preprocessing import Features

DRAWS = 16  # of a row that is predicted
ROUNDS = 4  # of density and draws, until one no longer moves the other
COMPONENTS = 8  # of the density that rows are learned with
KEPT = 5  # Gaussians that are kept of the answer to each draw
LEAST = 1e-10  # probability of lying beyond a limit, below which a draw lies at it


def limits(features: Features, table: pd.DataFrame) -> Float[np.ndarray, "n b"]:
    """Limits of bands that were not detected, in the unit of the inputs x; NaN elsewhere."""
    found = np.full((len(table), len(features.bands)), np.nan)
    table = as_magnitudes(table, features.softening)
    for k, band in enumerate(features.bands):
        if f"{band}_lim" in table:
            limit = table[f"{band}_lim"].to_numpy(float, na_value=np.nan)
            there = band in table and table[band].notna().to_numpy()
            found[:, k] = np.where(there, np.nan, limit)
    b = len(features.bands)
    return np.asarray((found - features.mean[:b]) / features.scale[:b])


@dataclass(frozen=True)
class Drawn:
    """A table whose undetected bands were drawn.

    Attributes:
        table: Rows without them as they were, then the draws of the others.
        plain: Which rows were taken as they are.
        others: The others, each with `DRAWS` rows in turn.
        weights: Of these draws.
    """

    table: pd.DataFrame
    plain: Int[np.ndarray, " p"]
    others: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, "r k"]

    @classmethod
    def of(
        cls, features: Features, density: Mixture, table: pd.DataFrame, off: Sequence[str] = ()
    ) -> Drawn | None:
        """Draws of these rows; None where nothing is undetected.

        Args:
            features: From a table to the inputs.
            density: Of the inputs.
            table: Rows, with columns `<band>_lim`.
            off: Bands that count as not observed at all.
        """
        beyond = limits(features, table)
        beyond[:, [i for i, band in enumerate(features.bands) if band in off]] = np.nan
        mine = np.isfinite(beyond).any(1)
        if not mine.any():
            return None
        others, plain = np.flatnonzero(mine), np.flatnonzero(~mine)
        x = features.inputs(table.iloc[others], off)
        values, weights = draws(density, x, beyond[others], features.owners)
        copies = table.iloc[np.repeat(others, DRAWS)].reset_index(drop=True)
        copies = filled(features, copies, values.flatten(0, 1), np.repeat(beyond[others], DRAWS, 0))
        whole = pd.concat([table.iloc[plain], copies], ignore_index=True)
        return cls(whole, plain, others, weights)

    def mixed(self, told: MixturePredictive) -> MixturePredictive:
        """Distributions of the original rows, given those of `table`.

        Each draw is reduced to a few Gaussians; disagreement of draws is variance of the inputs.
        """
        few = told.rows(slice(len(self.plain), None)).reduced(KEPT)

        def by_row(values: Float[np.ndarray, "_ *k"]) -> Float[np.ndarray, "r _"]:
            return values.reshape(len(self.others), -1)

        weights = by_row(self.weights.reshape(-1, 1) * few.weights)
        made = MixturePredictive(weights, by_row(few.means), by_row(few.variances))
        between = (by_row(few.mean) - made.mean[:, None]) ** 2
        inputs = by_row(few.input_variance) + between
        sources = by_row(few.model_variance), by_row(few.noise_variance), inputs
        made = made.with_sources(*((self.weights * v).sum(1) for v in sources))
        plain = told.rows(slice(len(self.plain)))
        return MixturePredictive.gathered([(self.plain, plain), (self.others, made)])


def learned(features: Features, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A table to learn from, one draw in place of each band that was not detected.

    Args:
        features: From a table to the inputs, with centres and scales.
        table: Rows, with columns `<band>_lim`.
        seed: Of the draws.
    """
    beyond = limits(features, table)
    mine = np.flatnonzero(np.isfinite(beyond).any(1))
    if not len(mine):
        return table
    x = features.inputs(table)
    whole, generator = x.clone(), np.random.default_rng(seed)
    chosen = generator.random(len(mine))
    for _ in range(ROUNDS):
        values, weights = draws(
            spread_mixture(whole, COMPONENTS), x[mine], beyond[mine], features.owners
        )
        place = (chosen[:, None] > weights.cumsum(1)).sum(1).clip(max=DRAWS - 1)
        whole[mine] = values[np.arange(len(mine)), place]
    return filled(features, table, whole, beyond)


def filled(
    features: Features,
    table: pd.DataFrame,
    x: Float[Tensor, "n d"],
    beyond: Float[np.ndarray, "n b"],
) -> pd.DataFrame:
    """The table with undetected bands, and their errors, as inputs have them."""
    measured = x.cpu().numpy() * features.scale + features.mean
    table = table.copy()
    for k, band in enumerate(features.bands):
        hit = np.isfinite(beyond[:, k])
        if not hit.any():
            continue
        values, b = measured[hit, k], features.softening.get(band)
        values = values if b is None else flux_of(values, b)
        table.loc[hit, band] = values
        for place in np.flatnonzero(np.equal(features.owners, k))[1:]:
            error = np.exp(measured[hit, place])
            table.loc[hit, f"{band}_err"] = error if b is None else error / slope(values, b)
    return table


def draws(
    density: Mixture,
    x: Float[Tensor, "r d"],
    beyond: Float[np.ndarray, "r b"],
    owners: Sequence[int],
    count: int = DRAWS,
) -> tuple[Float[Tensor, "r k d"], Float[np.ndarray, "r k"]]:
    """Rows with draws of their undetected bands, and the weights of these.

    Bands that were never observed stay missing.

    Args:
        density: Of the inputs.
        x: Rows, NaN where something was not measured.
        beyond: Limits.
        owners: Of each input, its band.
        count: Draws of each row, always the same for the same row.
    """
    values = x.unsqueeze(1).repeat(1, count, 1)
    weights = np.zeros((len(x), count))
    kinds = np.column_stack([x.isnan().cpu().numpy(), np.isfinite(beyond)])
    every, member = np.unique(kinds, axis=0, return_inverse=True)
    for k, kind in enumerate(every):
        rows = np.flatnonzero(member.ravel() == k)
        missing, hidden = kind[: x.shape[1]], np.flatnonzero(kind[x.shape[1] :])
        wanted = missing & np.isin(owners, hidden)
        values[rows], weights[rows] = _of_kind(
            density, x[rows], missing, wanted, hidden, beyond[rows], count
        )
    return values, weights


def _of_kind(
    density: Mixture,
    x: Float[Tensor, "r d"],
    missing: Bool[np.ndarray, " d"],
    wanted: Bool[np.ndarray, " d"],
    hidden: Int[np.ndarray, " h"],
    beyond: Float[np.ndarray, "r b"],
    count: int,
) -> tuple[Float[Tensor, "r k d"], Float[np.ndarray, "r k"]]:
    """Draws of rows that lack the same inputs."""
    observed = torch.from_numpy(~missing).to(x.device)
    slope, offset, spread = density.conditional(observed)
    given = torch.einsum("kdo,no->nkd", slope, x[:, observed]) + offset
    mean, V = given.cpu().numpy(), spread.cpu().numpy()
    joint = density.log_joint(x, observed).cpu().numpy()
    std = np.sqrt(np.diagonal(V, axis1=1, axis2=2)[:, hidden])
    tail = ndtr((mean[:, :, hidden] - beyond[:, None, hidden]) / std)
    own = joint + np.log(np.maximum(tail, LEAST)).sum(2)
    share = np.exp(own - own.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    uniform = qmc.Sobol(1 + len(hidden), seed=0).random(count)
    weights, row = np.empty((len(x), count)), np.arange(len(x))
    made = x.unsqueeze(1).repeat(1, count, 1)
    along = V[:, :, hidden] @ np.linalg.inv(V[:, hidden[:, None], hidden])
    L = np.linalg.cholesky(V[:, hidden[:, None], hidden])
    for k, (which, *levels) in enumerate(uniform):
        c = (which > share.cumsum(1)).sum(1).clip(max=share.shape[1] - 1)
        z, weight = np.zeros((len(x), len(hidden))), np.ones(len(x))
        for j, level in enumerate(levels):
            before = (L[c, j, :j] * z[:, :j]).sum(1)
            low = (beyond[:, hidden[j]] - mean[row, c, hidden[j]] - before) / L[c, j, j]
            above = np.maximum(ndtr(-low), LEAST)
            z[:, j] = np.maximum(-ndtri(above * (1 - level)), low)
            weight *= above / np.maximum(tail[row, c, j], LEAST)
        weights[:, k] = weight
        away = (L[c] @ z[:, :, None])[:, :, 0]
        drawn = mean[row, c] + np.einsum("rdh,rh->rd", along[c], away)
        made[:, k] = torch.where(torch.from_numpy(wanted), torch.from_numpy(drawn), x)
    return made, weights / weights.sum(1, keepdims=True)
