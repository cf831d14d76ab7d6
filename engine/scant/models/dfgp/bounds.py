"""Closed-form bounds of DFGP in whitened features, without the hidden layer's divergence.

f(b) = phi(b)' w + residual with q(w) = N(mean, covariance); `Expected` holds sums of moments of phi
over the rows. Kandemir and Hamprecht (2015): L_r of section 4.1 and L_c of the appendix, restated
in `scant.models.dfgp.model`.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.dfgp.output import Expected


def _precision(e: Expected, noise: Tensor) -> Float[Tensor, "m m"]:
    """Precision of the optimal q(w): I + sum_n E[phi_n phi_n'] / noise."""
    return torch.eye(len(e.products)).to(e.products) + e.products / noise


def optimal(
    e: Expected, y: Float[Tensor, " n"], noise: Float[Tensor, ""]
) -> tuple[Float[Tensor, " m"], Float[Tensor, "m m"]]:
    """Mean and covariance of the optimal q(w) for a Gaussian likelihood (mean-field update)."""
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(_precision(e, noise)))
    return covariance @ (e.features.T @ y) / noise, covariance


def target_bound(
    e: Expected, y: Float[Tensor, " n"], noise: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """L_r (section 4.1) at the optimal q(w)."""
    L = torch.linalg.cholesky(_precision(e, noise))
    projected = (e.features.T @ y).unsqueeze(1)
    whitened = torch.linalg.solve_triangular(L, projected, upper=False) / noise
    log_det = len(y) * (2 * math.pi * noise).log() + 2 * L.diagonal().log().sum()
    fit = y.square().sum() / noise - whitened.square().sum()
    residual = (e.variance - e.products.trace()) / noise
    return -0.5 * (log_det + fit + residual)


def class_bound(
    e: Expected, sign: Float[Tensor, " n"], mean: Float[Tensor, " m"], noise: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """L_c (appendix) for classes -1 and 1, at the optimal covariance of w."""
    log_det = 2 * torch.linalg.cholesky(_precision(e, noise)).diagonal().log().sum()
    f = e.features @ mean
    log_likelihood = torch.special.log_ndtr(sign * f / (1 + noise).sqrt()).sum()
    spread = e.variance - e.products.trace() + mean @ e.products @ mean - f.square().sum()
    return log_likelihood - 0.5 * (spread / noise + log_det + mean.square().sum())


def weight_divergence(mean: Float[Tensor, " m"], root: Float[Tensor, "m m"]) -> Float[Tensor, ""]:
    """KL(N(mean, root root') || N(0, I)) for a lower triangular root."""
    log_det = root.diagonal().square().log().sum()
    return 0.5 * (mean.square().sum() + root.square().sum() - len(mean) - log_det)
