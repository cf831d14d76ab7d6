"""Probit likelihood for two classes: p(y = 1 | f) = Phi(f / sqrt(1 + noise))."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import BernoulliLikelihood
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Bernoulli

from scant.inference.quadrature import gauss_hermite

NODES = 20  # Gauss-Hermite nodes


class ProbitLikelihood(BernoulliLikelihood):
    """GPyTorch's Bernoulli likelihood with optional Gaussian noise on f before the link.

    Expectations use double-precision quadrature nodes and PyTorch's ln Phi: for f ~ N(0.4, 1) the
    error is 4e-9. GPyTorch's nodes have single precision (1e-8), and its ln Phi is an approximation
    (3e-5).

    Args:
        noise: Variance added to the link's variance of one; None adds none.
    """

    def __init__(self, noise: Float[Tensor, ""] | None = None) -> None:
        super().__init__()
        self.noise = noise

    def _link_variance(self, f: Tensor) -> Tensor:
        return torch.ones_like(f) if self.noise is None else 1 + self.noise

    def forward(
        self, function_samples: Float[Tensor, "*b n"], *args: Any, **kwargs: Any
    ) -> Bernoulli:
        """p(y | f)."""
        link_variance = self._link_variance(function_samples)
        return Bernoulli(probs=torch.special.ndtr(function_samples / link_variance.sqrt()))

    def marginal(self, function_dist: MultivariateNormal, *args: Any, **kwargs: Any) -> Bernoulli:
        """p(y) for Gaussian f, in closed form."""
        mean = function_dist.mean
        total_variance = self._link_variance(mean) + function_dist.variance
        return Bernoulli(probs=torch.special.ndtr(mean / total_variance.sqrt()))

    def expected_log_prob(
        self,
        observations: Float[Tensor, "*b n"],
        function_dist: MultivariateNormal,
        *params: Any,
        **kwargs: Any,
    ) -> Float[Tensor, "*b n"]:
        """E[ln p(y | f)] of each row in nats, for classes 0 and 1."""
        mean, sign = function_dist.mean, 2 * observations - 1
        link_variance = self._link_variance(mean)
        return probit_expectation(
            sign, function_dist.mean / link_variance.sqrt(), function_dist.variance / link_variance
        )


def probit_expectation(
    sign: Float[Tensor, "*b n"], mean: Float[Tensor, "*b n"], variance: Float[Tensor, "*b n"]
) -> Float[Tensor, "*b n"]:
    """E[ln Phi(sign f)] of each row for f ~ N(mean, variance), by quadrature."""
    return expected_log_ndtr(sign * mean, variance)


def expected_log_ndtr(
    mean: Float[Tensor, "*b n"], variance: Float[Tensor, "*b n"]
) -> Float[Tensor, "*b n"]:
    """E[ln Phi(f)] of each row for f ~ N(mean, variance), by quadrature."""
    nodes, weights = gauss_hermite(NODES, mean)
    # The gradient of the square root is infinite at zero.
    std = variance.clamp(min=1e-12).sqrt()
    return torch.special.log_ndtr(mean.unsqueeze(-1) + std.unsqueeze(-1) * nodes) @ weights
