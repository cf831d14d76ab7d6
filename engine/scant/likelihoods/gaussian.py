"""Gaussian likelihoods with right-censored targets, or with the noise parameter of a model.

likelihood = CensoredGaussianLikelihood()
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
objective(model(x), y, censored=is_bound).backward()
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.likelihoods.noise_models import Noise
from jaxtyping import Bool, Float
from linear_operator.operators import DiagLinearOperator, LinearOperator
from torch import Tensor

from scant.likelihoods.probit import expected_log_ndtr


class GivenNoise(Noise):
    """Noise variance that is a parameter of another module.

    Args:
        noise: One variance for all rows, one per row, or (with `column`) one per output.
        column: Column of x that holds each row's output, for `likelihood(model(x), x)`.
    """

    def __init__(self, noise: Float[Tensor, "*d"], column: int | None = None) -> None:
        super().__init__()
        self.noise, self.column = noise, column

    def forward(
        self, *params: Any, shape: torch.Size | None = None, **kwargs: Any
    ) -> LinearOperator:
        """Diagonal noise covariance, expanded to `shape`."""
        noise = self.noise
        if self.column is not None:
            rows: Tensor = params[0][0] if isinstance(params[0], (tuple, list)) else params[0]
            noise = noise[rows[..., self.column].long()]
        return DiagLinearOperator(noise if shape is None else noise.expand(shape))


def given_noise(noise: Float[Tensor, "*d"], column: int | None = None) -> GaussianLikelihood:
    """GPyTorch's Gaussian likelihood with a noise variance that belongs to the model."""
    likelihood = GaussianLikelihood()
    likelihood.noise_covar = GivenNoise(noise, column)
    return likelihood


class CensoredGaussianLikelihood(GaussianLikelihood):
    """Gaussian likelihood with right-censored targets, known only to lie above y.

    Args:
        noise: Noise variance that belongs to a model; by default the likelihood learns its own
            (with GPyTorch's `noise_prior`, `noise_constraint` and so on).
    """

    def __init__(self, noise: Float[Tensor, ""] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if noise is not None:
            self.noise_covar = GivenNoise(noise)

    def expected_log_prob(
        self,
        target: Float[Tensor, "*b n"],
        input: MultivariateNormal,  # noqa: A002 (the name is GPyTorch's)
        *params: Any,
        censored: Bool[Tensor, "*b n"] | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, "*b n"]:
        """E[ln p(y | f)] of each row in nats; for censored rows E[ln p(above y | f)]."""
        args = target, input.mean, input.variance, self.noise
        value = gaussian_expectation(*args)
        if censored is None:
            return value
        return torch.where(censored, censored_expectation(*args), value)

    def log_marginal(
        self,
        observations: Float[Tensor, "*b n"],
        function_dist: MultivariateNormal,
        *params: Any,
        censored: Bool[Tensor, "*b n"] | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, "*b n"]:
        """ln p(y) of each row in nats; for censored rows the log probability above y."""
        value = super().log_marginal(observations, function_dist, *params, **kwargs)
        if censored is None:
            return value
        std = (function_dist.variance + self.noise).sqrt()
        above = torch.special.log_ndtr((function_dist.mean - observations) / std)
        return torch.where(censored, above, value)


def gaussian_expectation(
    y: Float[Tensor, "*b n"],
    mean: Float[Tensor, "*b n"],
    variance: Float[Tensor, "*b n"],
    noise: Float[Tensor, "*1"],
) -> Float[Tensor, "*b n"]:
    """E[ln N(y | f, noise)] of each row for f ~ N(mean, variance)."""
    return -0.5 * (((y - mean).square() + variance) / noise + (2 * math.pi * noise).log())


def censored_expectation(
    y: Float[Tensor, "*b n"],
    mean: Float[Tensor, "*b n"],
    variance: Float[Tensor, "*b n"],
    noise: Float[Tensor, "*1"],
) -> Float[Tensor, "*b n"]:
    """E[ln Phi((f - y) / sqrt(noise))] of each row for f ~ N(mean, variance), by quadrature."""
    return expected_log_ndtr((mean - y) / noise.sqrt(), variance / noise)
