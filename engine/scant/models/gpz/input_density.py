"""Gaussian mixture density of GPz's inputs, fitted by EM, which predicts missing values.

Almosallam (2017), 5.22-5.34. Means and covariances are those of the basis functions and EM fits the
weights; or, beyond the thesis, EM updates all three from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.inference.expectations import LOG_2PI, Forms, marginal_forms, quadratics
from scant.models.gpz.completion import MAX_DENSE_INPUTS, completed

# For standardized inputs: no component is wider than a hundred standard deviations.
MIN_PRECISION = 1e-4


DENSITY_ROWS = 100_000  # most rows used by EM
CHOOSING_ROWS = 5000  # rows used to select the number of Gaussians
COUNTS = (1, 2, 4, 8, 16, 32)  # candidate numbers of Gaussians
ROWS_EACH = 50  # minimum number of complete rows per Gaussian


class Mixture(NamedTuple):
    """sum_j exp(log_weight_j) N(x; mean_j, precision_j^-1)."""

    log_weights: Float[Tensor, " k"]
    means: Float[Tensor, "k d"]
    precisions: Float[Tensor, "k d d"]

    def forms(self) -> Forms:
        """Weighted component densities in information form."""
        b = (self.precisions @ self.means.unsqueeze(-1)).squeeze(-1)
        log_det = torch.linalg.slogdet(self.precisions)[1]
        constant = (b * self.means).sum(1) - log_det + self.means.shape[1] * LOG_2PI
        return Forms(self.precisions, b, constant - 2 * self.log_weights)

    def log_joint(
        self, X: Float[Tensor, "n d"], observed: Bool[Tensor, " d"]
    ) -> Float[Tensor, "n k"]:
        """ln p(o, j) of the observed columns o of rows without the others (5.24)."""
        return -0.5 * quadratics(X[:, observed], marginal_forms(self.forms(), observed))

    def conditional(
        self, observed: Bool[Tensor, " d"]
    ) -> tuple[Float[Tensor, "k d o"], Float[Tensor, "k d"], Float[Tensor, "k d d"]]:
        """slope_j, offset_j of E[x | o, j] = slope_j o + offset_j, and V[x | o, j] (5.26-5.31)."""
        k, d = self.means.shape
        o, u = observed.nonzero().squeeze(1), (~observed).nonzero().squeeze(1)
        slope = self.means.new_zeros(k, d, len(o))
        offset = self.means.new_zeros(k, d)
        spread = self.means.new_zeros(k, d, d)
        slope[:, o, torch.arange(len(o), device=o.device)] = 1.0
        if len(u):
            inverse = torch.linalg.inv(self.precisions[:, u[:, None], u])
            R = -inverse @ self.precisions[:, u[:, None], o]  # Sigma[u, o] Sigma[o, o]^-1
            slope[:, u] = R
            shift = (R @ self.means[:, o, None]).squeeze(-1)
            offset[:, u] = self.means[:, u] - shift  # (5.26)
            spread[:, u[:, None], u] = inverse  # (5.27)
        return slope, offset, spread


def patterns(X: Float[Tensor, "n d"]) -> Iterator[tuple[Bool[Tensor, " d"], Int[Tensor, " r"]]]:
    """Group rows by missing pattern (NaN): mask of observed columns, and row indices."""
    missing = X.isnan()
    if not bool(missing.any()):
        yield torch.ones_like(missing[0]), torch.arange(len(X), device=X.device)
        return
    distinct, index = torch.unique(missing, dim=0, return_inverse=True)
    for k, pattern in enumerate(distinct):
        yield ~pattern, (index == k).nonzero().squeeze(1)


def fit_mixture(
    X: Float[Tensor, "n d"], start: Mixture, free: bool, sweeps: int = 100, tolerance: float = 1e-4
) -> Mixture:
    """Fit a mixture by EM from `start`: the weights (5.22), or all parameters if `free`.

    Args:
        X: Inputs, NaN where missing. At most 100,000 equally spaced rows are used.
        start: Initial mixture; its means and covariances are fixed unless `free`.
        free: True to update means and covariances. Covariances are then shrunk towards the data's
            variances, divided by k^(2/d), with a weight of d + 2 rows, so that none collapses.
        sweeps: Maximum number of EM iterations.
        tolerance: EM stops when the mean log density increases by less.
    """
    if len(X) > DENSITY_ROWS:
        X = X[torch.linspace(0, len(X) - 1, DENSITY_ROWS, dtype=torch.float64).long().to(X.device)]
    if X.shape[1] > MAX_DENSE_INPUTS:
        return _fit_wide(X, start, free, sweeps, tolerance)
    groups = [(observed, X[rows]) for observed, rows in patterns(X)]
    mixture, last = start, -torch.inf
    prior = _prior(X, len(start.log_weights))
    densities = [mixture.log_joint(rows, observed) for observed, rows in groups]
    for _ in range(sweeps):
        if free:
            densities = [mixture.log_joint(rows, observed) for observed, rows in groups]
            joint = densities
        else:
            joint = [g - start.log_weights + mixture.log_weights for g in densities]
        totals = [g.logsumexp(1, keepdim=True) for g in joint]
        responsibilities = [(g - total).exp() for g, total in zip(joint, totals)]  # p(j | o)
        score = torch.cat(totals).mean().item()
        counts = torch.stack([s.sum(0) for s in responsibilities]).sum(0)
        log_weights = (counts / len(X)).clamp(min=1e-12).log()
        if free:
            mixture = _maximization(groups, responsibilities, mixture, counts, prior)
        mixture = mixture._replace(log_weights=log_weights)
        if score - last < tolerance:
            break
        last = score
    return mixture


def _prior(X: Float[Tensor, "n d"], k: int) -> Float[Tensor, "d d"]:
    """Prior covariance towards which those of k Gaussians are shrunk."""
    columns = torch.where(X.isnan(), X.nanmean(0), X)
    prior = torch.diag(columns.var(0, correction=0).clamp(min=1e-6))
    return prior * k ** (-2 / X.shape[1])


def _fit_wide(
    X: Float[Tensor, "n d"], start: Mixture, free: bool, sweeps: int, tolerance: float
) -> Mixture:
    """`fit_mixture` for many inputs: rows are completed individually (`completion`)."""
    mixture, last = start, -torch.inf
    prior = _prior(X, len(start.log_weights))
    for _ in range(sweeps):
        score, counts = 0.0, torch.zeros_like(start.log_weights)
        first, second = torch.zeros_like(start.means), torch.zeros_like(start.precisions)
        for block in completed(*mixture, X):
            total = block.log_joint.logsumexp(1, keepdim=True)
            responsibility = (block.log_joint - total).exp().T  # p(j | o)
            score += float(total.sum())
            counts += responsibility.sum(1)
            if free:
                weighted = responsibility[..., None] * block.means
                first += weighted.sum(1)
                second += weighted.mT @ block.means
                i, j = block.missing[:, :, None], block.missing[:, None]
                spread = responsibility[..., None, None] * block.covariance
                for total_j, update in zip(second, spread):
                    total_j.index_put_((i, j), update, accumulate=True)
        if free:
            mixture = _from_moments(first, second, counts, mixture, prior)
        mixture = mixture._replace(log_weights=(counts / len(X)).clamp(min=1e-12).log())
        if score / len(X) - last < tolerance:
            break
        last = score / len(X)
    return mixture


def _maximization(
    groups: list[tuple[Tensor, Tensor]],
    responsibilities: list[Tensor],
    mixture: Mixture,
    counts: Tensor,
    prior: Tensor,
) -> Mixture:
    """M step for means and covariances, from expected first and second moments."""
    k, d = mixture.means.shape
    first, second = mixture.means.new_zeros(k, d), mixture.means.new_zeros(k, d, d)
    for (observed, rows), responsibility in zip(groups, responsibilities):
        slope, offset, spread = mixture.conditional(observed)
        o = rows[:, observed]
        weight = responsibility.sum(0)
        i, j = torch.triu_indices(o.shape[1], o.shape[1], device=o.device)
        squares = o.new_zeros(k, o.shape[1], o.shape[1])
        squares[:, i, j] = squares[:, j, i] = responsibility.T @ (o[:, i] * o[:, j])
        observed_mean = (slope @ (responsibility.T @ o).unsqueeze(-1)).squeeze(-1)
        cross = observed_mean.unsqueeze(2) * offset.unsqueeze(1)
        constant = offset.unsqueeze(2) * offset.unsqueeze(1) + spread
        first += observed_mean + weight.unsqueeze(1) * offset
        second += slope @ squares @ slope.mT + cross + cross.mT + weight[:, None, None] * constant
    return _from_moments(first, second, counts, mixture, prior)


def _from_moments(
    first: Float[Tensor, "k d"],
    second: Float[Tensor, "k d d"],
    counts: Float[Tensor, " k"],
    mixture: Mixture,
    prior: Float[Tensor, "d d"],
) -> Mixture:
    """Mixture with means and covariances from expected moments summed over the rows."""
    d = first.shape[1]
    safe_counts = counts.clamp(min=1e-8)
    means = torch.where(counts.unsqueeze(1) > 1e-8, first / safe_counts.unsqueeze(1), mixture.means)
    scatter = second - counts[:, None, None] * means.unsqueeze(2) * means.unsqueeze(1)
    strength = d + 2
    covariance = (scatter + strength * prior) / (counts[:, None, None] + strength)
    return mixture._replace(means=means, precisions=torch.linalg.inv(covariance))


def single_gaussian(X: Float[Tensor, "n d"]) -> Mixture:
    """Fit one Gaussian to inputs with missing values by EM."""
    filled = torch.where(X.isnan(), X.nanmean(0), X)
    variance = filled.var(0, correction=0).clamp(min=1e-6)
    start = Mixture(X.new_zeros(1), filled.mean(0, keepdim=True), torch.diag(1 / variance)[None])
    return fit_mixture(X, start, free=True)


def spread_mixture(X: Float[Tensor, "n d"], k: int) -> Mixture:
    """Fit at most k Gaussians by EM, initialized at equally spaced complete rows."""
    one, complete = single_gaussian(X), X[~X.isnan().any(1)]
    k = max(1, min(k, len(complete) // ROWS_EACH))
    if k == 1:
        return one
    return fit_mixture(X, spread_start(one, complete, k), free=True)


def spread_start(one: Mixture, centres: Float[Tensor, "m d"], k: int) -> Mixture:
    """Initial mixture of k Gaussians at equally spaced centers, with scaled covariance of `one`."""
    index = torch.linspace(0, len(centres) - 1, k, device=centres.device).round().long()
    precisions = one.precisions.expand(k, -1, -1) * k ** (2 / centres.shape[1])
    return Mixture(centres.new_full((k,), -math.log(k)), centres[index], precisions)


def chosen_components(X: Float[Tensor, "n d"]) -> int:
    """Number of Gaussians with the highest density on left-out rows (every fifth row).

    `COUNTS` are tried in order until the density falls.
    """
    subset = X[
        torch.linspace(0, len(X) - 1, min(len(X), CHOOSING_ROWS)).round().long().to(X.device)
    ]
    left_out = torch.arange(len(subset), device=X.device) % 5 == 0
    best, highest = 1, -torch.inf
    for k in COUNTS:
        mixture = spread_mixture(subset[~left_out], k)
        score = log_density(mixture, subset[left_out]).mean().item()
        if score <= highest:
            break
        best, highest = k, score
    return best


def log_density(mixture: Mixture, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """ln p of the observed values of the rows, in no particular order."""
    if X.shape[1] > MAX_DENSE_INPUTS:
        parts = [some.log_joint for some in completed(*mixture, X)]
    else:
        parts = [mixture.log_joint(X[r], observed) for observed, r in patterns(X)]
    return torch.cat([part.logsumexp(1) for part in parts])


def fill(X: Float[Tensor, "n d"], gaussian: Mixture) -> Float[Tensor, "n d"]:
    """Replace missing values by their expectation given the observed ones under one Gaussian."""
    filled = X.clone()
    if X.shape[1] > MAX_DENSE_INPUTS:
        for some in completed(*gaussian, X):
            filled[some.rows] = some.means[0]
        return filled
    for observed, rows in patterns(X):
        if not bool(observed.all()):
            slope, offset, _ = gaussian.conditional(observed)
            filled[rows] = X[rows][:, observed] @ slope[0].T + offset[0]
    return filled
