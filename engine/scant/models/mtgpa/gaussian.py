"""Gaussian likelihoods of MTGPA: homoscedastic, by denominator, and heteroscedastic.

Fixed noise (`known`), such as squared standard errors, is added to the learned noise.
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Normal

from scant.inference.expectations import LOG_2PI
from scant.kernels.constraints import LogPositive
from scant.models.mtgpa.observing import Likelihood, Moments, MTGPAPrediction, hermite

MIN_NOISE = 1e-6  # minimum noise variance, in squared units of y, against rounding errors


class Gaussian(Likelihood):
    """y ~ N(f, noise)."""

    errors = True

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> Normal:
        return Normal(function_samples, self.noise_at(exposure).sqrt())

    def marginal(
        self, function_dist: MultivariateNormal, exposure: Tensor | None = None, **kwargs: Any
    ) -> MultivariateNormal:
        """Distribution of observations: that of f with the noise added."""
        covariance = function_dist.lazy_covariance_matrix.add_diagonal(self.noise_at(exposure))
        return MultivariateNormal(function_dist.mean, covariance)

    def __init__(self) -> None:
        super().__init__()
        self.log_noise = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.register_constraint("log_noise", LogPositive())  # noise above the minimum

    def noise(self) -> Float[Tensor, ""]:
        return self.log_noise.exp() + MIN_NOISE

    def noise_at(self, exposure: Float[Tensor, " n"] | None) -> Float[Tensor, " *n"]:
        """Noise variance of rows with these exposures; here equal for all rows."""
        return self.noise()

    @torch.no_grad()
    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        variance = y.var(correction=0).clamp(min=1e-4)
        self.log_noise.copy_((noise * variance).log())
        return torch.stack([y.mean(), variance.sqrt()]).unsqueeze(1)

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        squares, noise = (y - q.mean[0]).square() + q.covariance[0, 0], self.noise_at(exposure)
        return -0.5 * (LOG_2PI + noise.log() + squares / noise)

    def _expected_with_noise(
        self,
        y: Float[Tensor, " n"],
        q: Moments,
        exposure: Float[Tensor, " n"],
        known: Float[Tensor, " n"],
    ) -> Float[Tensor, " n"]:
        squares = (y - q.mean[0]).square() + q.covariance[0, 0]
        noise = self.noise_at(exposure) + known
        return -0.5 * (LOG_2PI + noise.log() + squares / noise)

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        variance = q.covariance[0, 0] + self.noise_at(exposure)
        return -0.5 * (LOG_2PI + variance.log() + (y - q.mean[0]).square() / variance)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        variance = q.covariance[0, 0]
        return MTGPAPrediction(q.mean[0], variance, self.noise_at(exposure).expand_as(variance))


class GaussianRate(Gaussian):
    """y ~ N(f, noise + spread / exposure): a mean or rate over `exposure` people (or hours).

    The second term is the sampling error, the first the model error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_spread = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.register_constraint("log_spread", LogPositive())

    def noise_at(self, exposure: Float[Tensor, " n"] | None) -> Float[Tensor, " *n"]:
        spread = self.log_spread.exp()
        return self.noise() + (spread if exposure is None else spread / exposure)

    @torch.no_grad()
    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        """Split the noise equally between both terms, for a row of median exposure."""
        start = super().start(y, exposure, 0.5 * noise)
        self.log_spread.copy_(self.log_noise + exposure.median().log())
        return start


class HeteroscedasticGaussian(Likelihood):
    """y ~ N(f_1, exp(f_2)), with both functions averaged over the support."""

    functions = 2
    errors = True

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> Normal:
        return Normal(function_samples[..., 0], (0.5 * function_samples[..., 1]).exp())

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        variance = y.var(correction=0).clamp(min=1e-4)
        offsets = torch.stack([y.mean(), (noise * variance).log()])
        return torch.stack([offsets, torch.stack([variance.sqrt(), torch.ones_like(variance)])])

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """Closed form for correlated functions: exp(-f_2) shifts the mean of f_1."""
        (f, g), (f_f, f_g, g_g) = q.mean, (q.covariance[i] for i in ((0, 0), (0, 1), (1, 1)))
        squares = (y - f + f_g).square() + f_f
        return -0.5 * (LOG_2PI + g + torch.exp(0.5 * g_g - g) * squares)

    def _expected_with_noise(
        self,
        y: Float[Tensor, " n"],
        q: Moments,
        exposure: Float[Tensor, " n"],
        known: Float[Tensor, " n"],
    ) -> Float[Tensor, " n"]:
        """Quadrature over f_2, with the Gaussian conditional of f_1 given f_2."""
        weights, mean, variance = self._conditional_components(q)
        learned = hermite(q.mean[1], q.covariance[1, 1])[0].exp()
        noise = learned + known
        squares = (y - mean).square() + variance - learned
        return -0.5 * (weights * (LOG_2PI + noise.log() + squares / noise)).sum(0)

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        weights, mean, variance = self._conditional_components(q)
        error = y - mean
        log_density = -0.5 * (LOG_2PI + variance.log() + error.square() / variance)
        return (weights.log() + log_density).logsumexp(0)

    def _conditional_components(
        self, q: Moments
    ) -> tuple[Float[Tensor, "s #n"], Float[Tensor, "s n"], Float[Tensor, "s n"]]:
        """Weight, mean and variance of y given each quadrature node of f_2."""
        (f, g), (f_f, f_g, g_g) = q.mean, (q.covariance[i] for i in ((0, 0), (0, 1), (1, 1)))
        nodes, weights = hermite(g, g_g)
        slope = f_g / g_g.clamp(min=1e-12)
        variance = (f_f - slope * f_g).clamp(min=0) + nodes.exp()
        return weights, f + slope * (nodes - g), variance

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        noise = torch.exp(q.mean[1] + 0.5 * q.covariance[1, 1])
        return MTGPAPrediction(q.mean[0], q.covariance[0, 0], noise)

    def components(
        self, q: Moments, exposure: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, "s #n"], Float[Tensor, "s n"], Float[Tensor, "s n"]]:
        return self._conditional_components(q)
