"""Principal components of many columns, used where they predict left-out rows better.

The thesis prepares its inputs by principal components, too (Almosallam 2017, section 6.3.1). The
first components of a hundred columns often carry all that some hundreds of rows can teach, and
basis functions of eight inputs are cheaper than those of a hundred. A straight line and a small GP
are fitted to several numbers of components and to all columns; left-out rows decide.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.gpz.input_density import fill, single_gaussian
from scant.studies.redshift.scales import LEAST_GAIN, Tried, curved, straight

COUNTS = (8, 16, 32)  # components that are tried
MIN_COLUMNS = 30  # columns beyond which they are tried


def whole(x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Fill missing values by their expectation under one Gaussian."""
    return fill(x, single_gaussian(x)) if bool(x.isnan().any()) else x


def transformed(x: Float[Tensor, "n d"], T: Float[Tensor, "q d"]) -> Float[Tensor, "n q"]:
    """T x of each row; a coordinate is NaN where a column that it needs is missing.

    NaN times the zeros of T would make every coordinate of a row with a gap NaN.
    """
    missing = x.isnan()
    z = x.masked_fill(missing, 0) @ T.T
    if missing.any():
        z[(missing.to(z) @ (T != 0).to(z).T) > 0] = torch.nan
    return z


def projection(x: Float[Tensor, "n d"], count: int) -> Float[np.ndarray, "q d"]:
    """Matrix from standardized columns to their first components, each of unit variance."""
    centred = x - x.mean(0)
    _, S, Vt = torch.linalg.svd(centred, full_matrices=False)
    used = S[:count] > 1e-9 * S[0]
    rows = Vt[:count][used] * (len(x) ** 0.5 / S[:count][used])[:, None]
    return np.asarray(rows.numpy())


def chosen(
    x: Float[Tensor, "n d"],
    others: Float[Tensor, "r d"],
    y: Float[np.ndarray, " n"],
    log: bool,
) -> Float[np.ndarray, "q d"] | None:
    """Projection that predicts left-out rows best; None: all columns are better.

    Args:
        x: Rows to learn from, NaN where missing.
        others: Further rows for the components; their targets are not used.
        y: Targets.
        log: Whether the target's logarithm is learned.
    """
    d = x.shape[1]
    filled = whole(torch.cat([x, others]))
    inputs = filled[: len(x)]
    counts = [count for count in COUNTS if count < min(d, len(filled) - 1)]
    if not counts:
        return None
    projections = {count: projection(filled, count) for count in counts}
    scores = {count: _score(inputs.numpy() @ T.T, y, log) for count, T in projections.items()}
    best = max(scores, key=lambda count: scores[count])
    plain_score = _score(inputs.numpy(), y, log)
    return projections[best] if scores[best] > plain_score + LEAST_GAIN else None


def _score(x: Float[np.ndarray, "n q"], y: Float[np.ndarray, " n"], log: bool) -> float:
    """Mean log density of left-out rows by a line or a GP, whichever is better."""
    line, gp = straight(x, y, log), curved(x, y, log)
    return max(_mean(line, len(gp[0])), _mean(gp, len(gp[0])))


def _mean(result: Tried, count: int) -> float:
    return float(result[0][:count].mean())
