"""Likelihoods of MTGPA by name, and the Bernoulli likelihood."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Bernoulli as BernoulliDistribution

from scant.errors import BadInput
from scant.models.mtgpa.categorical import Categorical
from scant.models.mtgpa.counts import NegativeBinomial, Poisson
from scant.models.mtgpa.gaussian import (
    MIN_NOISE,
    Gaussian,
    GaussianRate,
    HeteroscedasticGaussian,
)
from scant.models.mtgpa.observing import Likelihood, Moments, MTGPAPrediction, hermite, moments

__all__ = [
    "CATEGORICAL",
    "LIKELIHOODS",
    "MIN_NOISE",
    "Bernoulli",
    "Categorical",
    "Gaussian",
    "GaussianRate",
    "HeteroscedasticGaussian",
    "Likelihood",
    "MTGPAPrediction",
    "Moments",
    "NegativeBinomial",
    "Poisson",
    "likelihood",
    "moments",
]


class Bernoulli(Likelihood):
    """y is 1 with probability 1 / (1 + exp(-f)), else 0."""

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> BernoulliDistribution:
        return BernoulliDistribution(logits=function_samples)

    def marginal(self, function_dist: MultivariateNormal, **kwargs: Any) -> BernoulliDistribution:
        """Distribution of labels, by quadrature."""
        prediction = self.predict(moments(function_dist), torch.ones_like(function_dist.mean))
        return BernoulliDistribution(probs=prediction.mean)

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        bad = (y != 0) & (y != 1)
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise BadInput(
                f"Task {task} is binary (Bernoulli), but its value {row} is {float(y[row]):g}; "
                "use 0 and 1."
            )

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        share = (y.sum() + 0.5) / (len(y) + 1)
        return torch.stack([torch.logit(share), torch.ones_like(share)]).unsqueeze(1)

    def log_prob(self, y: Tensor, f: Tensor, exposure: Tensor) -> Tensor:
        return nn.functional.logsigmoid((2 * y - 1) * f)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        nodes, weights = hermite(q.mean[0], q.covariance[0, 0])
        p = nodes.sigmoid()
        mean = (weights * p).sum(0)
        variance = (weights * (p - mean).square()).sum(0)
        return MTGPAPrediction(mean, variance, mean * (1 - mean) - variance)


LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "gaussian_rate": GaussianRate,
    "heteroscedastic": HeteroscedasticGaussian,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "bernoulli": Bernoulli,
}
CATEGORICAL = "categorical"  # the name of `Categorical`, which needs the number of classes


def likelihood(name: str | Likelihood) -> Likelihood:
    """Create a likelihood by its name; one that is already created is returned.

    Raises:
        BadInput: The name is unknown, or "categorical", which needs the number of classes.
    """
    if isinstance(name, Likelihood):
        return name
    if name == CATEGORICAL:
        raise BadInput("A categorical likelihood needs the number of classes: Categorical(3).")
    if name not in LIKELIHOODS:
        raise BadInput(f"Likelihood {name!r} is unknown; use one of {tuple(LIKELIHOODS)}.")
    return LIKELIHOODS[name]()
