"""GPz's log evidence 3.35 and its gradient as sums over rows, a block of rows at a time.

The evidence needs two passes over the rows. The first adds up Phi Omega B Phi' and Phi Omega B y,
which give the posterior of the weights (3.32-3.34); the second adds up the value and the gradients
4.13-4.20 given that posterior. Each sum can be made of parts: blocks of rows that stay in the
processor's cache here, and rows held by other processes in `scant.models.gpz.distributed`.

Where the noise of the inputs is given, the basis functions have another form, and
`scant.models.gpz.evidence.Evidence` takes them as they are.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from scant.inference.expectations import Forms
from torch import Tensor

BLOCK = 512  # rows; with 100 basis functions their numbers fill half of a second-level cache
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
    i = j = torch.arange(X.shape[1], device=X.device)
    if full:
        i, j = torch.triu_indices(X.shape[1], X.shape[1], device=X.device)
    return torch.cat([X[:, i] * X[:, j], X, X.new_ones(len(X), 1)], dim=1)


def log_basis_weights(forms: Forms) -> Float[Tensor, "m q"]:
    """ln phi_j = -(x' A_j x - 2 b_j' x + c_j) / 2 as weights of `features`."""
    A = forms.A
    if A.dim() == 3:
        i, j = torch.triu_indices(A.shape[1], A.shape[1], device=A.device)
        A = A[:, i, j] * torch.where(i == j, 1.0, 2.0).to(A)
    return torch.cat([-0.5 * A.expand(len(forms.b), -1), forms.b, -0.5 * forms.c[:, None]], dim=1)


class LocalRows:
    """Rows in this process's memory, in blocks.

    Keeps n x p numbers between the passes, and from one evaluation to the next, so that no step
    asks the system for memory.

    Args:
        patterns: The rows, by pattern of missing values.
        n_basis: m.
    """

    def __init__(self, patterns: list[Pattern], n_basis: int) -> None:
        self.patterns, m = patterns, n_basis
        like, width = patterns[0].y, n_basis + patterns[0].linear.shape[1]
        self.block = BLOCK if like.device.type == "cpu" else BLOCK_CUDA
        self._rows = [like.new_empty(len(p.y), width) for p in patterns]
        self._root = [torch.empty_like(p.y) for p in patterns]  # sqrt(omega beta)
        self._log_beta = [torch.empty_like(p.y) for p in patterns]
        self._spread = like.new_empty(self.block, width)
        self._m = m

    def _blocks(self, n: int) -> list[slice]:
        return [slice(i, i + self.block) for i in range(0, n, self.block)]

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """See `RowSums`."""
        m, width = self._m, self._spread.shape[1]
        square, target = b.new_zeros(width, width), b.new_zeros(width)
        for k, pattern in enumerate(self.patterns):
            for r in self._blocks(len(pattern.y)):
                R = self._rows[k][r]
                phi = torch.mm(pattern.features[r], weights[k].T, out=R[:, :m])
                phi.clamp_(max=0).exp_()  # rounding can lift a distance of zero below it
                R[:, m:] = pattern.linear[r]
                log_beta = torch.addmv(b, phi, v, out=self._log_beta[k][r])
                root = torch.mul(log_beta, 0.5, out=self._root[k][r]).exp_()
                root.mul_(pattern.omega[r].sqrt())
                R.mul_(root.unsqueeze(1))
                square.addmm_(R.T, R)  # 3.33
                target.addmv_(R.T, root * pattern.y[r])
        return Moments(square, target)

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """See `RowSums`. With rows r_i scaled by s_i = sqrt(omega_i beta_i), s_i (y_i - w' phi_i)
        = e_i, the gradient of the value by ln phi_ij is (Sigma^-1 r_i - e_i w)_j r_ij, and
        d_i v_j phi_ij through ln beta_i, whose own gradient is d_i (4.13, 4.18, 4.20).
        """
        m = self._m
        value, db, dv = mean.new_zeros(()), mean.new_zeros(()), torch.zeros_like(v)
        dH = [p.features.new_zeros(m, p.features.shape[1]) for p in self.patterns]
        wv = torch.stack([mean[:m], v])
        for k, pattern in enumerate(self.patterns):
            for r in self._blocks(len(pattern.y)):
                R, root, omega = self._rows[k][r], self._root[k][r], pattern.omega[r]
                e = torch.addmv(root * pattern.y[r], R, mean, alpha=-1)
                S = torch.mm(R, covariance, out=self._spread[: len(R)])
                square = e.square()
                value += 0.5 * (square.sum() - omega @ self._log_beta[k][r])
                d = 0.5 * (square + torch.linalg.vecdot(S, R) - omega)
                t = d / root
                G = S[:, :m].addmm_(torch.stack([-e, t], dim=1), wv).mul_(R[:, :m])
                dH[k].addmm_(G.T, pattern.features[r])
                dv.addmv_(R[:, :m].T, t)
                db += d.sum()
        return Slopes(value, tuple(dH), dv, db)
