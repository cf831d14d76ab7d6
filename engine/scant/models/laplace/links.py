"""Links of binary classification: GPyTorch likelihoods, and derivatives for Laplace.

Rasmussen and Williams (2006), section 3.4 and equations 3.15, 3.16; Yousefi (2021), B.13-B.18.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import BernoulliLikelihood
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Bernoulli
from torch.nn import functional as F

from scant.inference.quadrature import gauss_hermite

NODES = 100  # Gauss-Hermite nodes; error 1e-5 for variances up to 25


class LinkDerivatives(NamedTuple):
    """ln p(y | f) of each row and its derivatives with respect to f."""

    log_p: Float[Tensor, " n"]
    slope: Float[Tensor, " n"]
    curvature: Float[Tensor, " n"]  # negative second derivative, which is nonnegative
    third: Float[Tensor, " n"]


Link = Callable[[Tensor, Tensor], LinkDerivatives]


def logistic(f: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> LinkDerivatives:
    """p(y | f) = 1 / (1 + exp(-y f)), for y in {-1, 1}."""
    p, q = torch.sigmoid(f), torch.sigmoid(-f)
    # GPML 3.15
    return LinkDerivatives(F.logsigmoid(y * f), y * torch.sigmoid(-y * f), p * q, p * q * (p - q))


def probit(f: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> LinkDerivatives:
    """p(y | f) = Phi(y f), for y in {-1, 1}."""
    z = y * f
    log_p = torch.special.log_ndtr(z)
    r = (-0.5 * z.square() - 0.5 * math.log(2 * math.pi) - log_p).exp()
    curvature = (r * (r + z)).clamp(0, 1)  # against rounding errors
    # GPML 3.16
    return LinkDerivatives(log_p, y * r, curvature, y * r * ((2 * r + z) * (r + z) - 1))


LINKS: dict[str, Link] = {"logistic": logistic, "probit": probit}


def probability(
    link: str, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """p(y = 1) for Gaussian f: closed form for probit, quadrature for logistic."""
    if link == "probit":
        return torch.special.ndtr(mean / (1 + variance).sqrt())  # GPML, section 3.9
    nodes, weights = gauss_hermite(NODES, mean)
    # GPML 3.25
    return torch.sigmoid(mean[:, None] + variance.sqrt()[:, None] * nodes) @ weights


class Probit(BernoulliLikelihood):
    """Bernoulli likelihood p(y = 1 | f) = Phi(f) for labels 0 and 1, in double precision.

    GPyTorch's quadrature has 20 single-precision nodes. The functions `logistic` and `probit` take
    labels -1 and 1.
    """

    name = "probit"

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Bernoulli:
        return Bernoulli(probs=torch.special.ndtr(function_samples))

    def marginal(self, function_dist: MultivariateNormal, *args: Any, **kwargs: Any) -> Bernoulli:
        """Distribution of each label for Gaussian f."""
        return Bernoulli(probs=probability(self.name, function_dist.mean, function_dist.variance))

    def expected_log_prob(
        self, observations: Tensor, function_dist: MultivariateNormal, *args: Any, **kwargs: Any
    ) -> Float[Tensor, " n"]:
        """E[ln p(y | f)] of each row for Gaussian f, by quadrature."""
        nodes, weights = gauss_hermite(NODES, function_dist.mean)
        f = function_dist.mean[:, None] + function_dist.variance.sqrt()[:, None] * nodes
        y = (2 * observations - 1)[:, None].expand_as(f)
        return LINKS[self.name](f.ravel(), y.ravel()).log_p.view_as(f) @ weights


class Logistic(Probit):
    """Bernoulli likelihood p(y = 1 | f) = 1 / (1 + exp(-f)); otherwise like `Probit`."""

    name = "logistic"

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Bernoulli:
        return Bernoulli(logits=function_samples)


LIKELIHOODS: dict[str, type[Probit]] = {kind.name: kind for kind in (Logistic, Probit)}
