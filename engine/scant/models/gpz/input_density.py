"""The density of GPz's inputs, which predicts missing values: a Gaussian mixture, fitted by EM.

Almosallam (2017), 5.22-5.34. The means and covariances are those of the basis functions, and EM
learns the weights; or, beyond the thesis, EM updates all three from this start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scant.inference.expectations import LOG_2PI, Forms, marginal_forms, quadratics
from scant.models.gpz.completion import WIDE, completed

# Standardized inputs: a component wider than a hundred standard deviations is uninformative.
LEAST_PRECISION = 1e-4


DENSITY_ROWS = 100_000  # that EM goes over, at most
CHOOSING_ROWS = 5000  # that tell how many Gaussians there are
COUNTS = (1, 2, 4, 8, 16, 32)  # that are tried
ROWS_EACH = 50  # whole rows for each Gaussian, at least


class Mixture(NamedTuple):
    """sum_j exp(log_weight_j) N(x; mean_j, precision_j^-1)."""

    log_weights: Float[Tensor, " k"]
    means: Float[Tensor, "k d"]
    precisions: Float[Tensor, "k d d"]

    def forms(self) -> Forms:
        """The weighted densities, normalized, in information form."""
        b = (self.precisions @ self.means.unsqueeze(-1)).squeeze(-1)
        log_det = torch.linalg.slogdet(self.precisions)[1]
        constant = (b * self.means).sum(1) - log_det + self.means.shape[1] * LOG_2PI
        return Forms(self.precisions, b, constant - 2 * self.log_weights)

    def log_joint(
        self, X: Float[Tensor, "n d"], observed: Bool[Tensor, " d"]
    ) -> Float[Tensor, "n k"]:
        """ln p(o, j) of the observed columns of rows that miss the others (5.24)."""
        return -0.5 * quadratics(X[:, observed], marginal_forms(self.forms(), observed))

    def conditional(
        self, observed: Bool[Tensor, " d"]
    ) -> tuple[Float[Tensor, "k d o"], Float[Tensor, "k d"], Float[Tensor, "k d d"]]:
        """E[x | o, j] = slope_j o + offset_j and V[x | o, j], whole vectors (5.26-5.31)."""
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
    """Groups of rows that miss the same columns (NaN): which are observed, and the rows."""
    missing = X.isnan()
    if not bool(missing.any()):
        yield torch.ones_like(missing[0]), torch.arange(len(X), device=X.device)
        return
    kinds, member = torch.unique(missing, dim=0, return_inverse=True)
    for k, kind in enumerate(kinds):
        yield ~kind, (member == k).nonzero().squeeze(1)


def fit_mixture(
    X: Float[Tensor, "n d"], start: Mixture, free: bool, sweeps: int = 100, tolerance: float = 1e-4
) -> Mixture:
    """EM from `start`: the weights alone (5.22), or with `free` means and covariances too.

    Args:
        X: Inputs, NaN where missing; every row helps with what it has. Of more than 100,000 rows,
            so many at equal distances are used.
        start: Where EM starts; without `free` its means and covariances stay.
        free: Whether means and covariances move. Covariances are then drawn to the variances of
            the data, shrunk by k^(2/d), with the weight of d + 2 rows, so none collapses.
        sweeps: Most rounds of EM.
        tolerance: Ends EM when the mean log density rises by less.
    """
    if len(X) > DENSITY_ROWS:
        X = X[torch.linspace(0, len(X) - 1, DENSITY_ROWS, dtype=torch.float64).long().to(X.device)]
    if X.shape[1] > WIDE:
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
        shares = [(g - total).exp() for g, total in zip(joint, totals)]  # p(j | o)
        score = torch.cat(totals).mean().item()
        counts = torch.stack([s.sum(0) for s in shares]).sum(0)
        log_weights = (counts / len(X)).clamp(min=1e-12).log()
        if free:
            mixture = _moved(groups, shares, mixture, counts, prior)
        mixture = mixture._replace(log_weights=log_weights)
        if score - last < tolerance:
            break
        last = score
    return mixture


def _prior(X: Float[Tensor, "n d"], k: int) -> Float[Tensor, "d d"]:
    """What the covariances of k Gaussians are drawn to."""
    columns = torch.where(X.isnan(), X.nanmean(0), X)
    prior = torch.diag(columns.var(0, correction=0).clamp(min=1e-6))
    return prior * k ** (-2 / X.shape[1])


def _fit_wide(
    X: Float[Tensor, "n d"], start: Mixture, free: bool, sweeps: int, tolerance: float
) -> Mixture:
    """`fit_mixture` of many inputs: rows are completed (`completion`), whatever they lack."""
    mixture, last = start, -torch.inf
    prior = _prior(X, len(start.log_weights))
    for _ in range(sweeps):
        score, counts = 0.0, torch.zeros_like(start.log_weights)
        first, second = torch.zeros_like(start.means), torch.zeros_like(start.precisions)
        for some in completed(*mixture, X):
            total = some.log_joint.logsumexp(1, keepdim=True)
            share = (some.log_joint - total).exp().T  # p(j | o)
            score += float(total.sum())
            counts += share.sum(1)
            if free:
                weighted = share[..., None] * some.means
                first += weighted.sum(1)
                second += weighted.mT @ some.means
                i, j = some.missing[:, :, None], some.missing[:, None]
                spread = share[..., None, None] * some.covariance
                for total_j, own in zip(second, spread):
                    total_j.index_put_((i, j), own, accumulate=True)
        if free:
            mixture = _maximized(first, second, counts, mixture, prior)
        mixture = mixture._replace(log_weights=(counts / len(X)).clamp(min=1e-12).log())
        if score / len(X) - last < tolerance:
            break
        last = score / len(X)
    return mixture


def _moved(
    groups: list[tuple[Tensor, Tensor]],
    shares: list[Tensor],
    mixture: Mixture,
    counts: Tensor,
    prior: Tensor,
) -> Mixture:
    """The M step for means and covariances, from the expected first and second moments."""
    k, d = mixture.means.shape
    first, second = mixture.means.new_zeros(k, d), mixture.means.new_zeros(k, d, d)
    for (observed, rows), share in zip(groups, shares):
        slope, offset, spread = mixture.conditional(observed)
        o = rows[:, observed]
        weight = share.sum(0)
        i, j = torch.triu_indices(o.shape[1], o.shape[1], device=o.device)
        squares = o.new_zeros(k, o.shape[1], o.shape[1])
        squares[:, i, j] = squares[:, j, i] = share.T @ (o[:, i] * o[:, j])
        along = (slope @ (share.T @ o).unsqueeze(-1)).squeeze(-1)
        cross = along.unsqueeze(2) * offset.unsqueeze(1)
        own = offset.unsqueeze(2) * offset.unsqueeze(1) + spread
        first += along + weight.unsqueeze(1) * offset
        second += slope @ squares @ slope.mT + cross + cross.mT + weight[:, None, None] * own
    return _maximized(first, second, counts, mixture, prior)


def _maximized(
    first: Float[Tensor, "k d"],
    second: Float[Tensor, "k d d"],
    counts: Float[Tensor, " k"],
    mixture: Mixture,
    prior: Float[Tensor, "d d"],
) -> Mixture:
    """Means and covariances from expected moments, summed over the rows."""
    d = first.shape[1]
    held = counts.clamp(min=1e-8)
    means = torch.where(counts.unsqueeze(1) > 1e-8, first / held.unsqueeze(1), mixture.means)
    scatter = second - counts[:, None, None] * means.unsqueeze(2) * means.unsqueeze(1)
    strength = d + 2
    covariance = (scatter + strength * prior) / (counts[:, None, None] + strength)
    return mixture._replace(means=means, precisions=torch.linalg.inv(covariance))


def single_gaussian(X: Float[Tensor, "n d"]) -> Mixture:
    """One Gaussian fitted to inputs with missing values, by EM."""
    filled = torch.where(X.isnan(), X.nanmean(0), X)
    variance = filled.var(0, correction=0).clamp(min=1e-6)
    start = Mixture(X.new_zeros(1), filled.mean(0, keepdim=True), torch.diag(1 / variance)[None])
    return fit_mixture(X, start, free=True)


def spread_mixture(X: Float[Tensor, "n d"], k: int) -> Mixture:
    """k Gaussians fitted by EM, which start at rows spread over the whole ones, or fewer."""
    one, whole = single_gaussian(X), X[~X.isnan().any(1)]
    k = max(1, min(k, len(whole) // ROWS_EACH))
    if k == 1:
        return one
    return fit_mixture(X, spread_start(one, whole, k), free=True)


def spread_start(one: Mixture, centres: Float[Tensor, "m d"], k: int) -> Mixture:
    """Where EM of k Gaussians starts: at some of these centres, with the covariance of all rows."""
    chosen = torch.linspace(0, len(centres) - 1, k, device=centres.device).round().long()
    precisions = one.precisions.expand(k, -1, -1) * k ** (2 / centres.shape[1])
    return Mixture(centres.new_full((k,), -math.log(k)), centres[chosen], precisions)


def chosen_components(X: Float[Tensor, "n d"]) -> int:
    """How many Gaussians give rows that they have not seen the highest density.

    Of `COUNTS`, one after another until the density falls; every fifth row is left out.
    """
    some = X[torch.linspace(0, len(X) - 1, min(len(X), CHOOSING_ROWS)).round().long().to(X.device)]
    left_out = torch.arange(len(some), device=X.device) % 5 == 0
    best, highest = 1, -torch.inf
    for k in COUNTS:
        mixture = spread_mixture(some[~left_out], k)
        score = log_density(mixture, some[left_out]).mean().item()
        if score <= highest:
            break
        best, highest = k, score
    return best


def log_density(mixture: Mixture, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """ln p of the observed values of each row, in no particular order."""
    if X.shape[1] > WIDE:
        parts = [some.log_joint for some in completed(*mixture, X)]
    else:
        parts = [mixture.log_joint(X[r], observed) for observed, r in patterns(X)]
    return torch.cat([part.logsumexp(1) for part in parts])


def fill(X: Float[Tensor, "n d"], gaussian: Mixture) -> Float[Tensor, "n d"]:
    """Missing values replaced by their expectation given the observed ones under one Gaussian."""
    filled = X.clone()
    if X.shape[1] > WIDE:
        for some in completed(*gaussian, X):
            filled[some.rows] = some.means[0]
        return filled
    for observed, rows in patterns(X):
        if not bool(observed.all()):
            slope, offset, _ = gaussian.conditional(observed)
            filled[rows] = X[rows][:, observed] @ slope[0].T + offset[0]
    return filled
