"""The bound of HMOGP-LV in its efficient form (Ma 2023, 5.27 and 5.38), for any Gaussian q(U).

U is whitened: with K_UU^H = L_H L_H' and K_UU^X = L_X L_X', U = (L_H o L_X) V and p(V) is a
standard Gaussian over M_H x M_X matrices. A row at x in output d depends on V through
a(x) = L_X^-1 k_X(Z, x) and alpha_d = L_H^-1 k_H(Z, h_d), and q(h_d) gives psi_d = E[alpha_d]
and P_d = E[alpha_d alpha_d'], the psi statistics:

    E[f]   = a' w_d,                    w_d = E[V]' psi_d
    E[f^2] = k_X(x, x) + a' W_d a,      W_d = E[V' P_d V] - tr(P_d) I

(k_H has unit variance.) Predictions follow from w_d and W_d, and F from w_d and the sum of a' W_d a
over the rows of an output; each form of q(U) computes these and its divergence from p(U).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.inference.expectations import LOG_2PI


@dataclass(frozen=True)
class Statistics:
    """Statistics of D outputs for the bound.

    Attributes:
        psi: E[alpha_d].
        P: E[alpha_d alpha_d'].
        a: a(x) of the rows of each output, 0 for padding; one entry if all outputs share their
            inputs.
        b: Sum of y a.
        yy: Sum of y^2.
        k: Sum of k_X(x, x).
        rows: Number of rows.
        noise: Noise variance.
        weight: Total number of outputs per output of the minibatch.
    """

    psi: Float[Tensor, "d h"]
    P: Float[Tensor, "d h h"]
    a: Float[Tensor, "e n x"]
    b: Float[Tensor, "d x"]
    yy: Float[Tensor, " d"]
    k: Float[Tensor, " d"]
    rows: Float[Tensor, " d"]
    noise: Float[Tensor, " d"]
    weight: float = 1.0

    @cached_property
    def A(self) -> Float[Tensor, "e x x"]:
        """Sum of a a' over the rows of each output: Phi^X of 5.24, whitened."""
        return self.a.mT @ self.a

    @property
    def precision(self) -> Float[Tensor, " d"]:
        """Noise precision of each output, times `weight`."""
        return self.weight / self.noise

    def detach(self) -> Statistics:
        """Detach all tensors."""
        tensors: dict[str, Any] = {
            k: v.detach() for k, v in vars(self).items() if isinstance(v, Tensor)
        }
        A = tensors.pop("A", None)
        detached = replace(self, **tensors)
        if A is not None:
            vars(detached)["A"] = A
        return detached

    def same_inputs(self) -> bool:
        return len(self.a) < len(self.b)


class Weights(NamedTuple):
    """w_d and W_d of the module docstring: moments of V, contracted for each output."""

    w: Float[Tensor, "d x"]
    W: Float[Tensor, "d x x"]


def expected_log_likelihood(
    s: Statistics, w: Float[Tensor, "d x"], a_W_a: Float[Tensor, " d"]
) -> Float[Tensor, ""]:
    """F of 5.27 and 5.38, in nats.

    Args:
        s: Statistics.
        w: w_d of the module docstring.
        a_W_a: Sum of a' W_d a over the rows of each output.
    """
    squares = s.yy - 2 * (w * s.b).sum(1) + s.k + a_W_a
    terms = s.rows * (LOG_2PI + s.noise.log()) + squares / s.noise
    return -0.5 * s.weight * terms.sum()  # (5.27); (5.32) where inputs differ


def normal_equations(s: Statistics) -> tuple[Float[Tensor, "m m"], Float[Tensor, " m"]]:
    """Precision B of the optimal q(V), and B E[V]; for small M_X M_H."""
    h, x = s.psi.shape[1], s.b.shape[1]
    if s.same_inputs():
        P = torch.einsum("d,dij->ij", s.precision, s.P)
        B = torch.einsum("ik,jl->ijkl", P, s.A[0])
    else:
        scaled = (s.precision[:, None, None] * s.P).reshape(-1, h * h)
        B = (scaled.T @ s.A.reshape(-1, x * x)).view(h, h, x, x).transpose(1, 2)
    c = (s.precision.unsqueeze(1) * s.psi).T @ s.b
    return B.reshape(h * x, h * x) + torch.eye(h * x).to(c), c.reshape(-1)


def collapsed(s: Statistics) -> Float[Tensor, ""]:
    """F - KL(q(U) || p(U)) at the optimal Gaussian q(U), in nats (Titsias 2009)."""
    B, c = normal_equations(s)
    lower = torch.linalg.cholesky(B)
    whitened = torch.linalg.solve_triangular(lower, c.unsqueeze(1), upper=False)
    unexplained = (
        s.yy + s.k - s.P.diagonal(dim1=1, dim2=2).sum(1) * s.A.diagonal(dim1=1, dim2=2).sum(1)
    )
    terms = s.rows * (LOG_2PI + s.noise.log()) + unexplained / s.noise
    fit = whitened.square().sum() - 2 * lower.diagonal().log().sum()
    return 0.5 * (fit - s.weight * terms.sum())
