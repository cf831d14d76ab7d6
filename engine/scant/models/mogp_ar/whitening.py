"""Moments of latent functions under whitened inducing variables, with explicit gradients.

With K = LL' of the inducing variables, A = L^-1 k(Z, x) and q(v) = N(mu, SS'), u at x has mean
mu'A and variance k(x, x) + a'(SS' - I)a: (3.22) with whitened inducing variables. S is lower
triangular, and so are its gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

JITTER = 1e-6  # on the diagonal of K, which is of order one


def inverse_cholesky(K: Float[Tensor, "*q m m"]) -> Float[Tensor, "*q m m"]:
    """L^-1 of K + jitter I = LL'; GPyTorch warns if it has to increase the jitter.

    Raises:
        NotPSDError, NanError: The factorization fails.
    """
    K = K.clone()
    K.diagonal(dim1=-2, dim2=-1).add_(JITTER)
    L = psd_safe_cholesky(K)
    eye = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    return torch.linalg.solve_triangular(L, eye, upper=False)


def excess(S: Float[Tensor, "q r m m"]) -> Float[Tensor, "q r m m"]:
    """SS' - I, the excess of q(v)'s covariance over the prior's."""
    H = S @ S.mT
    H.diagonal(dim1=-2, dim2=-1).sub_(1.0)
    return H


class _Moments(torch.autograd.Function):
    """Means mu'A, and a'(SS' - I)a, with gradients for K, k(Z, x), mu and S.

    The gradients need only A, (SS' - I)A and one weighted product of A with itself over the rows.
    With G the gradient in A and W = L^-1, the gradient in K is -W' sym(Phi(G A')) W, where Phi
    keeps the lower triangle and half of the diagonal (Murray 2016). With autograd a step takes a
    third longer.
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
        d_mean, d_variance = gradients
        weight = 2 * d_variance.unsqueeze(2)
        d_q_mean = d_mean @ A.mT
        d_H = (A.unsqueeze(1) * weight).flatten(1, 2) @ A.mT  # [q, r m, m], twice
        phi = (H.flatten(1, 2).mT @ d_H).add_(q_mean.mT @ d_q_mean).tril_()
        phi.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        spread = U * weight
        d_A = (spread.sum(1) if spread.shape[1] > 1 else spread[:, 0]) + q_mean.mT @ d_mean
        d_K = W.mT @ (phi + phi.mT).mul_(-0.5) @ W
        return d_K, W.mT @ d_A, d_q_mean, (d_H.view_as(H) @ q_scale).tril_()


def moments(
    K: Float[Tensor, "q m m"],
    cross: Float[Tensor, "q m b"],
    q_mean: Float[Tensor, "q r m"],
    q_scale: Float[Tensor, "q r m m"],
) -> tuple[Float[Tensor, "q r b"], Float[Tensor, "q r b"]]:
    """Means of the latent functions, and their variances minus k(x, x).

    Args:
        K: k(Z, Z) without jitter.
        cross: k(Z, x).
        q_mean, q_scale: mu and S of r functions per kernel.

    Raises:
        NotPSDError, NanError: See `inverse_cholesky`.
    """
    mean, variance = _Moments.apply(K, cross, q_mean, q_scale)  # type: ignore[no-untyped-call]
    return mean, variance


class _KL(torch.autograd.Function):
    """KL(N(mu, SS') || N(0, I)); its gradients are mu and S - diag(S)^-1."""

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
        d_S = S * gradient
        d_S.diagonal(dim1=-2, dim2=-1).sub_(gradient / S.diagonal(dim1=-2, dim2=-1))
        return q_mean * gradient, d_S


def kl_divergence(
    q_mean: Float[Tensor, "q r m"], q_scale: Float[Tensor, "q r m m"]
) -> Float[Tensor, ""]:
    """KL(q(v) || p(v)) summed over all functions, with standard normal p(v)."""
    value: Tensor = _KL.apply(q_mean, q_scale)  # type: ignore[no-untyped-call]
    return value
