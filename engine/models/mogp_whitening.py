"""The inverse Cholesky factor that whitens inducing variables; its gradient is three products."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor


class _InverseCholesky(torch.autograd.Function):
    """W = L^-1 of K = LL'. With G the gradient in W, that in K is -W' sym(Phi(G W')) W.

    Phi keeps the lower triangle and half of the diagonal (Murray 2016, for L). Going through L
    itself, as autograd does, takes two more triangular solves with all columns of k(Z, x): a
    quarter of a step.
    """

    @staticmethod
    def forward(ctx: Any, K: Tensor) -> Tensor:
        L = psd_safe_cholesky(K)
        eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
        W = torch.linalg.solve_triangular(L, eye, upper=False)
        ctx.save_for_backward(W)
        return W

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (W,) = ctx.saved_tensors
        phi = (gradients[0] @ W.mT).tril()
        phi.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        return W.mT @ (-0.5 * (phi + phi.mT)) @ W


def inverse_cholesky(K: Float[Tensor, "*q m m"]) -> Float[Tensor, "*q m m"]:
    """L^-1 of K = LL', with jitter where it is needed (which GPyTorch says by a warning).

    Raises:
        NotPSDError, NanError: As GPyTorch, where no reasonable jitter will do.
    """
    W: Tensor = _InverseCholesky.apply(K)  # type: ignore[no-untyped-call]
    return W
