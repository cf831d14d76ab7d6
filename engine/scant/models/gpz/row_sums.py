"""GPz's log evidence 3.35 and its gradient as sums over rows, a block of rows at a time.

The evidence needs two passes over the rows. The first adds up Phi Omega B Phi' and Phi Omega B y,
which give the posterior of the weights (3.32-3.34); the second adds up the value and the gradients
4.13-4.20 given that posterior. Each sum can be made of parts: blocks of rows that stay in the
processor's cache here, and rows held by other processes in `scant.models.gpz.distributed`.

Where the noise of the inputs is given, the basis functions have another form, and
`scant.models.gpz.evidence.Evidence` takes them as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from scant.inference.expectations import Forms
from scant.inference.psi import LOG2_E, pairs

BLOCK = 1024  # rows; with 100 basis functions their numbers fill a second-level cache
BLOCK_CUDA = 1 << 16


class Pattern(NamedTuple):
    """Rows that miss the same values, and what of them no parameter changes.

    ln phi_j(x) is linear in the features of x: its observed values' products, themselves and 1.
    """

    features: Float[Tensor, "n q"]
    linear: Float[Tensor, "n l"]  # the linear mean's columns
    y: Float[Tensor, " n"]
    omega: Float[Tensor, " n"]


class Moments(NamedTuple):
    """Sums of the first pass, over rows r_i = sqrt(omega_i beta_i) (phi_i, linear_i)."""

    square: Float[Tensor, "p p"]  # Phi Omega B Phi'
    target: Float[Tensor, " p"]  # Phi Omega B y


class Slopes(NamedTuple):
    """Sums of the second pass: the data's part of the negative log evidence and its gradients."""

    value: Float[Tensor, ""]
    weights: tuple[Float[Tensor, "m q"], ...]  # a tensor for each pattern
    v: Float[Tensor, " m"]
    b: Float[Tensor, ""]


@runtime_checkable
class RowSums(Protocol):
    """Rows somewhere, which add up their parts of the evidence."""

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """The first pass. `weights`: ln phi = features @ weights.T, a tensor for each pattern."""

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """The second pass, at the point of the first, given the posterior of the weights."""


def features(X: Float[Tensor, "n d"], full: bool) -> Float[Tensor, "n q"]:
    """Squares of the columns (products of all pairs where full), the columns, and ones."""
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
    """Rows in this process's memory, in blocks.

    Keeps n x (p + 1) numbers between the passes, and from one evaluation to the next, so that no
    step asks the system for memory. A row of `R` is a column of the design matrix, and the last is
    the target: every product of matrices then reads its operands along memory, which takes four
    fifths of the time, and gives the sums of both at once.

    Args:
        patterns: The rows, by pattern of missing values.
        n_basis: m.
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
        """Of a pattern: which rows, and their R."""
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
                phi.clamp_(max=0).exp2_()  # rounding can lift a distance of zero below it
                log_beta = torch.addmv(b, phi.T, v, out=self._log_beta[k][r])
                root = torch.mul(log_beta, 0.5, out=self._root[k][r]).exp_()
                R.mul_(root.mul_(pattern.omega[r].sqrt()))
                total.addmm_(R, R.T)
        return Moments(total[:-1, :-1], total[:-1, -1])  # 3.33

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """See `RowSums`. With rows r_i scaled by s_i = sqrt(omega_i beta_i), s_i (y_i - w' phi_i)
        = e_i, the gradient of the value by ln phi_ij is (Sigma^-1 r_i - e_i w)_j r_ij, and
        d_i v_j phi_ij through ln beta_i, whose own gradient is d_i (4.13, 4.18, 4.20).
        """
        m = self._m
        value, db, dv = mean.new_zeros(()), mean.new_zeros(()), torch.zeros_like(v)
        dH = [p.features.new_zeros(m, p.features.shape[1]) for p in self.patterns]
        vw = torch.stack([v, -mean[:m]], dim=1)
        both = torch.block_diag(covariance, mean.new_ones(1))
        both[-1, :-1] = -mean
        for k, pattern in enumerate(self.patterns):
            for r, R in self._blocks(k):
                S, P = (buffer[: R.numel()].view_as(R) for buffer in self._spread)
                e = torch.mm(both, R, out=S)[-1]  # the others are Sigma^-1 r_i
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
