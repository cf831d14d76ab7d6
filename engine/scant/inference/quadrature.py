"""Gauss-Hermite quadrature, for expectations under a Gaussian that have no closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_rule = cache(np.polynomial.hermite_e.hermegauss)  # computed once per count


def gauss_hermite(count: int, like: Tensor) -> tuple[Float[Tensor, " s"], Float[Tensor, " s"]]:
    """Nodes and weights of E[g(z)], z ~ N(0, 1), on the device and in the precision of `like`."""
    nodes, weights = _rule(count)
    return torch.as_tensor(nodes).to(like), torch.as_tensor(weights / weights.sum()).to(like)


NEWTON_STEPS = 30  # five suffice unless prior and observation are far apart
MAX_STEP = 2.0  # largest change of f in one Newton step


def log_expected(
    log_prob: Callable[[Tensor], Tensor],
    slopes: Callable[[Tensor], tuple[Tensor, Tensor]],
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    start: Float[Tensor, " n"],
    count: int = 32,
) -> Float[Tensor, " n"]:
    """ln E[p(f)] for f ~ N(mean, variance) and a log-concave p, by adaptive quadrature.

    Nodes are centered at the mode of the product p(f) N(f), scaled by its curvature (Liu and Pierce
    1994). Nodes around the mean would miss a p that is narrower than their spacing, such as the
    likelihood of a thousand cases.

    Args:
        log_prob: Function f -> ln p(f).
        slopes: Function f -> (d ln p / df, -d^2 ln p / df^2); the latter is positive.
        mean, variance: Moments of f.
        start: Initial f of the search for the mode.
        count: Number of nodes.
    """
    variance = variance.clamp(min=1e-12)
    mode = start
    for _ in range(NEWTON_STEPS):
        slope, curvature = slopes(mode)
        step = (slope - (mode - mean) / variance) / (curvature + 1 / variance)
        mode = mode + step.clamp(-MAX_STEP, MAX_STEP)
    width = (slopes(mode)[1] + 1 / variance).rsqrt()
    z, weights = gauss_hermite(count, mean)
    z, weights = z.unsqueeze(1), weights.unsqueeze(1)
    f = mode + width * z
    relative = log_prob(f) - 0.5 * (f - mean).square() / variance + 0.5 * z.square()
    return (weights.log() + relative).logsumexp(0) + width.log() - 0.5 * variance.log()
