"""Base class of MTGPA's likelihoods, and the moments and predictions that they use.

A likelihood has F latent functions f = (f_1, ..., f_F), whose joint posterior at n supports is
given as `Moments`. Expectations are in closed form or by Gauss-Hermite quadrature (Yousefi 2021,
5.10 and appendix C.5). Functions are averages over supports; for counts f is the log rate, of an
average as published or of a sum of rates (`rates`).
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


class Moments(NamedTuple):
    """Posterior moments of F functions at n supports, with covariances between functions."""

    mean: Float[Tensor, "f n"]
    covariance: Float[Tensor, "f f n"]


class MTGPAPrediction(NamedTuple):
    """Predictions at n supports, in the units of y (variances in squared units).

    `mean` and `variance` are those of the expected response (for Gaussian tasks the average of the
    function over the support), which more data would reduce. A new observation has the variance
    `variance + noise`.
    """

    mean: Float[Tensor, " n"]
    variance: Float[Tensor, " n"]
    noise: Float[Tensor, " n"]


def hermite(mean: Tensor, variance: Tensor) -> tuple[Float[Tensor, "s n"], Float[Tensor, "s 1"]]:
    """Gauss-Hermite nodes and weights of E[g(f)] for Gaussian f."""
    nodes, weights = gauss_hermite(NODES, mean)
    return mean + variance.clamp(min=0).sqrt() * nodes.unsqueeze(1), weights.unsqueeze(1)


def moments(q: Moments | MultivariateNormal) -> Moments:
    """Convert a GPyTorch distribution to `Moments`."""
    if isinstance(q, Moments):
        return q
    if not isinstance(q, MultitaskMultivariateNormal):
        return Moments(q.mean.unsqueeze(0), q.variance.expand(1, 1, -1))
    n, f = q.mean.shape
    blocks = q.covariance_matrix.view(n, f, n, f).diagonal(dim1=0, dim2=2)
    return Moments(q.mean.T, blocks)


class Likelihood(gpytorch.likelihoods.Likelihood):
    """Likelihood of one task; y and exposure have one entry per support (default exposure 1).

    Expectations take a `MultivariateNormal` (of several functions a
    `MultitaskMultivariateNormal`) or `Moments`, without covariances between supports. `marginal`
    uses GPyTorch's samples unless a subclass has a closed form.
    """

    functions = 1
    counts = False  # exp(f) is a rate, which may be a sum over the points of a support
    errors = False  # y may have fixed noise in addition to the learned noise

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        """Raise BadInput, naming the task, if y is not possible under this likelihood."""

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        """Initial offsets and standard deviations of the functions.

        Gaussian likelihoods also set their noise, to a share `noise` of the variance of y.
        """
        raise NotImplementedError

    def trends(self, y: Float[Tensor, " n"]) -> Float[Tensor, "k n"]:
        """Values that each of the first k functions rises with, for initial signs."""
        return y.unsqueeze(0)

    def value(self, y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The quantity that `predict` has mean and variance of; here y itself."""
        return y

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> Distribution:
        """p(y | f); several functions are in the last dimension of the samples."""
        raise NotImplementedError

    def expected_log_prob(
        self,
        observations: Float[Tensor, " n"],
        function_dist: Moments | MultivariateNormal,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, " n"]:
        """E_q[ln p(y | f)] of each row; `known` is the variance of fixed noise, if any."""
        exposures = torch.ones_like(observations) if exposure is None else exposure
        if known is None or not self.errors:
            return self._expected(observations, moments(function_dist), exposures)
        return self._expected_with_noise(observations, moments(function_dist), exposures, known)

    def log_marginal(
        self,
        observations: Float[Tensor, " n"],
        function_dist: MultivariateNormal,
        exposure: Float[Tensor, " n"] | None = None,
        **kwargs: Any,
    ) -> Float[Tensor, " n"]:
        """ln E_q[p(y | f)] of each row."""
        exposures = torch.ones_like(observations) if exposure is None else exposure
        return self.log_predictive(observations, moments(function_dist), exposures)

    def log_prob(self, y: Tensor, f: Tensor, exposure: Tensor) -> Tensor:
        """ln p(y | f) for one function, broadcast."""
        raise NotImplementedError

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """E_q[ln p(y | f)], by Gauss-Hermite quadrature (C.40) unless a likelihood overrides it."""
        nodes, weights = hermite(q.mean[0], q.covariance[0, 0])
        return (weights * self.log_prob(y, nodes, exposure)).sum(0)

    def _expected_with_noise(
        self,
        y: Float[Tensor, " n"],
        q: Moments,
        exposure: Float[Tensor, " n"],
        known: Float[Tensor, " n"],
    ) -> Float[Tensor, " n"]:
        """`_expected` for observations with fixed noise of variance `known`."""
        raise NotImplementedError

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """ln E_q[p(y | f)], the log density (or probability) of new observations."""
        nodes, weights = hermite(q.mean[0], q.covariance[0, 0])
        return (weights.log() + self.log_prob(y, nodes, exposure)).logsumexp(0)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        raise NotImplementedError

    def components(
        self, q: Moments, exposure: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, "s #n"], Float[Tensor, "s n"], Float[Tensor, "s n"]]:
        """Weights, means and variances of p(y) as a mixture of Gaussians."""
        prediction = self.predict(q, exposure)
        mean, variance = (
            prediction.mean.unsqueeze(0),
            (prediction.variance + prediction.noise).unsqueeze(0),
        )
        return torch.ones_like(mean), mean, variance
