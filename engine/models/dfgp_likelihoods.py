"""Expected log likelihoods E[ln p(y|f)] of each row, f ~ N(mean, variance)."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

NODES = 20  # of Gauss-Hermite quadrature


def gaussian_expectation(
    y: Float[Tensor, " n"],
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    noise: Float[Tensor, ""],
) -> Float[Tensor, " n"]:
    """ln N(y | f, noise)."""
    return -0.5 * (((y - mean).square() + variance) / noise + (2 * math.pi * noise).log())


def probit_expectation(
    sign: Float[Tensor, " n"], mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """ln Phi(sign f), by quadrature."""
    return _expected_log_ndtr(sign * mean, variance)


def censored_expectation(
    y: Float[Tensor, " n"],
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    noise: Float[Tensor, ""],
) -> Float[Tensor, " n"]:
    """ln of the probability that N(f, noise) is above y, by quadrature."""
    return _expected_log_ndtr((mean - y) / noise.sqrt(), variance / noise)


def _expected_log_ndtr(mean: Tensor, variance: Tensor) -> Tensor:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    at = torch.as_tensor(nodes).to(mean)
    share = torch.as_tensor(weights / weights.sum()).to(mean)
    # The slope of a root has no end at zero.
    std = variance.clamp(min=1e-12).sqrt()
    return torch.special.log_ndtr(mean.unsqueeze(1) + std.unsqueeze(1) * at) @ share
