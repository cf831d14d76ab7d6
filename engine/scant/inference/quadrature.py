"""Gauss-Hermite quadrature, for expectations under a Gaussian that have no closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_rule = cache(np.polynomial.hermite_e.hermegauss)  # found as eigenvalues: once for each count


def gauss_hermite(count: int, like: Tensor) -> tuple[Float[Tensor, " s"], Float[Tensor, " s"]]:
    """Nodes and weights of E[g(z)], z ~ N(0, 1), on the device and in the precision of `like`."""
    nodes, weights = _rule(count)
    return torch.as_tensor(nodes).to(like), torch.as_tensor(weights / weights.sum()).to(like)


STEPS = 30  # of Newton's method; five suffice but where prior and observation are far apart
MOST_STEP = 2.0  # of one of them


def log_expected(
    log_prob: Callable[[Tensor], Tensor],
    slopes: Callable[[Tensor], tuple[Tensor, Tensor]],
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    start: Float[Tensor, " n"],
    count: int = 32,
) -> Float[Tensor, " n"]:
    """ln E[p(f)], f ~ N(mean, variance), of a log-concave p that may be far narrower than that.

    Nodes lie about the mode of the product and are as wide as its curvature tells (Liu and Pierce
    1994): about the mean, they would miss a p that is narrower than their spacing, such as the
    likelihood of a thousand cases.

    Args:
        log_prob: ln p at f.
        slopes: Its derivative at f, and the second one with its sign changed, above zero.
        start: Where the search for the mode begins.
        count: Of nodes.
    """
    variance = variance.clamp(min=1e-12)
    mode = start
    for _ in range(STEPS):
        slope, curvature = slopes(mode)
        step = (slope - (mode - mean) / variance) / (curvature + 1 / variance)
        mode = mode + step.clamp(-MOST_STEP, MOST_STEP)
    width = (slopes(mode)[1] + 1 / variance).rsqrt()
    z, weights = gauss_hermite(count, mean)
    z, weights = z.unsqueeze(1), weights.unsqueeze(1)
    f = mode + width * z
    relative = log_prob(f) - 0.5 * (f - mean).square() / variance + 0.5 * z.square()
    return (weights.log() + relative).logsumexp(0) + width.log() - 0.5 * variance.log()
