"""How a task's observations depend on its functions: the likelihoods of MTGPA.

Each knows how many latent functions f = (f_1, ..., f_F) it needs, and takes their joint posterior
at n supports as `Moments`. Expectations under it are closed where they can be, Gauss-Hermite sums
where not (Yousefi 2021, 5.10 and appendix C.5). Functions are averages over supports before they
enter: a count's rate is the exponential of an average, not the average of an exponential.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from jaxtyping import Float
from scant.errors import BadInput
from scant.inference.expectations import LOG_2PI
from scant.inference.quadrature import gauss_hermite
from scant.models.constraints import LogPositive
from torch import Tensor, nn
from torch.distributions import Bernoulli as BernoulliDistribution
from torch.distributions import Distribution, Normal
from torch.distributions import Poisson as PoissonDistribution

LEAST_NOISE = 1e-6  # variance, in squared units of y: below it a bound is all rounding
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


def _hermite(mean: Tensor, variance: Tensor) -> tuple[Float[Tensor, "s n"], Float[Tensor, "s 1"]]:
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
        **kwargs: Any,
    ) -> Float[Tensor, " n"]:
        """E_q[ln p(y | f)] of each row."""
        given = torch.ones_like(observations) if exposure is None else exposure
        return self._expected(observations, moments(function_dist), given)

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
        places, weights = _hermite(q.mean[0], q.covariance[0, 0])
        return (weights * self.log_prob(y, places, exposure)).sum(0)

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """ln E_q[p(y | f)]: the log density (or probability) of new observations."""
        places, weights = _hermite(q.mean[0], q.covariance[0, 0])
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


class Gaussian(Likelihood):
    """y ~ N(f, noise)."""

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> Normal:
        return Normal(function_samples, self.noise().sqrt())

    def marginal(self, function_dist: MultivariateNormal, **kwargs: Any) -> MultivariateNormal:
        """Of observations: GPyTorch's Gaussian with the noise added."""
        covariance = function_dist.lazy_covariance_matrix.add_diagonal(self.noise())
        return MultivariateNormal(function_dist.mean, covariance)

    def __init__(self) -> None:
        super().__init__()
        self.log_noise = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.register_constraint("log_noise", LogPositive())  # what is above the least

    def noise(self) -> Float[Tensor, ""]:
        return self.log_noise.exp() + LEAST_NOISE

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
        squares, noise = (y - q.mean[0]).square() + q.covariance[0, 0], self.noise()
        return -0.5 * (LOG_2PI + noise.log() + squares / noise)

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        variance = q.covariance[0, 0] + self.noise()
        return -0.5 * (LOG_2PI + variance.log() + (y - q.mean[0]).square() / variance)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        variance = q.covariance[0, 0]
        return MTGPAPrediction(q.mean[0], variance, self.noise().expand_as(variance))


class HeteroscedasticGaussian(Likelihood):
    """y ~ N(f_1, exp(f_2)), both functions averages over the support."""

    functions = 2

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
        """Closed also where q correlates the two: exp(-f_2) shifts the mean of f_1."""
        (f, g), (f_f, f_g, g_g) = q.mean, (q.covariance[i] for i in ((0, 0), (0, 1), (1, 1)))
        squares = (y - f + f_g).square() + f_f
        return -0.5 * (LOG_2PI + g + torch.exp(0.5 * g_g - g) * squares)

    def log_predictive(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        weights, mean, variance = self._given_noise(q)
        error = y - mean
        log_density = -0.5 * (LOG_2PI + variance.log() + error.square() / variance)
        return (weights.log() + log_density).logsumexp(0)

    def _given_noise(
        self, q: Moments
    ) -> tuple[Float[Tensor, "s #n"], Float[Tensor, "s n"], Float[Tensor, "s n"]]:
        """Weight, mean and variance of y at each node of the log variance."""
        (f, g), (f_f, f_g, g_g) = q.mean, (q.covariance[i] for i in ((0, 0), (0, 1), (1, 1)))
        places, weights = _hermite(g, g_g)
        slope = f_g / g_g.clamp(min=1e-12)
        variance = (f_f - slope * f_g).clamp(min=0) + places.exp()
        return weights, f + slope * (places - g), variance

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        noise = torch.exp(q.mean[1] + 0.5 * q.covariance[1, 1])
        return MTGPAPrediction(q.mean[0], q.covariance[0, 0], noise)

    def components(
        self, q: Moments, exposure: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, "s #n"], Float[Tensor, "s n"], Float[Tensor, "s n"]]:
        return self._given_noise(q)


class Poisson(Likelihood):
    """y ~ Poisson(exposure exp(f))."""

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> PoissonDistribution:
        return PoissonDistribution(function_samples.exp() * (1 if exposure is None else exposure))

    def check(self, y: Float[Tensor, " n"], task: int) -> None:
        bad = (y < 0) | (y != y.round())
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise BadInput(
                f"Task {task} is of counts (Poisson), but its value {row} is {float(y[row]):g}; "
                "counts are whole numbers, zero or more."
            )

    def start(
        self, y: Float[Tensor, " n"], exposure: Float[Tensor, " n"], noise: float
    ) -> Float[Tensor, "2 f"]:
        rate = y.sum().clamp(min=0.5) / exposure.sum()
        return torch.stack([rate.log(), torch.ones_like(rate)]).unsqueeze(1)

    def log_prob(self, y: Tensor, f: Tensor, exposure: Tensor) -> Tensor:
        return y * (f + exposure.log()) - exposure * f.exp() - torch.lgamma(y + 1)

    def _expected(
        self, y: Float[Tensor, " n"], q: Moments, exposure: Float[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        rate = exposure * torch.exp(q.mean[0] + 0.5 * q.covariance[0, 0])
        return y * (q.mean[0] + exposure.log()) - rate - torch.lgamma(y + 1)

    def predict(self, q: Moments, exposure: Float[Tensor, " n"]) -> MTGPAPrediction:
        rate = exposure * torch.exp(q.mean[0] + 0.5 * q.covariance[0, 0])
        return MTGPAPrediction(rate, rate.square() * torch.expm1(q.covariance[0, 0]), rate)

    def quantiles(
        self, q: Moments, exposure: Float[Tensor, " n"], p: Float[Tensor, " k"]
    ) -> Float[Tensor, "k n"]:
        """Of a mixture of Poisson counts over the nodes of f, by bisection of whole numbers."""
        places, weights = _hermite(q.mean[0], q.covariance[0, 0])
        rates = exposure * places.exp()
        top = rates.amax(0)
        high = (top + 10 * top.sqrt() + 20).ceil().expand(len(p), -1)
        low = torch.full_like(high, -1.0)
        while bool((high - low > 1).any()):
            middle = ((low + high) / 2).floor()
            # P(y <= k) is the regularized upper incomplete gamma function of k + 1.
            below = torch.special.gammaincc(middle.unsqueeze(1) + 1, rates.expand(len(p), -1, -1))
            less = (weights * below).sum(1) < p[:, None]
            low, high = torch.where(less, middle, low), torch.where(less, high, middle)
        return high


class Bernoulli(Likelihood):
    """y is 1 with probability 1 / (1 + exp(-f)), else 0."""

    def forward(
        self, function_samples: Tensor, exposure: Tensor | None = None, **kwargs: Any
    ) -> BernoulliDistribution:
        return BernoulliDistribution(logits=function_samples)

    def marginal(self, function_dist: MultivariateNormal, **kwargs: Any) -> BernoulliDistribution:
        """Of a label, by quadrature."""
        told = self.predict(moments(function_dist), torch.ones_like(function_dist.mean))
        return BernoulliDistribution(probs=told.mean)

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
        places, weights = _hermite(q.mean[0], q.covariance[0, 0])
        p = places.sigmoid()
        mean = (weights * p).sum(0)
        variance = (weights * (p - mean).square()).sum(0)
        return MTGPAPrediction(mean, variance, mean * (1 - mean) - variance)

    def quantiles(
        self, q: Moments, exposure: Float[Tensor, " n"], p: Float[Tensor, " k"]
    ) -> Float[Tensor, "k n"]:
        """0 or 1."""
        return (p[:, None] > 1 - self.predict(q, exposure).mean).to(q.mean)


LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "heteroscedastic": HeteroscedasticGaussian,
    "poisson": Poisson,
    "bernoulli": Bernoulli,
}


def likelihood(name: str) -> Likelihood:
    """A new likelihood of that name.

    Raises:
        BadInput: There is none.
    """
    if name not in LIKELIHOODS:
        raise BadInput(f"Likelihood {name!r} is unknown; use one of {tuple(LIKELIHOODS)}.")
    return LIKELIHOODS[name]()
