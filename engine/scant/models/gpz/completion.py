"""Rows of many inputs, completed: what they lack given what they have, under each Gaussian.

`Mixture.log_joint` and `Mixture.conditional` make matrices of all inputs for each pattern of
missing values, which is right for few inputs and few patterns. Of a hundred inputs nearly every
row has a pattern of its own and lacks little: here all matrices are as large as what is missing.
With a = x - mean_j, zero where x is missing, and v = Lambda_j a, the missing values u have the
conditional mean mean_u - Lambda_uu^-1 v_u and covariance Lambda_uu^-1 (Almosallam 2017, 5.26-5.27).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.inference.expectations import LOG_2PI

WIDE = 14  # inputs beyond which rows are completed so
BLOCK = 1 << 21  # numbers of a block of rows (16 MiB)


class Completed(NamedTuple):
    """Some rows that lack equally many values.

    Attributes:
        rows: Which.
        missing: The columns that each lacks.
        log_joint: ln p(o, j) of what each has (5.24).
        means: The rows with E[u | o, j] in place of what is missing.
        covariance: V[u | o, j].
    """

    rows: Int[Tensor, " r"]
    missing: Int[Tensor, "r u"]
    log_joint: Float[Tensor, "r k"]
    means: Float[Tensor, "k r d"]
    covariance: Float[Tensor, "k r u u"]


def completed(
    log_weights: Float[Tensor, " k"],
    means: Float[Tensor, "k d"],
    precisions: Float[Tensor, "k d d"],
    X: Float[Tensor, "n d"],
) -> Iterator[Completed]:
    """All rows, NaN where missing, in blocks of bounded memory."""
    k, d = means.shape
    gone = X.isnan()
    counts = gone.sum(1)
    level = log_weights + 0.5 * torch.linalg.slogdet(precisions)[1]
    for u in counts.unique().tolist():
        mine = (counts == u).nonzero().squeeze(1)
        for rows in mine.split(max(1, BLOCK // (k * (3 * d + 3 * u * u)))):
            missing = gone[rows].nonzero()[:, 1].reshape(len(rows), u)
            away = torch.where(gone[rows], 0.0, X[rows] - means[:, None])
            v = away @ precisions
            quadratic = (away * v).sum(2)
            filled = torch.where(gone[rows], means[:, None], X[rows])
            inner = precisions[:, missing[:, :, None], missing[:, None]]
            lower = torch.linalg.cholesky(inner)
            index = missing.expand(k, -1, -1)
            pulled = torch.cholesky_solve(v.gather(2, index)[..., None], lower).squeeze(3)
            quadratic = quadratic - (pulled * v.gather(2, index)).sum(2)
            filled.scatter_add_(2, index, -pulled)
            log_det = lower.diagonal(dim1=2, dim2=3).log().sum(2)
            joint = level[:, None] - log_det - 0.5 * (quadratic + (d - u) * LOG_2PI)
            yield Completed(rows, missing, joint.T, filled, torch.cholesky_inverse(lower))
