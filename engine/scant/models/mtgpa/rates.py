"""Rates of counts over supports with an extent: sums of exponentials, not of an average.

    lambda(v) = sum_k w_k exp(f(x_k)),    log lambda ~ N(m, s2) with the first two moments of lambda

at the points x_k of a support v and their weights w_k. Under a Gaussian q both moments have closed
forms, the second one from the covariances of the support's own points (Fenton 1960, for sums of
log-normals). What follows from E lambda and Var lambda is therefore exact: means and variances of
predicted counts, and all but the first term of E log p(y) = y E log lambda - e E lambda + ...

In that term m stands for E log lambda. Against 200,000 samples, of 25 points that are .3 to 1.5
lengthscales apart: within .012 for posterior deviations of f up to 1, and .06 below at 1.5. So the
objective of a task whose rates are sums is no longer a bound in all rigor. The bound that Jensen's
inequality gives, log sum_k w_k exp(E f(x_k)), is .12 too low at deviations of .6 and .32 at 1: of a
district with 100 cases that is 12 and 32 nats, by which wide supports would press fields flat.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from scant.kernels.box_average.averaged import extended, grid
from scant.kernels.box_average.support import Pieces, pieces
from scant.models.mtgpa.likelihoods import Moments

NODES = {1: 8, 2: 4}  # a dimension of a box, by the dimensions in which it is wide
FEWEST_NODES = 3  # in more dimensions


def points(supports: Float[Tensor, "n c"], dimensions: int) -> Pieces:
    """Supports as weighted points."""
    parts = pieces(supports, dimensions)
    return grid(parts, NODES.get(len(extended(parts)), FEWEST_NODES))


def points_each(supports: Float[Tensor, "n c"], dimensions: int) -> int:
    """How many `points` a support becomes."""
    parts = pieces(supports, dimensions)
    wide = len(extended(parts))
    return parts.lower.shape[1] * int(NODES.get(wide, FEWEST_NODES)) ** wide


def tangent(
    weight: Float[Tensor, "n k"], mean: Float[Tensor, "n k"], covariance: Float[Tensor, "n k k"]
) -> Moments:
    """Mean and variance of log lambda, of a log-normal lambda with the mean of the sum.

    The variance is that along the tangent of log lambda, as of a posterior that was found by
    tangents (`areas`): what is known of a sum is known, however little is of its parts.
    Arguments are as of `log_rate`.
    """
    term = weight.log() + mean + 0.5 * covariance.diagonal(dim1=1, dim2=2)
    first = term.logsumexp(1)
    share = (term - first.unsqueeze(1)).exp()
    variance = (share.unsqueeze(1) @ covariance @ share.unsqueeze(2))[:, 0, 0].clamp(min=0)
    return Moments((first - 0.5 * variance).unsqueeze(0), variance.expand(1, 1, -1))


def log_rate(
    weight: Float[Tensor, "n k"], mean: Float[Tensor, "n k"], covariance: Float[Tensor, "n k k"]
) -> Moments:
    """Mean and variance of log lambda, of a log-normal lambda with the moments of the sum.

    Args:
        weight: Of the points; none is below zero, and those of padding are zero.
        mean: Of f at them.
        covariance: Of f at the points of a support.
    """
    term = weight.log() + mean + 0.5 * covariance.diagonal(dim1=1, dim2=2)
    first = term.logsumexp(1)
    second = (term.unsqueeze(2) + term.unsqueeze(1) + covariance).flatten(1).logsumexp(1)
    variance = (second - 2 * first).clamp(min=0)
    return Moments((first - 0.5 * variance).unsqueeze(0), variance.expand(1, 1, -1))
