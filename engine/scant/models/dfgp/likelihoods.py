"""Checks of targets, and expected log likelihoods E[ln p(y | f)], f ~ N(mean, variance)."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.errors import BadInput
from scant.likelihoods.gaussian import censored_expectation, gaussian_expectation
from scant.likelihoods.probit import probit_expectation

Likelihood = Literal["gaussian", "bernoulli"]


def check(rows: int, y: Float[Tensor, " n"], likelihood: Likelihood) -> None:
    """Validate targets.

    Raises:
        BadInput: Not one target per row, fewer than two, not finite, constant, or not two classes.
    """
    if rows < 2 or rows != len(y):
        raise BadInput(f"Two rows at least, with a target each; got {rows} and {len(y)}.")
    if not bool(torch.isfinite(y).all()):
        raise BadInput("A target is missing or not finite.")
    if likelihood == "bernoulli" and sorted(y.unique().tolist()) != [0.0, 1.0]:
        raise BadInput("Classes must be 0 and 1, with rows of both.")
    if float(y.std()) < 1e-12:
        raise BadInput("The target is the same in all rows; there is nothing to learn.")


def checked_target(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return a target in double precision.

    Raises:
        BadInput: A value is not finite, or all are the same.
    """
    y = y.double()
    if not bool(torch.isfinite(y).all()) or float(y.std()) < 1e-12:
        raise BadInput("A target is missing or not finite, or all are the same.")
    return y


def expected_likelihood(
    likelihood: Likelihood,
    y: Float[Tensor, " n"],
    censored: Bool[Tensor, " n"],
    mean: Float[Tensor, " n"],
    variance: Float[Tensor, " n"],
    noise: Float[Tensor, ""],
) -> Float[Tensor, " n"]:
    """E[ln p(y | f)] of each row in nats; y is a class -1 or 1, or a possibly censored target."""
    if likelihood == "bernoulli":
        return probit_expectation(y, mean, variance)
    value = gaussian_expectation(y, mean, variance, noise)
    if not bool(censored.any()):
        return value
    return torch.where(censored, censored_expectation(y, mean, variance, noise), value)
