"""Bands that were observed without a detection: their magnitudes are fainter than a limit.

Predictions integrate over magnitudes beyond the limits (columns `<band>_lim`). Given the measured
part of a row, these have the density of the inputs, a mixture of Gaussians, truncated at the
limits. For a prediction the row becomes several, each with one draw of its undetected bands and a
weight, and the result is their mixture. In training it becomes one row with one draw, and the
density is learned from these draws in turn (stochastic EM, Celeux & Diebolt 1985). Several bands
are drawn one by one, each given the bands before (Genz 1992); errors follow their bands.
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

DRAWS = 16  # draws of a row that is predicted
ROUNDS = 4  # rounds of density and draws; later ones change neither
COMPONENTS = 8  # components of the density in training
KEPT = 5  # Gaussians that are kept of the prediction of each draw
LEAST = 1e-10  # least probability beyond a limit; a draw is at the limit if it is smaller


def limits(features: Features, table: pd.DataFrame) -> Float[np.ndarray, "n b"]:
    """Limits of bands that were not detected, in the unit of the inputs x; NaN elsewhere."""
    values = np.full((len(table), len(features.bands)), np.nan)
    table = as_magnitudes(table, features.softening)
    for k, band in enumerate(features.bands):
        if f"{band}_lim" in table:
            limit = table[f"{band}_lim"].to_numpy(float, na_value=np.nan)
            detected = band in table and table[band].notna().to_numpy()
            values[:, k] = np.where(detected, np.nan, limit)
    b = len(features.bands)
    return np.asarray((values - features.mean[:b]) / features.scale[:b])


@dataclass(frozen=True)
class Drawn:
    """A table with draws of its undetected bands.

    Attributes:
        table: Rows without undetected bands, then the draws of the others.
        plain: Indices of rows without undetected bands.
        others: Indices of the others, with `DRAWS` rows each.
        weights: Weights of these draws.
    """

    table: pd.DataFrame
    plain: Int[np.ndarray, " p"]
    others: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, "r k"]

    @classmethod
    def of(
        cls, features: Features, density: Mixture, table: pd.DataFrame, off: Sequence[str] = ()
    ) -> Drawn | None:
        """Draw the undetected bands of rows; None if there are none.

        Args:
            features: Map from a table to the inputs.
            density: Density of the inputs.
            table: Rows, with columns `<band>_lim`.
            off: Bands that count as not observed at all.
        """
        bounds = limits(features, table)
        bounds[:, [i for i, band in enumerate(features.bands) if band in off]] = np.nan
        undetected = np.isfinite(bounds).any(1)
        if not undetected.any():
            return None
        others, plain = np.flatnonzero(undetected), np.flatnonzero(~undetected)
        x = features.inputs(table.iloc[others], off)
        values, weights = draws(density, x, bounds[others], features.owners)
        copies = table.iloc[np.repeat(others, DRAWS)].reset_index(drop=True)
        copies = filled(features, copies, values.flatten(0, 1), np.repeat(bounds[others], DRAWS, 0))
        whole = pd.concat([table.iloc[plain], copies], ignore_index=True)
        return cls(whole, plain, others, weights)

    def mixed(self, prediction: MixturePredictive) -> MixturePredictive:
        """Predictive distributions of the original rows, from those of `table`.

        Each draw is reduced to a few Gaussians; disagreement of draws is variance of the inputs.
        """
        reduced = prediction.rows(slice(len(self.plain), None)).reduced(KEPT)

        def by_row(values: Float[np.ndarray, "_ *k"]) -> Float[np.ndarray, "r _"]:
            return values.reshape(len(self.others), -1)

        weights = by_row(self.weights.reshape(-1, 1) * reduced.weights)
        mixture = MixturePredictive(weights, by_row(reduced.means), by_row(reduced.variances))
        between = (by_row(reduced.mean) - mixture.mean[:, None]) ** 2
        inputs = by_row(reduced.input_variance) + between
        sources = by_row(reduced.model_variance), by_row(reduced.noise_variance), inputs
        mixture = mixture.with_sources(*((self.weights * v).sum(1) for v in sources))
        plain = prediction.rows(slice(len(self.plain)))
        return MixturePredictive.gathered([(self.plain, plain), (self.others, mixture)])


def learned(features: Features, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return a table to learn from, with one draw for each undetected band.

    Args:
        features: Map from a table to the inputs, with centres and scales.
        table: Rows, with columns `<band>_lim`.
        seed: Seed of the draws.
    """
    bounds = limits(features, table)
    undetected = np.flatnonzero(np.isfinite(bounds).any(1))
    if not len(undetected):
        return table
    x = features.inputs(table)
    completed, generator = x.clone(), np.random.default_rng(seed)
    chosen = generator.random(len(undetected))
    for _ in range(ROUNDS):
        values, weights = draws(
            spread_mixture(completed, COMPONENTS),
            x[undetected],
            bounds[undetected],
            features.owners,
        )
        draw = (chosen[:, None] > weights.cumsum(1)).sum(1).clip(max=DRAWS - 1)
        completed[undetected] = values[np.arange(len(undetected)), draw]
    return filled(features, table, completed, bounds)


def filled(
    features: Features,
    table: pd.DataFrame,
    x: Float[Tensor, "n d"],
    bounds: Float[np.ndarray, "n b"],
) -> pd.DataFrame:
    """Return the table with undetected bands and their errors from the inputs x."""
    measured = x.cpu().numpy() * features.scale + features.mean
    table = table.copy()
    for k, band in enumerate(features.bands):
        undetected = np.isfinite(bounds[:, k])
        if not undetected.any():
            continue
        values, b = measured[undetected, k], features.softening.get(band)
        values = values if b is None else flux_of(values, b)
        table.loc[undetected, band] = values
        for coordinate in np.flatnonzero(np.equal(features.owners, k))[1:]:
            error = np.exp(measured[undetected, coordinate])
            table.loc[undetected, f"{band}_err"] = error if b is None else error / slope(values, b)
    return table


def draws(
    density: Mixture,
    x: Float[Tensor, "r d"],
    bounds: Float[np.ndarray, "r b"],
    owners: Sequence[int],
    count: int = DRAWS,
) -> tuple[Float[Tensor, "r k d"], Float[np.ndarray, "r k"]]:
    """Draw the undetected bands of rows; return the rows, and weights of the draws.

    Bands that were not observed stay missing.

    Args:
        density: Density of the inputs.
        x: Rows, NaN where not measured.
        bounds: Limits of undetected bands.
        owners: Band index of each input.
        count: Draws of each row, always the same for the same row.
    """
    values = x.unsqueeze(1).repeat(1, count, 1)
    weights = np.zeros((len(x), count))
    kinds = np.column_stack([x.isnan().cpu().numpy(), np.isfinite(bounds)])
    unique, kind_of_row = np.unique(kinds, axis=0, return_inverse=True)
    for k, kind in enumerate(unique):
        rows = np.flatnonzero(kind_of_row.ravel() == k)
        missing, hidden = kind[: x.shape[1]], np.flatnonzero(kind[x.shape[1] :])
        undetected = missing & np.isin(owners, hidden)
        values[rows], weights[rows] = _draws_of_kind(
            density, x[rows], missing, undetected, hidden, bounds[rows], count
        )
    return values, weights


def _draws_of_kind(
    density: Mixture,
    x: Float[Tensor, "r d"],
    missing: Bool[np.ndarray, " d"],
    undetected: Bool[np.ndarray, " d"],
    hidden: Int[np.ndarray, " h"],
    bounds: Float[np.ndarray, "r b"],
    count: int,
) -> tuple[Float[Tensor, "r k d"], Float[np.ndarray, "r k"]]:
    """Draws for rows that lack the same inputs."""
    observed = torch.from_numpy(~missing).to(x.device)
    slope, offset, spread = density.conditional(observed)
    conditional = torch.einsum("kdo,no->nkd", slope, x[:, observed]) + offset
    mean, V = conditional.cpu().numpy(), spread.cpu().numpy()
    joint = density.log_joint(x, observed).cpu().numpy()
    std = np.sqrt(np.diagonal(V, axis1=1, axis2=2)[:, hidden])
    tail = ndtr((mean[:, :, hidden] - bounds[:, None, hidden]) / std)
    log_weights = joint + np.log(np.maximum(tail, LEAST)).sum(2)
    share = np.exp(log_weights - log_weights.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    uniform = qmc.Sobol(1 + len(hidden), seed=0).random(count)
    weights, row = np.empty((len(x), count)), np.arange(len(x))
    samples = x.unsqueeze(1).repeat(1, count, 1)
    regression = V[:, :, hidden] @ np.linalg.inv(V[:, hidden[:, None], hidden])
    L = np.linalg.cholesky(V[:, hidden[:, None], hidden])
    for k, (level_of_component, *levels) in enumerate(uniform):
        c = (level_of_component > share.cumsum(1)).sum(1).clip(max=share.shape[1] - 1)
        z, weight = np.zeros((len(x), len(hidden))), np.ones(len(x))
        for j, level in enumerate(levels):
            before = (L[c, j, :j] * z[:, :j]).sum(1)
            low = (bounds[:, hidden[j]] - mean[row, c, hidden[j]] - before) / L[c, j, j]
            above = np.maximum(ndtr(-low), LEAST)
            z[:, j] = np.maximum(-ndtri(above * (1 - level)), low)
            weight *= above / np.maximum(tail[row, c, j], LEAST)
        weights[:, k] = weight
        deviation = (L[c] @ z[:, :, None])[:, :, 0]
        sample = mean[row, c] + np.einsum("rdh,rh->rd", regression[c], deviation)
        samples[:, k] = torch.where(torch.from_numpy(undetected), torch.from_numpy(sample), x)
    return samples, weights / weights.sum(1, keepdims=True)
