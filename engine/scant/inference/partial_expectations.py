"""Expectations of Gaussian-shaped basis functions over a few uncertain directions.

The inputs of a row are x = mean + root e with e ~ N(0, I) in r dimensions: the r missing values of
the row given the observed ones, or their image under a projection. With the functions
exp(-(x' A_i x - 2 b_i' x + c_i) / 2) of `Forms`, M_i = root' A_i root and
g_i = root' (A_i mean - b_i),

    -2 ln E[phi_i] = ln|I + M_i| + q_i(mean) - g_i' (I + M_i)^-1 g_i,

and a product phi_i phi_j has M_i + M_j, g_i + g_j and q_i + q_j. Only r x r matrices occur, unlike
the d x d forms of `expectations.pair_forms`. Pairs are processed in blocks of `BLOCK` elements.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.inference.expectations import Forms, exp_, quadratics

BLOCK = 1 << 18  # elements of a block (2 MiB in float64), within a second-level cache
ROWS = 64  # rows of a block; each needs r elements per pair


class Partial(NamedTuple):
    """Expectations of k functions over n rows with one `root`, in the symbols of the module."""

    M: Float[Tensor, "k r r"]  # root' A_i root; k is 1 where all functions share A
    g: Float[Tensor, "n k r"]
    quadratic: Float[Tensor, "n k"]  # q_i at the mean

    @classmethod
    def from_forms(
        cls, forms: Forms, mean: Float[Tensor, "n d"], root: Float[Tensor, "d r"]
    ) -> Partial:
        """Compute M, g and q for rows with these means and a common root of their covariance."""
        A, b = forms.A if forms.A.dim() > 1 else forms.A[None], forms.b
        same = len(A) == 1 or bool((A[:1] == A).all())
        if A.dim() == 3:
            root_A = root.T @ (A[:1] if same else A)  # k r d
            M = root_A @ root
            g = torch.einsum("krd,nd->nkr", root_A, mean) - b @ root
        else:
            d, r = root.shape
            A = A[:1] if same else A
            M = (A @ (root[:, :, None] * root[:, None]).reshape(d, -1)).unflatten(1, (r, r))
            g = torch.stack([(mean * column) @ A.T for column in root.T], dim=2) - b @ root
        return cls(M, g, quadratics(mean, forms))

    @property
    def same(self) -> bool:
        """True if all functions share A."""
        return len(self.M) == 1

    def singles(self) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k r"]]:
        """E[phi_i], and (I + M_i)^-1 g_i: minus the mean of e under the density tilted by phi_i."""
        inner = self.M + torch.eye(self.M.shape[1], dtype=self.M.dtype, device=self.M.device)
        L = torch.linalg.cholesky(inner)
        solved = torch.cholesky_solve(self.g.permute(1, 2, 0), L.expand(self.g.shape[1], -1, -1))
        solved = solved.permute(2, 0, 1)
        log_det = 2 * L.diagonal(dim1=1, dim2=2).log().sum(1)
        log = log_det + self.quadratic - (self.g * solved).sum(2)
        return (-0.5 * log).exp(), solved

    def squares(self, weights: Float[Tensor, "s k k"]) -> Float[Tensor, "n s"]:
        """sum_ij weights_ij E[phi_i phi_j] of each row and each symmetric matrix of weights."""
        return self._common(weights) if self.same else self._pairs(weights)

    def _common(self, weights: Float[Tensor, "s k k"]) -> Float[Tensor, "n s"]:
        """`squares` for a shared A: the mixed term of the exponent is a matrix product."""
        eye = torch.eye(self.M.shape[1], dtype=self.M.dtype, device=self.M.device)
        L = torch.linalg.cholesky(eye + 2 * self.M[0])
        log_det = 2 * L.diagonal().log().sum()
        out = self.g.new_empty(len(self.g), len(weights))
        for n, (g, q) in enumerate(zip(self.g, self.quadratic)):
            whitened = torch.linalg.solve_triangular(L, g.T, upper=False)
            row_term = q - whitened.square().sum(0)
            log = torch.addmm(-0.5 * (row_term[:, None] + row_term + log_det), whitened.T, whitened)
            out[n] = (weights * exp_(log)).sum((1, 2))
        return out

    def _pairs(self, weights: Float[Tensor, "s k k"]) -> Float[Tensor, "n s"]:
        """`squares` in blocks of pairs and rows, by batched Gaussian elimination."""
        k, r = self.g.shape[1:]
        M, g = self.M.permute(1, 2, 0).contiguous(), self.g.permute(0, 2, 1).contiguous()
        total = self.g.new_zeros(len(g), len(weights))
        for n in range(0, len(g), ROWS):
            rows = slice(n, n + ROWS)
            step = max(1, BLOCK // (r * (r + len(g[rows])) * k))
            for start in range(0, k, step):
                some, rest = slice(start, start + step), slice(start, k)
                C = M[..., some, None] + M[..., None, rest]
                H = g[rows][..., some, None] + g[rows][..., None, rest]
                q = self.quadratic[rows]
                log = _eliminate(C, H).sub_(q[:, some, None]).sub_(q[:, None, rest])
                share = weights[:, some, rest].clone()
                share[..., step:] *= 2  # these pairs stand for (j, i) too
                total[rows] += exp_(log.mul_(0.5)).flatten(1) @ share.flatten(1).T
        return total


def _eliminate(C: Float[Tensor, "r r a b"], H: Float[Tensor, "n r a b"]) -> Float[Tensor, "n a b"]:
    """h' (I + C)^-1 h - ln|I + C| for each matrix C and row h; overwrites both."""
    C.diagonal().add_(1.0)
    log = torch.zeros_like(H[:, 0])
    for k in range(len(C)):
        pivot = C[k, k]
        log += H[:, k].square().div_(pivot).sub_(pivot.log())
        if k + 1 < len(C):
            column = C[k, k + 1 :] / pivot
            H[:, k + 1 :].addcmul_(H[:, k, None], column, value=-1)
            C[k + 1 :, k + 1 :].addcmul_(C[k + 1 :, k, None], column, value=-1)
    return log
