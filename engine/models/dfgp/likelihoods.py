"""Expected log likelihoods E[ln p(y|f)] of each row, f ~ N(mean, variance)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float
from scant.errors import BadInput
from scant.inference.quadrature import gauss_hermite
from torch import Tensor

Likelihood = Literal["gaussian", "bernoulli"]
NODES = 20  # of Gauss-Hermite quadrature


def check(rows: int, y: Float[Tensor, " n"], likelihood: Likelihood) -> None:
    """Say what is wrong with targets, if anything is.

    Raises:
        BadInput: Not one a row, too few, not finite, without variation, or no two classes.
    """
    if rows < 2 or rows != len(y):
        raise BadInput(f"Two rows at least, with a target each; got {rows} and {len(y)}.")
    if not bool(torch.isfinite(y).all()):
        raise BadInput("A target is missing or not finite.")
    if likelihood == "bernoulli" and sorted(y.unique().tolist()) != [0.0, 1.0]:
        raise BadInput("Classes must be 0 and 1, with rows of both.")
    if float(y.std()) < 1e-12:
        raise BadInput("The target is the same in all rows; there is nothing to learn.")


def expected_likelihood(
    likelihood: Likelihood,
    y: Float[Tensor, " n"],
    censored: Bool[Tensor, " n"],
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    noise: Float[Tensor, ""],
) -> Float[Tensor, " n"]:
    """Of classes -1 and 1, or of targets, possibly censored."""
    if likelihood == "bernoulli":
        return probit_expectation(y, mean, variance)
    value = gaussian_expectation(y, mean, variance, noise)
    if not bool(censored.any()):
        return value
    return torch.where(censored, censored_expectation(y, mean, variance, noise), value)


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
    nodes, weights = gauss_hermite(NODES, mean)
    # The slope of a root has no end at zero.
    std = variance.clamp(min=1e-12).sqrt()
    return torch.special.log_ndtr(mean.unsqueeze(1) + std.unsqueeze(1) * nodes) @ weights
