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
    """Every sample counts once."""
    return torch.ones_like(y)


def normalized_weights(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """(1 + z)^-2 of redshifts z: errors count relative to 1 + z ("Normalized", section 6.3).

    Raises:
        BadInput: A redshift of -1 or below.
    """
    _refuse(y <= -1, y, "Normalised weights need redshifts above -1")
    return (1 + y).square().reciprocal()


def balanced_weights(y: Float[Tensor, " n"], width: float = 0.1) -> Float[Tensor, " n"]:
    """Largest bin count over the count of the sample's own bin (6.3): rare targets count more.

    Args:
        y: Targets, in their own unit.
        width: Of the bins, in that unit; the thesis takes 0.1 in redshift.

    Raises:
        BadInput: A width that is not positive.
    """
    if not width > 0:
        raise BadInput(f"The bin width of balanced weights must be positive, got {width}.")
    bins = torch.floor(y / width).to(torch.int64)
    _, member, counts = torch.unique(bins, return_inverse=True, return_counts=True)
    counts = counts.to(y.dtype)
    return counts.max() / counts[member]


def log_targets(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """ln y: fit GPz to it for the log-normal likelihood 3.13.

    The factor prod 1 / y_i of 3.13 does not depend on any parameter and is left out.

    Raises:
        BadInput: A target that is not positive.
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

    The mean is not exp(E[ln y]): that is the median, which lies below it the more the wider.
    """
    expected = torch.exp(mean + 0.5 * variance)  # (3.18)
    return Positive(expected, mean.exp(), torch.expm1(variance) * expected.square())  # (3.19)


def positive_log_density(
    y: Float[Tensor, " n"], mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """ln p(y) of a log-normal target (3.17) from the predicted mean and variance of ln y."""
    log = log_targets(y)
    away = (log - mean).square() / variance
    return -0.5 * (away + variance.log() + math.log(2 * math.pi)) - log  # (3.17)


def _refuse(bad: Tensor, y: Tensor, need: str) -> None:
    rows = bad.nonzero().flatten()
    if len(rows):
        first = int(rows[0])
        raise BadInput(
            f"{need}; {len(rows)} of {len(y)} are not, the first in row {first} "
            f"({float(y[first]):g}). Remove these rows or choose another setting."
        )
