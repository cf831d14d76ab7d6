"""Laplace's approximation: the posterior mode of f by Newton's method, and the evidence there.

Rasmussen and Williams (2006, GPML), algorithms 3.1 and 5.1. Numbers beside lines are GPML's; B.16
of Yousefi (2021) is GPML's 3.18.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.laplace.links import Link, LinkDerivatives

NEWTON_STEPS = 100
TOLERANCE = 1e-10  # nats; gains of Newton steps at the mode are below rounding errors
AT_MODE = 1e-16  # nats; final Newton decrement, whose square root is the error of f
CONTRACTION = 0.25  # of the decrement per step; with less, B is factorized again
HALVINGS = 12


class Mode(NamedTuple):
    """Posterior mode of f and the curvature there, in GPML's symbols."""

    a: Float[Tensor, " n"]  # K^-1 f
    f: Float[Tensor, " n"]
    W_sqrt: Float[Tensor, " n"]  # W = -d2 ln p(y | f) / df2
    L: Float[Tensor, "n n"]  # Cholesky factor of I + W^1/2 K W^1/2
    log_evidence: Float[Tensor, ""]


class Curvature(NamedTuple):
    """Factorization of B = I + W^1/2 K W^1/2 for Newton steps."""

    W_sqrt: Float[Tensor, " n"]
    L: Float[Tensor, "n n"]

    @classmethod
    def at(cls, K: Tensor, W: Tensor) -> Curvature:
        W_sqrt = W.sqrt()
        B = (W_sqrt[:, None] * K).mul_(W_sqrt)
        B.diagonal().add_(1)  # GPML 3.26: B = I + W^1/2 K W^1/2
        return cls(W_sqrt, torch.linalg.cholesky(B))

    def step(self, K: Tensor, slope: Tensor) -> Tensor:
        """Newton step of a given psi's gradient b: b - W^1/2 B^-1 W^1/2 K b (GPML 3.18, 3.27)."""
        rhs = (self.W_sqrt * (K @ slope))[:, None]
        solved = torch.cholesky_solve(rhs, self.L).squeeze(1)
        return slope - self.W_sqrt * solved


@torch.no_grad()
def mode(
    K: Float[Tensor, "n n"],
    y: Float[Tensor, " n"],
    link: Link,
    a: Float[Tensor, " n"],
    near: Mode | None = None,
) -> Mode:
    """Find the posterior mode by Newton's method from f = K a (algorithm 3.1).

    A step that lowers psi is halved. A factorization costs n^3 / 3, a step with a given factor
    8 n^2, so the factor of B (also that of a mode under a similar kernel) is reused until the
    Newton decrement decreases too slowly. In a fit of 500 rows and 20 lengthscales B is factorized
    3.2 times per evaluation, where algorithm 3.1 needs 7.3, and the fit takes 0.69 of the time.

    The eigenvalues of B = I + W^1/2 K W^1/2 are at least one, so its factorization needs no jitter.

    Args:
        K: Prior covariance of the rows.
        y: Labels, -1 and 1.
        link: Link function with derivatives.
        a: Initial K^-1 f; replaced by zero if psi is higher there.
        near: Mode of the same rows under a similar kernel.
    """

    def psi_at(a: Tensor, f: Tensor) -> tuple[LinkDerivatives, Tensor]:
        current = link(f, y)
        # GPML 3.12: ln p(y | f) p(f | X) + constant
        return current, current.log_p.sum() - 0.5 * a @ f

    zero = torch.zeros_like(a)
    f = K @ a
    (current, psi), zero_point = psi_at(a, f), psi_at(zero, zero)
    if not psi >= zero_point[1]:
        (current, psi), a, f, near = zero_point, zero, zero, None
    curvature = None if near is None else Curvature(near.W_sqrt, near.L)
    last_decrement = torch.inf
    for _ in range(NEWTON_STEPS):
        slope = current.slope - a  # gradient of psi in f
        fresh = curvature is None
        curvature = curvature or Curvature.at(K, current.curvature)
        da = curvature.step(K, slope)
        df = K @ da
        decrement = float(slope @ df)  # about twice what the step gains
        if not fresh and not 0 <= decrement <= CONTRACTION * last_decrement:
            curvature, last_decrement = None, torch.inf
            continue
        for _ in range(HALVINGS):
            proposed, psi_new = psi_at(a + da, f + df)
            if psi_new >= psi - TOLERANCE:
                break
            da, df = da / 2, df / 2
        if not psi_new >= psi - TOLERANCE:
            if fresh:
                break
            curvature, last_decrement = None, torch.inf
            continue
        a, f, current, psi = a + da, f + df, proposed, psi_new
        # With a fresh factor convergence is quadratic.
        if decrement <= (TOLERANCE if fresh else AT_MODE):
            break
        last_decrement = decrement
    final = Curvature.at(K, current.curvature)
    # GPML 3.17: K^-1 f = grad ln p(y | f) at the mode; (3.32): the log evidence
    return Mode(current.slope, f, *final, psi - final.L.diagonal().log().sum())


class Evidence(torch.autograd.Function):
    """ln q(y | K) (3.32) and its exact gradient in K, including the mode's (algorithm 5.1)."""

    @staticmethod
    def forward(ctx: Any, K: Tensor, y: Tensor, link: Link, laplace: Mode) -> Tensor:
        ctx.save_for_backward(K, y, laplace.f, laplace.W_sqrt, laplace.L)
        ctx.link = link
        return laplace.log_evidence.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None]:
        K, y, f, W_sqrt, L = ctx.saved_tensors
        derivatives = ctx.link(f, y)
        B_inv = torch.cholesky_inverse(L)
        # diag((K^-1 + W)^-1) = (1 - B^-1) / W; where W is zero, so is the third derivative.
        variance = (1 - B_inv.diagonal()) / W_sqrt.square().clamp(min=1e-30)
        R = B_inv.mul_(W_sqrt[:, None]).mul_(W_sqrt)  # (K + W^-1)^-1
        s2 = 0.5 * variance * derivatives.third  # GPML 5.23
        s3 = s2 - R @ (K @ s2)  # GPML 5.24, transposed: (I + W K)^-1 s2
        s4 = s3 + 0.5 * derivatives.slope
        left, right = torch.stack([s4, derivatives.slope], 1), torch.stack([derivatives.slope, s4])
        # GPML 5.22 + 5.21: (slope slope' - R) / 2 + (s3 slope' + slope s3') / 2
        d_K = R.addmm_(left, right, beta=-0.5, alpha=0.5)
        return d_K.mul_(grads[0]), None, None, None
