"""Expectations of Gaussian-shaped kernels under Gaussian inputs: the psi statistics.

The kernel is k(x, z) = exp(-(x - z)' P (x - z) / 2) with unit variance and a precision P that is

- `"d"`: a diagonal shared by all centres (an EQ kernel with ARD, P = 1 / lengthscale^2),
- `"m d"`: a diagonal for each centre, or
- `"m d d"`: a full matrix for each centre (GPz's bespoke covariances),

and the inputs are x ~ N(mean, covariance), with diagonal (`"n d"`) or full (`"n d d"`)
covariances. P and the covariances may be singular: they are never inverted.

`expected_kernel` is psi1 / variance and `expected_product_sum` psi2 / variance^2 of Titsias and
Lawrence (2010); Almosallam (2017) has them in 5.8, 5.10 and 5.72. With a shared diagonal P their
exponents are products of two thin matrices (`linear_exponents`), so that psi2 and its gradients are
matrix products throughout (`exponential_sums`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

LOG_2PI = 1.8378770664093453

# Elements of the largest temporary array of a chunk of rows (32 MiB in float64).
CHUNK = 1 << 22
CACHED = 1 << 18  # the same of a block that fits the cache of a CPU (2 MiB): twice as fast


class Forms(NamedTuple):
    """k functions exp(-(x' A x - 2 b' x + c) / 2): Gaussians in information form.

    A is `"d"` (shared diagonal), `"k d"` (diagonals) or `"k d d"`. Products of functions are sums
    of (A, b, c), and integrals need no center A^-1 b, which does not exist for a singular A.
    """

    A: Float[Tensor, "*k_d d"]
    b: Float[Tensor, "k d"]
    c: Float[Tensor, " k"]

    def full(self) -> Forms:
        """Convert A to full matrices."""
        k, d = self.b.shape
        matrices = self.A if self.A.dim() == 3 else torch.diag_embed(self.A.expand(k, d))
        return Forms(matrices, self.b, self.c)

    def plus(self, other: Forms) -> Forms:
        """Products with one other function, or elementwise with k functions."""
        return Forms(self.A + other.A, self.b + other.b, self.c + other.c)

    def minus(self, other: Forms) -> Forms:
        """Quotients by one other function."""
        return Forms(self.A - other.A, self.b - other.b, self.c - other.c)

    def at(self, index: Tensor) -> Forms:
        """Select functions by index."""
        return Forms(self.A if self.A.dim() == 1 else self.A[index], self.b[index], self.c[index])


def kernel_forms(centres: Float[Tensor, "m d"], precision: Float[Tensor, "*m_d d"]) -> Forms:
    """Forms of k(., z_j) for every center z_j."""
    if precision.dim() == 3:
        b = (precision @ centres.unsqueeze(-1)).squeeze(-1)
    else:
        b = precision * centres
    return Forms(precision, b, (b * centres).sum(-1))


def pair_forms(forms: Forms) -> tuple[Forms, Tensor, Tensor]:
    """Products of all pairs i <= j of k functions, with the indices i and j."""
    k = len(forms.c)
    i, j = torch.triu_indices(k, k, device=forms.c.device)
    A = 2 * forms.A if forms.A.dim() == 1 else forms.A[i] + forms.A[j]
    return Forms(A, forms.b[i] + forms.b[j], forms.c[i] + forms.c[j]), i, j


def pair_blocks(forms: Forms) -> Iterator[tuple[Forms, Tensor, Tensor]]:
    """`pair_forms` in blocks of pairs whose forms stay below `CHUNK` elements."""
    k, d = forms.b.shape
    i, j = torch.triu_indices(k, k, device=forms.c.device)
    for p in _even_chunks(len(i), d * d if forms.A.dim() == 3 else d):
        yield forms.at(i[p]).plus(forms.at(j[p])), i[p], j[p]


def quadratics(X: Float[Tensor, "n d"], forms: Forms) -> Float[Tensor, "n k"]:
    """x' A_k x - 2 b_k' x + c_k for every row x and every k, as one matrix product.

    The factors are the squares and products of columns of X (`features`) and `coefficients`, so no
    array of size n x k x d is formed.
    """
    products = features(X, forms.A.dim() < 3)
    return torch.addmm(forms.c, products, coefficients(forms).T)


def features(X: Float[Tensor, "n d"], diagonal: bool) -> Float[Tensor, "n f"]:
    """Monomials of quadratic forms: squares (and products) of the columns, then the columns."""
    d = X.shape[1]
    if diagonal:
        return torch.cat([X * X, X], dim=1)
    i, j = torch.triu_indices(d, d, device=X.device)
    return torch.cat([X[:, i] * X[:, j], X], dim=1)


def coefficients(forms: Forms) -> Float[Tensor, "k f"]:
    """Coefficients of `features` in each quadratic form, without the constant c."""
    if forms.A.dim() < 3:
        weights = forms.A.expand_as(forms.b)
    else:
        i, j = torch.triu_indices(*forms.A.shape[1:], device=forms.A.device)
        weights = forms.A[:, i, j] * torch.where(i == j, 1.0, 2.0).to(forms.A)
    return torch.cat([weights, -2 * forms.b], dim=1)


def exp_(x: Tensor) -> Tensor:
    """In-place exponential without gradients.

    With AVX-512, NumPy takes half the time of PyTorch.
    """
    if x.device.type != "cpu" or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return x.exp_()
    np.exp(x.numpy(), out=x.numpy())
    return x


def log_kernel(
    X: Float[Tensor, "n d"], centres: Float[Tensor, "m d"], precision: Float[Tensor, "*m_d d"]
) -> Float[Tensor, "n m"]:
    """ln k(x, z) for deterministic inputs."""
    # Rounding can make a squared distance slightly negative.
    return (-0.5 * quadratics(X, kernel_forms(centres, precision))).clamp(max=0)


def marginal_forms(forms: Forms, observed: Bool[Tensor, " d"]) -> Forms:
    """Integrals over the unobserved coordinates u, as functions of the observed coordinates o.

    A_uu must be positive definite.
    """
    A, b, c = forms.full()
    o, u = observed.nonzero().squeeze(1), (~observed).nonzero().squeeze(1)
    if not len(u):
        return Forms(A, b, c)
    L = torch.linalg.cholesky(A[:, u[:, None], u])
    rhs = torch.cat([A[:, u[:, None], o], b[:, u, None]], dim=2)
    whitened = torch.linalg.solve_triangular(L, rhs, upper=False)
    A_uo, b_u = whitened[..., :-1], whitened[..., -1:]  # L^-1 A_uo, L^-1 b_u
    log_det = 2 * L.diagonal(dim1=1, dim2=2).log().sum(1) - len(u) * LOG_2PI
    return Forms(
        A[:, o[:, None], o] - A_uo.mT @ A_uo,  # A_oo - A_ou A_uu^-1 A_uo
        b[:, o] - (A_uo.mT @ b_u).squeeze(-1),
        c - b_u.square().sum((1, 2)) + log_det,
    )


def log_expected(
    forms: Forms, mean: Float[Tensor, "n d"], covariance: Float[Tensor, "n *d_d"]
) -> Float[Tensor, "n k"]:
    """ln E[exp(-(x' A x - 2 b' x + c) / 2)] for every x ~ N(mean, covariance) and every function.

    With a shared diagonal A this is one matrix product. Otherwise it needs n x k x d elements (all
    diagonal) or n x k matrices of d x d: chunk the rows (`row_chunks`).
    """
    if forms.A.dim() == 1:
        rows, functions = linear_exponents(forms, mean, covariance)
        return rows @ functions.T
    if covariance.dim() == 3 or forms.A.dim() == 3:
        log_det, gain = _full_gain(forms, mean, covariance)[:2]
        return -0.5 * (log_det + quadratics(mean, forms.full()) - gain)
    scale = 1 + forms.A * covariance.unsqueeze(1)  # diagonal of I + A S
    mean = mean.unsqueeze(1)
    exponent = forms.A * mean.square() - 2 * forms.b * mean
    exponent = (exponent - covariance.unsqueeze(1) * forms.b.square()) / scale + scale.log()
    return -0.5 * (exponent.sum(-1) + forms.c)


def linear_exponents(
    forms: Forms, mean: Float[Tensor, "n d"], covariance: Float[Tensor, "n *d_d"]
) -> tuple[Float[Tensor, "n p"], Float[Tensor, "k p"]]:
    """`log_expected` for a shared diagonal A as a product F H'.

    It has p = 2 d + 2 columns, or with full covariances S p = d (d + 3) / 2 + 2. With
    C = S (I + A S)^-1 the exponent is -1/2 of

        ln|I + A S| + m' (A - A C A) m + c - 2 b' (m - C A m) - b' C b.
    """
    if covariance.dim() == 2:
        shrink = 1 / (1 + forms.A * covariance)
        row_term = (forms.A * mean.square() * shrink - shrink.log()).sum(1, keepdim=True)
        moments, squares = [mean * shrink, covariance * shrink], forms.b.square()
    else:
        i, j = torch.triu_indices(*covariance.shape[1:], device=mean.device)
        I_SA = torch.eye(len(forms.A)).to(mean) + covariance * forms.A
        C = torch.linalg.solve(I_SA, covariance)
        left = mean - (C @ (forms.A * mean).unsqueeze(2)).squeeze(2)
        row_term = (forms.A * mean * left).sum(1, keepdim=True) + torch.logdet(I_SA)[:, None]
        moments = [left, C[:, i, j] * torch.where(i == j, 1.0, 2.0).to(C)]
        squares = forms.b[:, i] * forms.b[:, j]
    rows = torch.cat([*moments, row_term, torch.ones_like(row_term)], dim=1)
    parts = [-2 * forms.b, -squares, torch.ones_like(forms.b[:, :1]), forms.c[:, None]]
    return rows, -0.5 * torch.cat(parts, dim=1)


class _ExponentialSums(torch.autograd.Function):
    """sum_n weight_nw exp(F_n . H_k), with gradients as matrix products.

    The n x k exponentials are saved if they fit one chunk, else recomputed in the backward pass;
    autograd would store several arrays of that size.
    """

    @staticmethod
    def forward(ctx: Any, F: Tensor, H: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(F, H, weights)
        ctx.saved_E = None
        total = F.new_zeros(weights.shape[1], len(H))
        for r in _even_chunks(len(F), len(H)):
            E = (F[r] @ H.T).exp_()
            total.addmm_(weights[r].T, E)
            ctx.saved_E = E if len(E) == len(F) and any(ctx.needs_input_grad) else None
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        F, H, weights = ctx.saved_tensors
        (G,) = grads
        dF = torch.empty_like(F) if ctx.needs_input_grad[0] else None
        dH = torch.zeros_like(H)
        dweights = torch.empty_like(weights) if ctx.needs_input_grad[2] else None
        for r in _even_chunks(len(F), len(H)):
            E = (F[r] @ H.T).exp_() if ctx.saved_E is None else ctx.saved_E
            if dweights is not None:
                dweights[r] = E @ G.T
            if len(G) == 1:  # scale the thin matrices F and H instead of E
                if dF is not None:
                    dF[r] = weights[r] * (E @ (G.T * H))
                dH.addmm_(E.T, weights[r] * F[r])
            else:
                E = E * (weights[r] @ G)
                if dF is not None:
                    dF[r] = E @ H
                dH.addmm_(E.T, F[r])
        return dF, dH * G.T if len(G) == 1 else dH, dweights


def exponential_sums(
    F: Float[Tensor, "n p"], H: Float[Tensor, "k p"], weights: Float[Tensor, "n w"]
) -> Float[Tensor, "w k"]:
    """sum_n weight_nw exp(F_n . H_k), in one pass; differentiable once."""
    return cast(Tensor, _ExponentialSums.apply(F, H, weights))


def cached_chunks(n: int, k: int, device: torch.device) -> Iterator[slice]:
    """Slices of n rows with k elements each, which fit a CPU's cache, or `CHUNK` on a GPU."""
    return _even_chunks(n, k if device.type != "cpu" else k * (CHUNK // CACHED))


def _even_chunks(n: int, k: int) -> Iterator[slice]:
    """Slices of n rows with k elements each, of at most `CHUNK` elements."""
    step = max(1, CHUNK // max(k, 1))
    for start in range(0, n, step):
        yield slice(start, start + step)


def tilted_mean(
    forms: Forms, mean: Float[Tensor, "n d"], covariance: Float[Tensor, "n *d_d"]
) -> Float[Tensor, "n k d"]:
    """E[x g_k(x)] / E[g_k(x)] for every function g_k: the mean of N(mean, covariance) times g_k."""
    if covariance.dim() == 3 or forms.A.dim() == 3:
        return mean.unsqueeze(1) - _full_gain(forms, mean, covariance)[2]
    scale = 1 + forms.A * covariance.unsqueeze(1)
    return (mean.unsqueeze(1) + covariance.unsqueeze(1) * forms.b) / scale


def _full_gain(forms: Forms, mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ln|I + A S|, g' S (I + A S)^-1 g and S (I + A S)^-1 g, where g = A mean - b."""
    A, b, _ = forms.full()
    S = (covariance if covariance.dim() == 3 else torch.diag_embed(covariance)).unsqueeze(1)
    g = torch.einsum("kij,nj->nki", A, mean) - b
    I_AS = A @ S
    I_AS.diagonal(dim1=-2, dim2=-1).add_(1.0)
    LU, pivots = torch.linalg.lu_factor(I_AS)
    log_det = LU.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)
    solved = (S @ torch.linalg.lu_solve(LU, pivots, g.unsqueeze(-1))).squeeze(-1)
    return log_det, (g * solved).sum(-1), solved


def expected_kernel(
    mean: Float[Tensor, "n d"],
    covariance: Float[Tensor, "n *d_d"],
    centres: Float[Tensor, "m d"],
    precision: Float[Tensor, "*m_d d"],
) -> Float[Tensor, "n m"]:
    """E[k(x, z)] for Gaussian x (5.8, 5.72): psi1 for a kernel of unit variance."""
    forms = kernel_forms(centres, precision)
    parts = [log_expected(forms, mean[r], covariance[r]) for r in row_chunks(forms, covariance)]
    return torch.cat(parts).exp()


def expected_product(
    mean: Float[Tensor, "n d"],
    covariance: Float[Tensor, "n *d_d"],
    centres: Float[Tensor, "m d"],
    precision: Float[Tensor, "*m_d d"],
) -> Float[Tensor, "n m m"]:
    """E[k(x, z) k(x, z')] for each Gaussian x (5.10); returns n x m x m elements."""
    forms, i, j = pair_forms(kernel_forms(centres, precision))
    parts = [log_expected(forms, mean[r], covariance[r]) for r in row_chunks(forms, covariance)]
    m = len(centres)
    pair_index = torch.empty(m, m, dtype=torch.long, device=mean.device)
    pair_index[i, j] = pair_index[j, i] = torch.arange(len(i), device=mean.device)
    return torch.cat(parts).exp()[:, pair_index.flatten()].unflatten(1, (m, m))


def expected_product_sum(
    mean: Float[Tensor, "n d"],
    covariance: Float[Tensor, "n *d_d"],
    centres: Float[Tensor, "m d"],
    precision: Float[Tensor, "*m_d d"],
    weights: Float[Tensor, "n *w"] | None = None,
) -> Float[Tensor, "*w m m"]:
    """sum_n weight_n E[k(x_n, z) k(x_n, z')]: psi2 for a kernel of unit variance.

    Each column of weights gives one matrix; several columns cost little more than one.
    """
    forms, i, j = pair_forms(kernel_forms(centres, precision))
    weights = torch.ones_like(mean[:, 0]) if weights is None else weights
    columns = weights if weights.dim() == 2 else weights.unsqueeze(1)
    if precision.dim() == 1:
        total = exponential_sums(*linear_exponents(forms, mean, covariance), columns)
    else:
        total = mean.new_zeros(columns.shape[1], len(forms.c))
        for r in row_chunks(forms, covariance):
            total = total + columns[r].T @ log_expected(forms, mean[r], covariance[r]).exp()
    square = total.new_zeros(len(total), len(centres), len(centres))
    square[:, i, j] = total
    square = square + square.triu(1).mT
    return square if weights.dim() == 2 else square[0]


def expected_product_dot(
    mean: Float[Tensor, "n d"],
    covariance: Float[Tensor, "n *d_d"],
    centres: Float[Tensor, "m d"],
    precision: Float[Tensor, " d"],
    matrix: Float[Tensor, "m m"],
) -> Float[Tensor, " n"]:
    """sum_zz' M_zz' E[k(x, z) k(x, z')] of each input, without n x m x m elements."""
    forms, i, j = pair_forms(kernel_forms(centres, precision))
    symmetric = torch.where(i == j, matrix[i, j], matrix[i, j] + matrix[j, i])
    rows, functions = linear_exponents(forms, mean, covariance)
    return exponential_sums(functions, rows, symmetric.unsqueeze(1))[0]


def row_chunks(forms: Forms, covariance: Tensor) -> Iterator[slice]:
    """Slices of rows that keep temporary arrays of `log_expected` below `CHUNK` elements."""
    k, d = forms.b.shape
    per_function = d * d if covariance.dim() == 3 or forms.A.dim() == 3 else d
    size = k if forms.A.dim() == 1 and covariance.dim() == 2 else k * per_function
    return _even_chunks(len(covariance), size)
