"""GPyTorch likelihood with the input-dependent Gaussian noise of GPz."""

from __future__ import annotations

import math
from typing import Any

from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import Likelihood
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from scant.models.gpz.model import GPz


class GPzLikelihood(Likelihood):
    """p(y | f, x) = N(f, 1 / beta(x)) (section 3.2), with the noise of a fitted model.

        likelihood = GPzLikelihood(model)
        predictive = likelihood(model(X), X)

    Args:
        model: Model with the noise; its current parameters are used at each call.
    """

    def __init__(self, model: GPz) -> None:
        super().__init__()
        self.model = model

    def noise(self, X: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Noise variance 1 / beta of targets at X."""
        return (-self.model.log_beta(self.model.design(X)[0])).exp()

    def forward(self, function_samples: Tensor, *params: Any, **_: Any) -> Normal:
        """Distribution of the targets given samples of f at the inputs `params[0]`."""
        return Normal(function_samples, self.noise(params[0]).sqrt())

    def marginal(
        self, function_dist: MultivariateNormal, *params: Any, **_: Any
    ) -> MultivariateNormal:
        """Distribution of the targets at the inputs `params[0]` (3.11, 3.12)."""
        covariance = function_dist.lazy_covariance_matrix.add_diagonal(self.noise(params[0]))
        return MultivariateNormal(function_dist.mean, covariance)

    def expected_log_prob(
        self, observations: Tensor, function_dist: MultivariateNormal, *params: Any, **_: Any
    ) -> Float[Tensor, " n"]:
        """E[ln N(y; f, 1 / beta)] under q(f), for each row."""
        noise = self.noise(params[0])
        square = (observations - function_dist.mean).square() + function_dist.variance
        value: Tensor = -0.5 * (square / noise + noise.log() + math.log(2 * math.pi))
        return value
