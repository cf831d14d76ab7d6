"""An EQ kernel's matrices under Gaussian inputs, with their gradients by hand.

Of a kernel height exp(-(x - z)' P (x - z) / 2) with a diagonal P = 1 / lengthscale^2 that all
centres share, and x ~ N(mean, variance) with diagonal variances: k among the centres, psi1 and psi2
(Titsias and Lawrence 2010; Yousefi 2021, B.7 and B.8). `expectations` has them one by one and for
any precision.

Products of two kernels are kernels with the precision 2 P about the middle of both centres, of the
height^2 exp(-(z - z')' P (z - z') / 4). So all exponents are thin products
F H', with F = (beta mean, beta, own, 1) of a row and H = (z, -z^2 / 2, 1, level) of a centre,
where beta = P / (1 + P variance). Rows pass through in blocks that stay in cache, and autograd does
not follow the many small steps from parameters to F and H.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 1 << 18  # numbers: two megabytes
LOG2_E = math.log2(math.e)  # PyTorch's exp2 takes half the time of its exp
KEPT = 1 << 22  # numbers that are kept for the gradient; more are made again


class Pairs(NamedTuple):
    """The pairs i <= j of m things."""

    i: Int[Tensor, " k"]
    j: Int[Tensor, " k"]
    upper: Int[Tensor, " k"]  # of a flat matrix
    of: Int[Tensor, " m*m"]  # pair of each entry of a flat matrix
    share: Float[Tensor, " k"]  # of both entries in a sum: a half on the diagonal


@lru_cache(maxsize=64)
def pairs(m: int, device: torch.device) -> Pairs:
    """See `Pairs`."""
    i, j = torch.triu_indices(m, m, device=device)
    of = torch.empty(m, m, dtype=torch.long, device=device)
    of[i, j] = of[j, i] = torch.arange(len(i), device=device)
    share = torch.where(i == j, 0.5, 1.0).double()
    return Pairs(i, j, i * m + j, of.flatten(), share)


class _Rows(NamedTuple):
    """What the exponents need of the rows for P and for 2 P, and beta's parts."""

    F: Float[Tensor, "2 n p"]
    beta: Float[Tensor, "2 n q"]
    shrink: Float[Tensor, "2 n q"]

    @classmethod
    def of(cls, mean: Tensor, variance: Tensor, precision: Tensor) -> _Rows:
        P = torch.stack([precision, 2 * precision]).unsqueeze(1)
        shrink = (variance * P).add_(1).reciprocal_()
        beta = P * shrink
        along = beta * mean
        own = shrink.log().sub_(along * mean).sum(2, keepdim=True).mul_(0.5)
        return cls(torch.cat([along, beta, own, torch.ones_like(own)], 2), beta, shrink)

    def gradients(self, mean: Tensor, variance: Tensor, dF: Tensor) -> tuple[Tensor, ...]:
        """In means, variances and precision."""
        q = mean.shape[1]
        of_along, of_beta, of_own = dF[..., :q], dF[..., q : 2 * q], dF[..., 2 * q : 2 * q + 1]
        reach = mean * of_own
        total = (of_along - 0.5 * reach).mul_(mean).add_(of_beta)
        of_mean = (of_along - reach).mul_(self.beta).sum(0)
        of_variance = (self.beta * total).add_(of_own, alpha=0.5).mul_(self.beta).sum(0).neg_()
        each = (self.shrink * total).sub_(variance * of_own, alpha=0.5).mul_(self.shrink).sum(1)
        return of_mean, of_variance, each[0] + 2 * each[1]


def _centers(Z: Tensor, level: Tensor) -> Float[Tensor, "p k"]:
    Z = Z.T
    return torch.cat([Z, -0.5 * Z.square(), torch.ones_like(Z[:1]), level.unsqueeze(0)])


class _Matrices(torch.autograd.Function):
    """See the module: k, psi1 and psi2; levels are logarithms of heights."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        mean: Tensor,
        variance: Tensor,
        Z: Tensor,
        precision: Tensor,
        level: Tensor,
        weights: Tensor,
        jitter: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        m, n = len(Z), len(mean)
        at = pairs(m, Z.device)
        first, second = Z.index_select(0, at.i), Z.index_select(0, at.j)
        gap = (first - second).square_()
        apart = (gap @ precision).mul_(-0.25)
        k = (2 * apart).add_(level).exp_()
        k.addcmul_(k, 1 - at.share.to(k), value=2 * jitter)  # on the diagonal
        rows = _Rows.of(mean, variance, precision)
        one, two = rows.F
        H1 = _centers(Z, level.expand(m))
        H2 = _centers((first + second).mul_(0.5), apart.add_(level, alpha=2))
        psi1, exponents = (one @ (H1 * LOG2_E)).exp2_(), H2 * LOG2_E
        total = mean.new_zeros(weights.shape[1], len(k))
        kept = mean.new_empty(n, len(k)) if n * len(k) <= KEPT else None
        for r in _blocks(n, len(k)):
            E = two[r] @ exponents if kept is None else torch.mm(two[r], exponents, out=kept[r])
            total.addmm_(weights[r].T, E.exp2_())
        ctx.save_for_backward(mean, variance, Z, precision, weights, gap, k, psi1)
        ctx.rest = rows, H1, H2, kept
        return k.index_select(0, at.of).view(m, m), psi1, total[:, at.of].view(-1, m, m)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        mean, variance, Z, precision, weights, gap, k, psi1 = ctx.saved_tensors
        (rows, H1, H2, kept), (of_K, of_psi1, of_psi2) = ctx.rest, gradients
        (one, two), (m, q) = rows.F, Z.shape
        at = pairs(m, mean.device)
        share = at.share.to(mean.dtype)

        def paired(G: Tensor) -> Tensor:
            """Twice the gradient on the diagonal, whose pair stands for one entry alone."""
            flat = (G + G.mT).flatten(-2)
            return flat.index_select(-1, at.upper)

        G2 = paired(of_psi2)
        G = G2 * share
        dF, dH2 = torch.empty_like(rows.F), torch.zeros_like(H2)
        single = len(G) == 1  # scale the thin matrices and not the wide one
        scaled, thin = (H2 * G, weights * two) if single else (H2, two)
        for r in _blocks(len(mean), len(k)):
            E = (two[r] @ (H2 * LOG2_E)).exp2_() if kept is None else kept[r]
            if not single:
                E = E * (weights[r] @ G)
            torch.mm(E, scaled.T, out=dF[1, r])
            dH2.addmm_(thin[r].T, E)
        if single:
            dF[1] *= weights
        dH2 *= G2 if single else share.reciprocal()
        E1 = psi1 * of_psi1
        torch.mm(E1, H1.T, out=dF[0])
        dH1 = one.T @ E1
        of_mean, of_variance, of_precision = rows.gradients(mean, variance, dF)
        # Of pairs as full matrices, whose sums over the second centre belong to the first.
        of_middle = (dH2[:q] - H2[:q] * dH2[q : 2 * q])[:, at.of].view(q, m, m).sum(2)
        of_k = k * paired(of_K)
        of_level = dH1[-1].sum() + (of_k + 2 * dH2[-1]).dot(share)
        of_apart = dH2[-1] + 2 * of_k
        of_precision -= 0.25 * (of_apart @ gap)  # nothing on the diagonal
        full = of_apart.index_select(0, at.of).view(m, m)
        of_gap = precision * (Z * full.sum(1, keepdim=True) - full @ Z)
        of_Z = (dH1[:q] - H1[:q] * dH1[q : 2 * q]).add_(of_middle, alpha=0.5).T
        return of_mean, of_variance, of_Z - 0.5 * of_gap, of_precision, of_level, None, None


def _blocks(n: int, k: int) -> list[slice]:
    step = max(1, BLOCK // max(k, 1))
    return [slice(start, start + step) for start in range(0, n, step)]


def eq_matrices(
    mean: Float[Tensor, "n q"],
    variance: Float[Tensor, "n q"],
    Z: Float[Tensor, "m q"],
    precision: Float[Tensor, " q"],
    level: Float[Tensor, ""],
    weights: Float[Tensor, "n w"],
    jitter: float = 0.0,
) -> tuple[Float[Tensor, "m m"], Float[Tensor, "n m"], Float[Tensor, "w m m"]]:
    """k among the centres, E[k(x, z)] of each row, and sums over the rows of weight E[k k'].

    The kernel's height is exp(level); of k among the centres the diagonal is greater by the share
    `jitter`. Differentiable once, but for the weights.
    """
    given = mean, variance, Z, precision, level, weights, jitter
    K, psi1, psi2 = _Matrices.apply(*given)  # type: ignore[no-untyped-call]
    return K, psi1, psi2
