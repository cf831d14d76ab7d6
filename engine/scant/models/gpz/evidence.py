"""The training objective of GPz: log evidence of a linear model with heteroscedastic noise.

Almosallam (2017), equations 3.20-3.37 and the gradients 4.13-4.20.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

JITTERS = (0.0, 1e-10, 1e-8, 1e-6)


class Posterior(NamedTuple):
    """Gaussian posterior of the p weights, with covariance C C' for factor C, and its jitter."""

    mean: Float[Tensor, " p"]
    factor: Float[Tensor, "p p"]
    half_log_det: Float[Tensor, ""]  # (ln|Sigma_w| - ln|A|) / 2
    jitter: float


def weight_posterior(
    phi: Float[Tensor, "n p"],
    y: Float[Tensor, " n"],
    precision: Float[Tensor, " n"],
    log_alpha: Float[Tensor, " p"],
) -> Posterior:
    """Posterior of the weights (3.32-3.34 with a prior mean of zero).

    Args:
        phi: Design matrix, one row per sample (the transpose of the thesis's Phi).
        y: Targets.
        precision: omega_i beta_i, the weighted noise precision of each sample.
        log_alpha: Log prior precision of each weight.

    Sigma_w = Phi Omega B Phi' + A is factored as A^(1/2) (I + ...) A^(1/2). The eigenvalues of the
    bracket are at least one, so weights that ARD switches off (alpha -> infinity) are harmless. The
    result is NaN if no jitter up to 1e-6 of the mean diagonal makes the bracket positive definite.
    """
    rows = phi * precision.sqrt().unsqueeze(1)
    return posterior_from(rows.T @ rows, phi.T @ (precision * y), log_alpha)


def posterior_from(
    square: Float[Tensor, "p p"], target: Float[Tensor, " p"], log_alpha: Float[Tensor, " p"]
) -> Posterior:
    """`weight_posterior` from the sums over rows Phi Omega B Phi' and Phi Omega B y."""
    inverse_root_alpha = torch.exp(-0.5 * log_alpha)
    inner = inverse_root_alpha.unsqueeze(1) * square * inverse_root_alpha
    inner.diagonal().add_(1.0)  # A^-1/2 Sigma_w A^-1/2, Sigma_w of 3.34
    eye = torch.eye(len(inverse_root_alpha), dtype=square.dtype, device=square.device)
    scale = inner.diagonal().mean()
    for jitter in JITTERS:
        lower, info = torch.linalg.cholesky_ex(inner + jitter * scale * eye if jitter else inner)
        if not info.item() and bool(torch.isfinite(lower).all()):
            break
    else:
        lower = torch.full_like(inner, math.nan)
    factor = (
        inverse_root_alpha.unsqueeze(1) * torch.linalg.solve_triangular(lower, eye, upper=False).T
    )
    mean = factor @ (factor.T @ target)  # (3.33)
    return Posterior(mean, factor, lower.diagonal().log().sum(), jitter)


class Evidence(torch.autograd.Function):
    """Negative log evidence, first two lines of 3.37, with explicit gradients.

    The posterior mean minimizes the penalized squares, so derivatives through it vanish: the first
    term of 4.13 and the implicit terms of 4.15 and 4.20.
    """

    @staticmethod
    def forward(
        ctx: Any,
        phi: Float[Tensor, "n p"],
        y: Float[Tensor, " n"],
        omega: Float[Tensor, " n"],
        log_alpha: Float[Tensor, " p"],
        log_beta: Float[Tensor, " n"],
    ) -> Float[Tensor, ""]:
        """Objective in nats, summed over samples; saves the gradients for `backward`."""
        precision = omega * log_beta.exp()
        posterior = weight_posterior(phi, y, precision, log_alpha)
        w, alpha = posterior.mean, log_alpha.exp()
        residual = y - phi @ w
        # (3.37), first two lines, negated
        value = posterior.half_log_det + 0.5 * (
            (precision * residual.square()).sum()
            - (omega * log_beta).sum()
            + math.log(2 * math.pi) * omega.sum()
            + (alpha * w.square()).sum()
        )
        if any(ctx.needs_input_grad):
            covariance = posterior.factor @ posterior.factor.T
            spread = phi @ covariance
            leverage = torch.linalg.vecdot(spread, phi)
            d_log_beta = 0.5 * (precision * (residual.square() + leverage) - omega)  # (4.18)
            d_log_alpha = 0.5 * (alpha * (w.square() + covariance.diagonal()) - 1)  # (4.13)
            # (4.20): d phi = precision (Phi Sigma_w^-1 - residual w'), in place.
            d_phi = spread.addr_(residual, w, alpha=-1).mul_(precision.unsqueeze(1))
            ctx.save_for_backward(d_phi, d_log_alpha, d_log_beta)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        """Gradients with respect to phi, log_alpha and log_beta (4.13, 4.18, 4.20, negated)."""
        d_phi, d_log_alpha, d_log_beta = ctx.saved_tensors
        (g,) = grads
        return g * d_phi, None, None, g * d_log_alpha, g * d_log_beta


def negative_log_evidence(
    phi: Float[Tensor, "n p"],
    y: Float[Tensor, " n"],
    omega: Float[Tensor, " n"],
    log_alpha: Float[Tensor, " p"],
    log_beta: Float[Tensor, " n"],
) -> Float[Tensor, ""]:
    """-ln p(y | X, omega, theta) of 3.35, differentiable in phi, log_alpha and log_beta.

    Args:
        phi: Design matrix.
        y: Targets.
        omega: Sample weights; a weight of two counts a sample twice (3.20).
        log_alpha: Log precision of the weights' prior.
        log_beta: Log precision of the noise of each sample.
    """
    value: Tensor = Evidence.apply(phi, y, omega, log_alpha, log_beta)
    return value
