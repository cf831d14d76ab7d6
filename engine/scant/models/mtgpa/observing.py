"""What all likelihoods of MTGPA have: posteriors that they take, predictions that they give.

Each knows how many latent functions f = (f_1, ..., f_F) it needs, and takes their joint posterior
at n supports as `Moments`. Expectations under it are closed where they can be, Gauss-Hermite sums
where not (Yousefi 2021, 5.10 and appendix C.5). Functions are averages over supports before they
enter, but for counts: their function is the logarithm of the rate, of an average as published or
of a sum of rates (`rates`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from scant.inference.quadrature import gauss_hermite

NODES = 32
HALVINGS = 40  # of a bracket of quantiles: 1e-12 of its width


class Moments(NamedTuple):
    """Posterior of F functions at n supports; a support's functions may be correlated."""

    mean: Float[Tensor, "f n"]
    covariance: Float[Tensor, "f f n"]


class MTGPAPrediction(NamedTuple):
    """What is to be observed at n supports, in the units of y (variances in their squares).

    `mean` and `variance` are of the expected response (for Gaussian tasks the average of the
    function over the support): what more data would sharpen. An observation varies about it by
    `noise`, so that its own variance is the sum of the two.
    """

    mean: Float[Tensor, " n"]
    variance: Float[Tensor, " n"]
    noise: Float[Tensor, " n"]


def hermite(mean: Tensor, variance: Tensor) -> tuple[Float[Tensor, "s n"], Float[Tensor, "s 1"]]:
    """Places and weights of E[g(f)] for Gaussian f."""
    nodes, weights = gauss_hermite(NODES, mean)
    return mean + variance.clamp(min=0).sqrt() * nodes.unsqueeze(1), weights.unsqueeze(1)


def moments(q: Moments | MultivariateNormal) -> Moments:
    """Of a Gaussian of GPyTorch, what an expectation row by row needs."""
    if isinstance(q, Moments):
        return q
    if not isinstance(q, MultitaskMultivariateNormal):
        return Moments(q.mean.unsqueeze(0), q.variance.expand(1, 1, -1))
    n, f = q.mean.shape
    blocks = q.covariance_matrix.view(n, f, n, f).diagonal(dim1=0, dim2=2)
    return Moments(q.mean.T, blocks)


class Likelihood(gpytorch.likelihoods.Likelihood):
    """Of one task; y and exposure have one entry a support (an exposure of 1 where not given).

    Besides a `MultivariateNormal` (of two functions: a `MultitaskMultivariateNormal`) expectations
    take `Moments`, which hold no covariance between supports. `marginal` is GPyTorch's, by samples,
    where a subclass has no closed form.
    """

    functions = 1
    counts = False  # exp(f) is a rate, which may be a sum over the points of a support
    errors = False  # y may have known noise beside what is learned

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        """Raises BadInput, naming the task, where y cannot be observed under this likelihood."""

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        """Offsets and standard deviations to start the functions from.

        Sets a Gaussian's noise as well, to a share `noise` of the variance of y.
        """
        raise NotImplementedError

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> Distribution:
        """p(y | f); of two functions the last dimension of the samples tells which."""
        raise NotImplementedError

    def expected_log_prob(
        self,
        observations: Float[Tensor, " n"],
        function_dist: Moments | MultivariateNormal,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, " n"]:
        """E_q[ln p(y | f)] of each row; `known` is the variance of known noise, where any is."""
        given = torch.ones_like(observations) if exposure is None else exposure
        if known is None or not self.errors:
            return self._expected(observations, moments(function_dist), given)
        return self._expected_beside(observations, moments(function_dist), given, known)

    def log_marginal(
        self,
        observations: Float[Tensor, " n"],
        function_dist: MultivariateNormal,
        exposure: Float[Tensor, " n"] | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, " n"]:
        """ln E_q[p(y | f)] of each row."""
        given = torch.ones_like(observations) if exposure is None else exposure
        return self.log_predictive(observations, moments(function_dist), given)

    def log_prob(self, y: Tensor, f: Tensor, exposure: Tensor) -> Tensor:
        """ln p(y | f) for one function, broadcast."""
        raise NotImplementedError

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """E_q[ln p(y | f)], by Gauss-Hermite quadrature (C.40) unless a likelihood overrides it."""
        places, weights = hermite(q.mean[0], q.covariance[0, 0])
        return (weights * self.log_prob(y, places, exposure)).sum(0)

    def _expected_beside(
        self,
        y: Float[Tensor, " n"],
        q: Moments,
        exposure: Float[Tensor, " n"],
        known: Float[Tensor, " n"],
    ) -> Float[Tensor, " n"]:
        """The same of observations with known noise, whose variances these are."""
        raise NotImplementedError

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """ln E_q[p(y | f)]: the log density (or probability) of new observations."""
        places, weights = hermite(q.mean[0], q.covariance[0, 0])
        return (weights.log() + self.log_prob(y, places, exposure)).logsumexp(0)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        raise NotImplementedError

    def components(
        self, q: Moments, exposure: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, "s #n"], Float[Tensor, "s n"], Float[Tensor, "s n"]]:
        """Weights, means and variances of the Gaussians of which p(y) is a mixture.

        Of what are no mixtures of Gaussians `quantiles` is overridden.
        """
        told = self.predict(q, exposure)
        mean, variance = told.mean.unsqueeze(0), (told.variance + told.noise).unsqueeze(0)
        return torch.ones_like(mean), mean, variance

    def quantiles(
        self, q: Moments, exposure: Float[Tensor, " n"], p: Float[Tensor, " k"]
    ) -> Float[Tensor, "k n"]:
        """Of a new observation: the least y that is not exceeded with probability p.

        Of a mixture by bisection: its quantile lies between those of the components.
        """
        weights, mean, variance = self.components(q, exposure)
        std, z = variance.sqrt(), torch.special.ndtri(p)[:, None, None]
        low, high = (mean + z * std).amin(1), (mean + z * std).amax(1)
        for _ in range(HALVINGS if len(mean) > 1 else 0):
            middle = (low + high) / 2
            below = weights * torch.special.ndtr((middle.unsqueeze(1) - mean) / std)
            less = below.sum(1) < p[:, None]
            low, high = torch.where(less, middle, low), torch.where(less, high, middle)
        return (low + high) / 2
