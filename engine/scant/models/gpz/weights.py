"""Sample weights of GPz, and log-normal targets.

Almosallam (2017), sections 3.3, 3.4 and 6.3 (the weights of its redshift experiments).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.errors import BadInput


def normal_weights(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Weight one for every sample."""
    return torch.ones_like(y)


def normalized_weights(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Weights (1 + z)^-2 of redshifts z, for errors relative to 1 + z ("Normalized", section 6.3).

    Raises:
        BadInput: A redshift is -1 or below.
    """
    _refuse(y <= -1, y, "Normalised weights need redshifts above -1")
    return (1 + y).square().reciprocal()


def balanced_weights(y: Float[Tensor, " n"], width: float = 0.1) -> Float[Tensor, " n"]:
    """Weights inverse to the number of samples in the target's bin (6.3), at least one.

    Args:
        y: Targets, in their own unit.
        width: Bin width in that unit; the thesis uses 0.1 in redshift.

    Raises:
        BadInput: The width is not positive.
    """
    if not width > 0:
        raise BadInput(f"The bin width of balanced weights must be positive, got {width}.")
    bins = torch.floor(y / width).to(torch.int64)
    _, index, counts = torch.unique(bins, return_inverse=True, return_counts=True)
    counts = counts.to(y.dtype)
    return counts.max() / counts[index]


def log_targets(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """ln y, the target of GPz for the log-normal likelihood 3.13.

    The factor prod 1 / y_i of 3.13 is omitted: it depends on no parameter.

    Raises:
        BadInput: A target is not positive.
    """
    _refuse(~(y > 0), y, "Positive outputs need targets above zero")
    return y.log()


class Positive(NamedTuple):
    """Mean, median and variance of a log-normal target."""

    mean: Float[Tensor, " n"]
    median: Float[Tensor, " n"]
    variance: Float[Tensor, " n"]


def positive_moments(mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]) -> Positive:
    """Moments of y from the predicted mean and variance of ln y (3.18, 3.19).

    exp(E[ln y]) is the median, which is below the mean by a factor exp(-variance / 2).
    """
    expected = torch.exp(mean + 0.5 * variance)  # (3.18)
    return Positive(expected, mean.exp(), torch.expm1(variance) * expected.square())  # (3.19)


def positive_log_density(
    y: Float[Tensor, " n"], mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """ln p(y) of a log-normal target (3.17) from the predicted mean and variance of ln y."""
    log = log_targets(y)
    square = (log - mean).square() / variance
    return -0.5 * (square + variance.log() + math.log(2 * math.pi)) - log  # (3.17)


def _refuse(bad: Tensor, y: Tensor, need: str) -> None:
    rows = bad.nonzero().flatten()
    if len(rows):
        first = int(rows[0])
        raise BadInput(
            f"{need}; {len(rows)} of {len(y)} are not, the first in row {first} "
            f"({float(y[first]):g}). Remove these rows or choose another setting."
        )
