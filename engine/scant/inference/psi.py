"""K_zz, psi1 and psi2 of an EQ-ARD kernel under Gaussian inputs, with explicit gradients.

The kernel is s^2 exp(-(x - z)' P (x - z) / 2) with a shared diagonal P = 1 / lengthscale^2, and
x ~ N(mean, variance) with diagonal variances (Titsias and Lawrence 2010; Yousefi 2021, B.7, B.8).
`expectations` has the statistics one by one and for any precision.

The product of two kernels is a kernel with precision 2 P, centered at the midpoint of z and z', of
variance s^4 exp(-(z - z')' P (z - z') / 4). All exponents are therefore thin products F H', with
F = (beta mean, beta, row_term, 1) of a row and H = (z, -z^2 / 2, 1, log_variance) of a center,
where beta = P / (1 + P variance). Rows are processed in blocks that stay in cache, and autograd
does not record the many small steps from the parameters to F and H.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 1 << 18  # elements: two megabytes
LOG2_E = math.log2(math.e)  # PyTorch's exp2 takes half the time of its exp
MAX_SAVED = 1 << 22  # elements saved for the backward pass; more are recomputed


class Pairs(NamedTuple):
    """Index pairs i <= j of m centers."""

    i: Int[Tensor, " k"]
    j: Int[Tensor, " k"]
    upper: Int[Tensor, " k"]  # index of (i, j) in a flattened m x m matrix
    entry: Int[Tensor, " m*m"]  # pair of each entry of a flattened m x m matrix
    share: Float[Tensor, " k"]  # weight in sums over pairs: 1/2 on the diagonal, else 1


@lru_cache(maxsize=64)
def pairs(m: int, device: torch.device) -> Pairs:
    """Cached `Pairs` of m centers on a device."""
    i, j = torch.triu_indices(m, m, device=device)
    entry = torch.empty(m, m, dtype=torch.long, device=device)
    entry[i, j] = entry[j, i] = torch.arange(len(i), device=device)
    share = torch.where(i == j, 0.5, 1.0).double()
    return Pairs(i, j, i * m + j, entry.flatten(), share)


class _Rows(NamedTuple):
    """Row factors of the exponents for precision P (first) and 2 P (second)."""

    F: Float[Tensor, "2 n p"]
    beta: Float[Tensor, "2 n q"]
    shrink: Float[Tensor, "2 n q"]

    @classmethod
    def from_inputs(cls, mean: Tensor, variance: Tensor, precision: Tensor) -> _Rows:
        P = torch.stack([precision, 2 * precision]).unsqueeze(1)
        shrink = (variance * P).add_(1).reciprocal_()
        beta = P * shrink
        beta_mean = beta * mean
        row_term = shrink.log().sub_(beta_mean * mean).sum(2, keepdim=True).mul_(0.5)
        return cls(
            torch.cat([beta_mean, beta, row_term, torch.ones_like(row_term)], 2), beta, shrink
        )

    def gradients(self, mean: Tensor, variance: Tensor, dF: Tensor) -> tuple[Tensor, ...]:
        """Gradients with respect to means, variances and precision, given that of F."""
        q = mean.shape[1]
        d_beta_mean, d_beta, d_row_term = (
            dF[..., :q],
            dF[..., q : 2 * q],
            dF[..., 2 * q : 2 * q + 1],
        )
        scaled = mean * d_row_term
        total = (d_beta_mean - 0.5 * scaled).mul_(mean).add_(d_beta)
        d_mean = (d_beta_mean - scaled).mul_(self.beta).sum(0)
        d_variance = (self.beta * total).add_(d_row_term, alpha=0.5).mul_(self.beta).sum(0).neg_()
        d_precision = (
            (self.shrink * total).sub_(variance * d_row_term, alpha=0.5).mul_(self.shrink).sum(1)
        )
        return d_mean, d_variance, d_precision[0] + 2 * d_precision[1]


def _centers(Z: Tensor, level: Tensor) -> Float[Tensor, "p k"]:
    Z = Z.T
    return torch.cat([Z, -0.5 * Z.square(), torch.ones_like(Z[:1]), level.unsqueeze(0)])


class _Matrices(torch.autograd.Function):
    """K_zz, psi1 and psi2 (see the module docstring); `level` is ln s^2."""

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
        squares = (first - second).square_()
        product_level = (squares @ precision).mul_(-0.25)
        k = (2 * product_level).add_(level).exp_()
        k.addcmul_(k, 1 - at.share.to(k), value=2 * jitter)  # on the diagonal
        rows = _Rows.from_inputs(mean, variance, precision)
        one, two = rows.F
        H1 = _centers(Z, level.expand(m))
        H2 = _centers((first + second).mul_(0.5), product_level.add_(level, alpha=2))
        psi1, exponents = (one @ (H1 * LOG2_E)).exp2_(), H2 * LOG2_E
        total = mean.new_zeros(weights.shape[1], len(k))
        saved = mean.new_empty(n, len(k)) if n * len(k) <= MAX_SAVED else None
        for r in _blocks(n, len(k)):
            E = two[r] @ exponents if saved is None else torch.mm(two[r], exponents, out=saved[r])
            total.addmm_(weights[r].T, E.exp2_())
        ctx.save_for_backward(mean, variance, Z, precision, weights, squares, k, psi1)
        ctx.rest = rows, H1, H2, saved
        return k.index_select(0, at.entry).view(m, m), psi1, total[:, at.entry].view(-1, m, m)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        mean, variance, Z, precision, weights, squares, k, psi1 = ctx.saved_tensors
        (rows, H1, H2, saved), (d_K, d_psi1, d_psi2) = ctx.rest, gradients
        (one, two), (m, q) = rows.F, Z.shape
        at = pairs(m, mean.device)
        share = at.share.to(mean.dtype)

        def to_pairs(G: Tensor) -> Tensor:
            """Gradient per pair (i, j): the sum of both entries, twice that on the diagonal."""
            flat = (G + G.mT).flatten(-2)
            return flat.index_select(-1, at.upper)

        G2 = to_pairs(d_psi2)
        G = G2 * share
        dF, dH2 = torch.empty_like(rows.F), torch.zeros_like(H2)
        single = len(G) == 1  # scale the thin matrices instead of E
        scaled, thin = (H2 * G, weights * two) if single else (H2, two)
        for r in _blocks(len(mean), len(k)):
            E = (two[r] @ (H2 * LOG2_E)).exp2_() if saved is None else saved[r]
            if not single:
                E = E * (weights[r] @ G)
            torch.mm(E, scaled.T, out=dF[1, r])
            dH2.addmm_(thin[r].T, E)
        if single:
            dF[1] *= weights
        dH2 *= G2 if single else share.reciprocal()
        E1 = psi1 * d_psi1
        torch.mm(E1, H1.T, out=dF[0])
        dH1 = one.T @ E1
        d_mean, d_variance, d_precision = rows.gradients(mean, variance, dF)
        # Pairs as full matrices, summed over the second center, are gradients of the first.
        d_middle = (dH2[:q] - H2[:q] * dH2[q : 2 * q])[:, at.entry].view(q, m, m).sum(2)
        d_k = k * to_pairs(d_K)
        d_level = dH1[-1].sum() + (d_k + 2 * dH2[-1]).dot(share)
        d_product_level = dH2[-1] + 2 * d_k
        d_precision -= 0.25 * (d_product_level @ squares)  # squares are zero on the diagonal
        d_pairs = d_product_level.index_select(0, at.entry).view(m, m)
        d_squares = precision * (Z * d_pairs.sum(1, keepdim=True) - d_pairs @ Z)
        d_Z = (dH1[:q] - H1[:q] * dH1[q : 2 * q]).add_(d_middle, alpha=0.5).T
        return d_mean, d_variance, d_Z - 0.5 * d_squares, d_precision, d_level, None, None


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
    """K_zz, psi1 = E[k(x, z)] of each row, and psi2 = sum_n weight_nw E[k(x_n, z) k(x_n, z')].

    Differentiable once, except with respect to the weights.

    Args:
        mean: Means of the inputs.
        variance: Variances of the inputs.
        Z: Centers.
        precision: 1 / lengthscale^2 of each dimension.
        level: Logarithm of the kernel's variance.
        weights: Row weights, one psi2 for each column.
        jitter: The diagonal of K_zz is multiplied by 1 + jitter.
    """
    arguments = mean, variance, Z, precision, level, weights, jitter
    K, psi1, psi2 = _Matrices.apply(*arguments)  # type: ignore[no-untyped-call]
    return K, psi1, psi2
