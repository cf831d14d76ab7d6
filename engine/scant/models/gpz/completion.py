"""Missing values of rows with many inputs, given the observed ones under each Gaussian.

`Mixture.log_joint` and `Mixture.conditional` use matrices over all inputs for each missing pattern,
which suits few inputs and few patterns. With a hundred inputs nearly every row has its own pattern
and few missing values u: here all matrices are u x u. With a = x - mean_j (zero where x is missing)
and v = Lambda_j a, missing values have the conditional mean mean_u - Lambda_uu^-1 v_u and
covariance Lambda_uu^-1 (Almosallam 2017, 5.26-5.27).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.inference.expectations import LOG_2PI

MAX_DENSE_INPUTS = 14  # with more inputs, `completed` replaces matrices over all inputs
BLOCK = 1 << 21  # elements of a block of rows (16 MiB)


class Completed(NamedTuple):
    """Block of rows with the same number u of missing values.

    Attributes:
        rows: Row indices.
        missing: Columns of the missing values of each row.
        log_joint: ln p(o, j) of the observed values o and component j (5.24).
        means: Rows with E[u | o, j] in place of the missing values, per component.
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
    """Complete all rows (NaN where missing), in blocks of bounded memory."""
    k, d = means.shape
    missing_mask = X.isnan()
    counts = missing_mask.sum(1)
    log_scale = log_weights + 0.5 * torch.linalg.slogdet(precisions)[1]
    for u in counts.unique().tolist():
        same_count = (counts == u).nonzero().squeeze(1)
        for rows in same_count.split(max(1, BLOCK // (k * (3 * d + 3 * u * u)))):
            missing = missing_mask[rows].nonzero()[:, 1].reshape(len(rows), u)
            centered = torch.where(missing_mask[rows], 0.0, X[rows] - means[:, None])
            v = centered @ precisions
            quadratic = (centered * v).sum(2)
            filled = torch.where(missing_mask[rows], means[:, None], X[rows])
            Lambda_uu = precisions[:, missing[:, :, None], missing[:, None]]
            L = torch.linalg.cholesky(Lambda_uu)
            index = missing.expand(k, -1, -1)
            shift = torch.cholesky_solve(v.gather(2, index)[..., None], L).squeeze(3)
            quadratic = quadratic - (shift * v.gather(2, index)).sum(2)
            filled.scatter_add_(2, index, -shift)
            log_det = L.diagonal(dim1=2, dim2=3).log().sum(2)
            joint = log_scale[:, None] - log_det - 0.5 * (quadratic + (d - u) * LOG_2PI)
            yield Completed(rows, missing, joint.T, filled, torch.cholesky_inverse(L))
