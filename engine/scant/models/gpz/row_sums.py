"""GPz's log evidence 3.35 and its gradient as sums over blocks of rows.

The evidence needs two passes over the rows. The first sums Phi Omega B Phi' and Phi Omega B y,
which give the posterior of the weights (3.32-3.34); the second sums the value and the gradients
4.13-4.20 given that posterior. Sums are accumulated over blocks of rows that stay in the CPU's
cache, or over processes (`scant.models.gpz.distributed`).

Noisy inputs change the form of the basis functions; they use `scant.models.gpz.evidence.Evidence`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from scant.inference.expectations import Forms
from scant.inference.psi import LOG2_E, pairs

BLOCK = 1024  # rows; with 100 basis functions a block fits a second-level cache
BLOCK_CUDA = 1 << 16


class Pattern(NamedTuple):
    """Rows with the same missing pattern, as quantities that do not depend on parameters.

    ln phi_j(x) is linear in the features of x: products of observed values, the values and 1.
    """

    features: Float[Tensor, "n q"]
    linear: Float[Tensor, "n l"]  # columns of the linear mean
    y: Float[Tensor, " n"]
    omega: Float[Tensor, " n"]


class Moments(NamedTuple):
    """Sums of the first pass, over rows r_i = sqrt(omega_i beta_i) (phi_i, linear_i)."""

    square: Float[Tensor, "p p"]  # Phi Omega B Phi'
    target: Float[Tensor, " p"]  # Phi Omega B y


class Slopes(NamedTuple):
    """Sums of the second pass: data terms of the negative log evidence and its gradients."""

    value: Float[Tensor, ""]
    weights: tuple[Float[Tensor, "m q"], ...]  # a tensor for each pattern
    v: Float[Tensor, " m"]
    b: Float[Tensor, ""]


@runtime_checkable
class RowSums(Protocol):
    """Rows, local or distributed, that sum up their terms of the evidence."""

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """First pass. `weights`: ln phi = features @ weights.T, one tensor per pattern."""

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """Second pass at the parameters of the first, given the posterior of the weights."""


def features(X: Float[Tensor, "n d"], full: bool) -> Float[Tensor, "n q"]:
    """Squares of the columns (all pairwise products if `full`), the columns, and ones."""
    at = pairs(X.shape[1], X.device)
    squares = X[:, at.i] * X[:, at.j] if full else X.square()
    return torch.cat([squares, X, X.new_ones(len(X), 1)], dim=1)


def log_basis_weights(forms: Forms) -> Float[Tensor, "m q"]:
    """ln phi_j = -(x' A_j x - 2 b_j' x + c_j) / 2 as weights of `features`."""
    if forms.A.dim() == 3:
        at = pairs(forms.A.shape[1], forms.A.device)
        squares = forms.A.flatten(1).index_select(1, at.upper) * -at.share.to(forms.A)
    else:
        squares = -0.5 * forms.A.expand(len(forms.b), -1)
    return torch.cat([squares, forms.b, -0.5 * forms.c[:, None]], dim=1)


class LocalRows:
    """Rows in the memory of this process, processed in blocks.

    Buffers of n x (p + 1) elements are kept between passes and evaluations, so that steps allocate
    no memory. A row of `R` is a column of the design matrix, and the last row is the target: matrix
    products then read contiguous memory (four fifths of the time) and give both sums at once.

    Args:
        patterns: Rows, grouped by missing pattern.
        n_basis: Number m of basis functions.
    """

    def __init__(self, patterns: list[Pattern], n_basis: int) -> None:
        self.patterns, self._m = patterns, n_basis
        like, width = patterns[0].y, n_basis + patterns[0].linear.shape[1] + 1
        self.block = BLOCK if like.device.type == "cpu" else BLOCK_CUDA
        self._rows = [
            [like.new_empty(width, len(y)) for y in p.y.split(self.block)] for p in patterns
        ]
        self._root = [torch.empty_like(p.y) for p in patterns]  # sqrt(omega beta)
        self._log_beta = [torch.empty_like(p.y) for p in patterns]
        self._spread = like.new_empty(2, width * self.block)

    def _blocks(self, k: int) -> Iterator[tuple[slice, Float[Tensor, "p+1 b"]]]:
        """Slices of rows of pattern k with their buffers R."""
        for i, R in enumerate(self._rows[k]):
            yield slice(i * self.block, (i + 1) * self.block), R

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """See `RowSums`."""
        m, width = self._m, len(self._rows[0][0])
        total = b.new_zeros(width, width)
        for k, pattern in enumerate(self.patterns):
            H = weights[k] * LOG2_E
            for r, R in self._blocks(k):
                R[m:-1], R[-1] = pattern.linear[r].T, pattern.y[r]
                phi = torch.mm(H, pattern.features[r].T, out=R[:m])
                phi.clamp_(max=0).exp2_()  # rounding can make a squared distance slightly negative
                log_beta = torch.addmv(b, phi.T, v, out=self._log_beta[k][r])
                root = torch.mul(log_beta, 0.5, out=self._root[k][r]).exp_()
                R.mul_(root.mul_(pattern.omega[r].sqrt()))
                total.addmm_(R, R.T)
        return Moments(total[:-1, :-1], total[:-1, -1])  # 3.33

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """See `RowSums`.

        With rows r_i scaled by s_i = sqrt(omega_i beta_i) and e_i = s_i (y_i - w' phi_i), the
        gradient with respect to ln phi_ij is (Sigma^-1 r_i - e_i w)_j r_ij, plus d_i v_j phi_ij
        through ln beta_i, whose gradient is d_i (4.13, 4.18, 4.20).
        """
        m = self._m
        value, db, dv = mean.new_zeros(()), mean.new_zeros(()), torch.zeros_like(v)
        dH = [p.features.new_zeros(m, p.features.shape[1]) for p in self.patterns]
        vw = torch.stack([v, -mean[:m]], dim=1)
        transform = torch.block_diag(covariance, mean.new_ones(1))
        transform[-1, :-1] = -mean
        for k, pattern in enumerate(self.patterns):
            for r, R in self._blocks(k):
                S, P = (buffer[: R.numel()].view_as(R) for buffer in self._spread)
                e = torch.mm(transform, R, out=S)[-1]  # the other rows are Sigma^-1 r_i
                square, omega = e.square(), pattern.omega[r]
                value += 0.5 * (square.sum() - omega @ self._log_beta[k][r])
                leverage = torch.mul(S[:-1], R[:-1], out=P[:-1]).sum(0)
                d = 0.5 * (square + leverage - omega)
                t = d / self._root[k][r]
                G = S[:m].addmm_(vw, torch.stack([t, e])).mul_(R[:m])
                dH[k].addmm_(G, pattern.features[r])
                dv.addmv_(R[:m], t)
                db += d.sum()
        return Slopes(value, tuple(dH), dv, db)
