"""What exact Gaussian processes have in common: log densities, and whitened targets."""

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
        NotPSDError: K has no factor, whatever the jitter.
        NanError: K is not finite.
    """
    lower = psd_safe_cholesky(K)
    return lower, torch.linalg.solve_triangular(lower, y, upper=False)


def left_out(
    K: Float[Tensor, "n n"], y: Float[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Errors of the prediction of each row by the others, and their variances.

    Of y ~ N(0, K), noise included (Rasmussen and Williams 2006, 5.12).
    """
    inverse = torch.cholesky_inverse(psd_safe_cholesky(K))
    variance = 1 / inverse.diagonal()
    return (inverse @ y) * variance, variance


class LogDensity(torch.autograd.Function):
    """ln N(y | 0, K), summed over a batch and without its constant, in nats.

    The gradient in K is (a a' - K^-1) / 2 with a = K^-1 y, at a third of what it costs to go back
    through the Cholesky factor.
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
        to_K = (a * a.mT).sub_(torch.cholesky_inverse(lower)).mul_(scale * 0.5)
        return to_K, -scale * a.squeeze(-1)
