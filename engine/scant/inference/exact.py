"""Exact GP algebra: log densities, whitened targets and leave-one-out residuals."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor


def whitened(
    K: Float[Tensor, "*b n n"], y: Float[Tensor, "*b n k"]
) -> tuple[Float[Tensor, "*b n n"], Float[Tensor, "*b n k"]]:
    """L with L L' = K, and L^-1 y (Rasmussen and Williams 2006, algorithm 2.1).

    Raises:
        NotPSDError: K is not positive definite, even with the largest jitter.
        NanError: K is not finite.
    """
    lower = psd_safe_cholesky(K)
    return lower, torch.linalg.solve_triangular(lower, y, upper=False)


def left_out(
    K: Float[Tensor, "n n"], y: Float[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Leave-one-out residuals and variances for y ~ N(0, K), noise included in K.

    (Rasmussen and Williams 2006, 5.12: y_i - mu_i = [K^-1 y]_i / [K^-1]_ii, var_i = 1 / [K^-1]_ii.)
    """
    inverse = torch.cholesky_inverse(psd_safe_cholesky(K))  # K^-1
    variance = 1 / inverse.diagonal()
    return (inverse @ y) * variance, variance


class LogDensity(torch.autograd.Function):
    """ln N(y | 0, K) in nats, summed over a batch, without the constant -n ln(2 pi) / 2.

    The gradient with respect to K is (a a' - K^-1) / 2 with a = K^-1 y, at a third of the cost of
    backpropagation through the Cholesky factor.
    """

    @staticmethod
    def forward(ctx: Any, K: Tensor, y: Tensor) -> Tensor:
        lower = psd_safe_cholesky(K)
        a = torch.cholesky_solve(y.unsqueeze(-1), lower)
        ctx.save_for_backward(lower, a)
        return -0.5 * (y * a.squeeze(-1)).sum() - lower.diagonal(dim1=-2, dim2=-1).log().sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        lower, a = ctx.saved_tensors
        (scale,) = gradients
        dK = (a * a.mT).sub_(torch.cholesky_inverse(lower)).mul_(scale * 0.5)
        return dK, -scale * a.squeeze(-1)
