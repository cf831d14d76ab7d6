"""Likelihoods of counts for MTGPA, whose function is a log rate."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import NegativeBinomial as NegativeBinomialDistribution
from torch.distributions import Poisson as PoissonDistribution

from scant.errors import BadInput
from scant.inference.quadrature import log_expected
from scant.kernels.constraints import LogPositive
from scant.models.mtgpa.observing import Likelihood, Moments, MTGPAPrediction

MIN_DISPERSION = 1e-6  # practically Poisson; smaller values lose digits in log-gammas


class Counts(Likelihood):
    """Base of count likelihoods with rate exposure exp(f)."""

    counts = True

    def slopes(self, y: Tensor, f: Tensor, exposure: Tensor) -> tuple[Tensor, Tensor]:
        """d ln p(y | f) / df, and -d^2 ln p(y | f) / df^2."""
        raise NotImplementedError

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        mean, variance = q.mean[0], q.covariance[0, 0]
        return log_expected(
            lambda f: self.log_prob(y, f, exposure),
            lambda f: self.slopes(y, f, exposure),
            mean,
            variance,
            torch.maximum(mean, ((y + 0.5) / exposure).log()),
        )


class Poisson(Counts):
    """y ~ Poisson(exposure exp(f))."""

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> PoissonDistribution:
        return PoissonDistribution(function_samples.exp() * (1 if exposure is None else exposure))

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        _check_counts(y, task, "Poisson")

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        return _start_counts(y, exposure)

    def log_prob(self, y: Tensor, f: Tensor, exposure: Tensor) -> Tensor:
        return y * (f + exposure.log()) - exposure * f.exp() - torch.lgamma(y + 1)

    def slopes(self, y: Tensor, f: Tensor, exposure: Tensor) -> tuple[Tensor, Tensor]:
        rate = exposure * f.exp()
        return y - rate, rate

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        rate = exposure * torch.exp(q.mean[0] + 0.5 * q.covariance[0, 0])
        return y * (q.mean[0] + exposure.log()) - rate - torch.lgamma(y + 1)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        rate = exposure * torch.exp(q.mean[0] + 0.5 * q.covariance[0, 0])
        return MTGPAPrediction(rate, rate.square() * torch.expm1(q.covariance[0, 0]), rate)


class NegativeBinomial(Counts):
    """y ~ NB with mean r = exposure exp(f) and variance r + dispersion r^2.

    Equivalently a Poisson distribution with rate r times a gamma distributed factor of mean 1 and
    variance `dispersion`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_dispersion = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.register_constraint("log_dispersion", LogPositive())  # dispersion above the minimum

    def dispersion(self) -> Float[Tensor, ""]:
        return self.log_dispersion.exp() + MIN_DISPERSION

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> NegativeBinomialDistribution:
        rate = function_samples if exposure is None else function_samples + exposure.log()
        alpha = self.dispersion()
        return NegativeBinomialDistribution(1 / alpha, logits=rate + alpha.log())

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        _check_counts(y, task, "negative binomial")

    @torch.no_grad()
    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        self.log_dispersion.fill_(math.log(noise))
        return _start_counts(y, exposure)

    def log_prob(self, y: Tensor, f: Tensor, exposure: Tensor) -> Tensor:
        value: Tensor = self.forward(f, exposure).log_prob(y)
        return value

    def slopes(self, y: Tensor, f: Tensor, exposure: Tensor) -> tuple[Tensor, Tensor]:
        rate, alpha = exposure * f.exp(), self.dispersion()
        denominator = 1 + alpha * rate
        return (y - rate) / denominator, rate * (1 + alpha * y) / denominator.square()

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        variance = q.covariance[0, 0]
        rate = exposure * torch.exp(q.mean[0] + 0.5 * variance)
        noise = rate + self.dispersion() * rate.square() * variance.exp()
        return MTGPAPrediction(rate, rate.square() * torch.expm1(variance), noise)


def _check_counts(y: Float[Tensor, " n"], task: int, kind: str) -> None:
    bad = (y < 0) | (y != y.round())
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise BadInput(
            f"Task {task} is of counts ({kind}), but its value {row} is {float(y[row]):g}; "
            "counts are whole numbers, zero or more."
        )


def _start_counts(y: Float[Tensor, " n"], exposure: Float[Tensor, " n"]) -> Float[Tensor, "2 1"]:
    rate = y.sum().clamp(min=0.5) / exposure.sum()
    return torch.stack([rate.log(), torch.ones_like(rate)]).unsqueeze(1)
