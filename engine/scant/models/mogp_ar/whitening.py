"""Moments of latent functions under whitened inducing variables, with their gradient in products.

With K = LL' of the inducing variables, A = L^-1 k(Z, x) and q(v) = N(mu, SS'), u at x has mean
mu'A and variance k(x, x) + a'(SS' - I)a: (3.22) with whitened inducing variables. S is lower
triangular, and stays so: gradients in it are.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

JITTER = 1e-6  # on K, of the order of one on its diagonal


def inverse_cholesky(K: Float[Tensor, "*q m m"]) -> Float[Tensor, "*q m m"]:
    """L^-1 of K + jitter = LL', with more where it is needed (which GPyTorch says by a warning).

    Raises:
        NotPSDError, NanError: As GPyTorch, where no reasonable jitter will do.
    """
    K = K.clone()
    K.diagonal(dim1=-2, dim2=-1).add_(JITTER)
    L = psd_safe_cholesky(K)
    eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    return torch.linalg.solve_triangular(L, eye, upper=False)


def excess(S: Float[Tensor, "q r m m"]) -> Float[Tensor, "q r m m"]:
    """SS' - I: what q(v) has more than the prior."""
    found = S @ S.mT
    found.diagonal(dim1=-2, dim2=-1).sub_(1.0)
    return found


class _Moments(torch.autograd.Function):
    """Means, and variances less k(x, x), with the gradients of K, k(Z, x), mu and S.

    All that the gradients need of the rows are A, (SS' - I)A and one product of A with itself,
    weighted; the rest are products of the inducing variables among themselves. With G that in A,
    the gradient in K is -W' sym(Phi(G A')) W, where Phi keeps the lower triangle and half of the
    diagonal (Murray 2016, of L). Autograd takes a third longer for a whole step.
    """

    @staticmethod
    def forward(
        ctx: Any, K: Tensor, cross: Tensor, q_mean: Tensor, q_scale: Tensor
    ) -> tuple[Tensor, Tensor]:
        W, H = inverse_cholesky(K), excess(q_scale)
        A = W @ cross
        U = (H.flatten(1, 2) @ A).view(*H.shape[:3], -1)  # [q, r, m, b]
        ctx.save_for_backward(W, A, H, U, q_mean, q_scale)
        return q_mean @ A, (U * A.unsqueeze(1)).sum(2)  # (3.22), whitened

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        W, A, H, U, q_mean, q_scale = ctx.saved_tensors
        of_mean, of_variance = gradients
        weight = 2 * of_variance.unsqueeze(2)
        of_q_mean = of_mean @ A.mT
        of_H = (A.unsqueeze(1) * weight).flatten(1, 2) @ A.mT  # [q, r m, m], twice
        phi = (H.flatten(1, 2).mT @ of_H).add_(q_mean.mT @ of_q_mean).tril_()
        phi.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        spread = U * weight
        of_A = (spread.sum(1) if spread.shape[1] > 1 else spread[:, 0]) + q_mean.mT @ of_mean
        of_K = W.mT @ (phi + phi.mT).mul_(-0.5) @ W
        return of_K, W.mT @ of_A, of_q_mean, (of_H.view_as(H) @ q_scale).tril_()


def moments(
    K: Float[Tensor, "q m m"],
    cross: Float[Tensor, "q m b"],
    q_mean: Float[Tensor, "q r m"],
    q_scale: Float[Tensor, "q r m m"],
) -> tuple[Float[Tensor, "q r b"], Float[Tensor, "q r b"]]:
    """Means of the latent functions, and what their variances have more than k(x, x).

    Args:
        K: Of the inducing variables, symmetric, without jitter.
        cross: k(Z, x).
        q_mean, q_scale: mu and S of r functions of each kernel.

    Raises:
        NotPSDError, NanError: As `inverse_cholesky`.
    """
    mean, variance = _Moments.apply(K, cross, q_mean, q_scale)  # type: ignore[no-untyped-call]
    return mean, variance


class _KL(torch.autograd.Function):
    """KL(N(mu, SS') || N(0, I)); its gradient is mu and S less the inverse of S's diagonal."""

    @staticmethod
    def forward(ctx: Any, q_mean: Tensor, q_scale: Tensor) -> Tensor:
        ctx.save_for_backward(q_mean, q_scale)
        log_det = q_scale.diagonal(dim1=-2, dim2=-1).abs().log().sum()
        squares = (v.flatten().dot(v.flatten()) for v in (q_scale, q_mean))
        return 0.5 * (sum(squares) - q_mean.numel()) - log_det

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        (gradient,), (q_mean, S) = gradients, ctx.saved_tensors
        of_S = S * gradient
        of_S.diagonal(dim1=-2, dim2=-1).sub_(gradient / S.diagonal(dim1=-2, dim2=-1))
        return q_mean * gradient, of_S


def kl_divergence(
    q_mean: Float[Tensor, "q r m"], q_scale: Float[Tensor, "q r m m"]
) -> Float[Tensor, ""]:
    """KL(q(v) || p(v)) of all functions, p(v) a standard Gaussian."""
    found: Tensor = _KL.apply(q_mean, q_scale)  # type: ignore[no-untyped-call]
    return found
