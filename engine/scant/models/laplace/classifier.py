"""Binary Gaussian process classification by Laplace's approximation, refitted as labels arrive.

    p(y = 1 | x) = link(f(x)),    f ~ GP(0, k)

The posterior of f at the rows is approximated by a Gaussian at its mode (`approximation`): Yousefi
(2021), section 2.2.4.1 and B.13-B.18; Rasmussen and Williams (2006, GPML), algorithm 3.2. Labels
arrive one at a time, so Newton's method starts from the previous mode (`observe`). Numbers beside
lines are GPML's.

    model = LaplaceGPC.build(x, y)
    model.fit()
    model(x_new)                        # the latent function, a MultivariateNormal
    model.likelihood(model(x_new))      # the label, a Bernoulli; its mean is `probability`
    model = model.observe(x_more, y_more)
    model.fit(steps=5)
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.models import GP
from jaxtyping import Float, Int
from linear_operator.operators import MatmulLinearOperator
from torch import Tensor

from scant.errors import BadInput
from scant.models.hyperprior import log_hyperprior
from scant.models.laplace.approximation import Evidence, Mode, mode
from scant.models.laplace.kernels import LinearAndRBF, dense, squared_exponential, typical
from scant.models.laplace.links import LIKELIHOODS, LINKS, Link, probability
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import Convergence, maximize

CHUNK = 4096  # rows per block of a prediction


class Prior(NamedTuple):
    """Weak independent log-normal priors on the hyperparameters.

    Few rows are often separable, and maximizing the evidence alone would then increase the
    amplitude of f without limit.
    """

    amplitude: float = 3.0  # median amplitude of f
    amplitude_spread: float = 1.5  # standard deviation of ln amplitude^2
    lengthscale_spread: float = 1.0  # standard deviation of ln lengthscale; the median is sqrt(d)
    weight: float = 10.0  # median variance of a linear weight; v is d times it
    weight_spread: float = 0.7  # standard deviation of its logarithm
    constant: float = 200.0  # median variance of the constant; spread as for the amplitude

    def log_prob(self, kernel: ScaleKernel | LinearAndRBF, d: int) -> Float[Tensor, ""]:
        """Log density without its constant, for inputs with `d` features.

        The priors of the linear part allow large weights: with few labels of the rare class,
        weaker slopes would assign too few rows to it.
        """
        if isinstance(kernel, LinearAndRBF):
            weight = (kernel.slope / (d * self.weight)).log() / self.weight_spread
            constant = (kernel.constant / self.constant).log() / self.amplitude_spread
            deviation = torch.stack([weight, constant])
            return self.log_prob(kernel.curved, d) - 0.5 * deviation.square().sum()
        scale = (kernel.outputscale / self.amplitude**2).log() / self.amplitude_spread
        length = (kernel.base_kernel.lengthscale / typical(d)).log() / self.lengthscale_spread
        value: Tensor = -0.5 * (scale.square() + length.square().sum())
        return value


class LaplaceGPC(GP):
    """Binary GP classifier with Laplace's approximation in float64; construct it with `build`.

    Attributes:
        prior: Prior on the hyperparameters, or None.
        kernel: Scaled squared exponential with one lengthscale or ARD, or any GPyTorch kernel.
        likelihood: Likelihood of labels 0 and 1.
        x, y: Training rows (preferably standardized) and labels (-1, 1).
        a: K^-1 f at the last mode, the start of the next search.
    """

    x: Tensor
    y: Tensor
    a: Tensor

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        link: str,
        ard: bool,
        prior: Prior | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        super().__init__()
        self.link_name, self.ard, self.prior = link, ard, prior
        self.kernel = squared_exponential(x.shape[1], ard) if kernel is None else deepcopy(kernel)
        self.kernel.to(x)
        self.likelihood = LIKELIHOODS[link]()
        self.register_buffer("x", x)
        self.register_buffer("y", y)
        self.register_buffer("a", torch.zeros_like(y))
        self._near: Mode | None = None  # last mode, during training

    @classmethod
    def build(
        cls,
        x: Float[Tensor, "n d"],
        y: Int[Tensor, " n"],
        link: str = "logistic",
        ard: bool = False,
        prior: Prior | None = None,
        kernel: Kernel | None = None,
        *,
        linear: bool = False,
    ) -> LaplaceGPC:
        """Build a model of labeled rows.

        Args:
            x: Standardized inputs without missing values.
            y: Labels 0 and 1; a single class is allowed, as at the start of labeling.
            link: "logistic" or "probit".
            ard: True for a lengthscale per feature.
            prior: Prior on the hyperparameters; None maximizes the evidence alone.
            kernel: Kernel in place of the squared exponential, which is copied; ignores `ard`.
            linear: True to add a linear and a constant term to the squared exponential.

        Raises:
            BadInput: The link is unknown, there are no rows, labels or inputs are invalid, or a
                prior is given with a kernel without output scale and lengthscale.
        """
        if link not in LINKS:
            raise BadInput(f"The link must be one of {', '.join(LINKS)}, got {link!r}.")
        _check(x, y)
        if linear and kernel is None:
            kernel = LinearAndRBF(x.shape[1], ard)
        if prior is not None and kernel is not None and not _scaled(kernel):
            raise BadInput(
                "The prior is on an output scale and lengthscales; give a ScaleKernel of a kernel "
                "with lengthscales, or no prior."
            )
        return cls(x.double(), 2.0 * y.double() - 1, link, ard, prior, kernel)

    @property
    def link(self) -> Link:
        """Link function with derivatives."""
        return LINKS[self.link_name]

    def covariance(
        self, a: Float[Tensor, "n d"], b: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, "n m"]:
        """Prior covariance of f between rows."""
        other = a if b is None else b
        if isinstance(self.kernel, ScaleKernel) and type(self.kernel.base_kernel) is RBFKernel:
            return dense(self.kernel, a, other)
        if isinstance(self.kernel, LinearAndRBF):
            return self.kernel.forward(a, other)
        K: Tensor = self.kernel(a, other).to_dense()
        return K

    def variance(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Prior variance of f at rows."""
        variances: Tensor = self.kernel(x, diag=True)
        return variances

    def log_evidence(self) -> Float[Tensor, ""]:
        """Laplace's approximation of ln p(y | x), nats; differentiable in the hyperparameters."""
        K = self.covariance(self.x)
        laplace = mode(K.detach(), self.y, self.link, self.a, self._near)
        if bool(torch.isfinite(laplace.log_evidence)):
            self.a, self._near = laplace.a, laplace
        return Evidence.apply(K, self.y, self.link, laplace)  # type: ignore[no-any-return]

    def log_prior(self) -> Float[Tensor, ""]:
        """Log prior of the hyperparameters without its constant; zero if there is none."""
        if self.prior is None:
            return self.y.new_zeros(())
        return self.prior.log_prob(self.kernel, self.x.shape[1])

    def elbo(self) -> Float[Tensor, ""]:
        """Training objective in nats: `log_evidence`, `log_prior` and registered priors."""
        return self.log_evidence() + self.log_prior() + log_hyperprior(self)

    def fit(self, steps: int = 100, tolerance: float = 1e-5) -> Float[Tensor, ""]:
        """Maximize `elbo` by L-BFGS until a step gains less than `tolerance` nats.

        With labels of a single class the hyperparameters are not changed.

        Returns:
            The log evidence in nats.
        """
        if len(self.y.unique()) > 1:
            rule, trainer = Convergence(), AdamLBFGS(self, self.elbo, 1, adam=0)
            maximize(trainer, steps, lambda elbo: not rule.gains(elbo, tolerance))
        with torch.no_grad():
            return self.log_evidence()

    def observe(self, x: Float[Tensor, "k d"], y: Int[Tensor, " k"]) -> LaplaceGPC:
        """Copy of the model with additional rows, with the same kernel and a warm-started mode.

        Args:
            x: Additional inputs.
            y: Their labels, 0 and 1.

        Raises:
            BadInput: See `build`.
        """
        return self.refit(torch.cat([self.x, x.to(self.x)]), torch.cat([(self.y > 0).to(y), y]))

    def refit(self, x: Float[Tensor, "n d"], y: Int[Tensor, " n"]) -> LaplaceGPC:
        """Copy of the model on other rows, with the same kernel and a warm-started mode.

        Args:
            x: Inputs; leading rows that equal this model's make the warm start useful.
            y: Their labels, 0 and 1.

        Raises:
            BadInput: See `build`.
        """
        other = LaplaceGPC.build(x, y, self.link_name, self.ard, self.prior, self.kernel)
        common = min(len(self.a), len(x))
        other.a[:common] = self.a[:common]
        return other

    @torch.no_grad()
    def forward(self, x: Float[Tensor, "k d"]) -> MultivariateNormal:
        """Posterior of the latent function at new rows, with a lazy covariance."""
        laplace, x = self._mode(), x.to(self.x)
        cross, v = self._cross(laplace, x)
        prior = self.kernel(x)
        return MultivariateNormal(cross.T @ laplace.a, prior + MatmulLinearOperator(-v.T, v))

    @torch.no_grad()
    def latent(self, x: Float[Tensor, "k d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mean and variance of f at new rows, computed in blocks."""
        laplace = self._mode()
        means, variances = [], []
        for part in x.to(self.x).split(CHUNK):
            cross, v = self._cross(laplace, part)
            means.append(cross.T @ laplace.a)  # GPML 3.21
            # GPML 3.24, by line 6 of algorithm 3.2
            variances.append((self.variance(part) - v.square().sum(0)).clamp(min=0))
        return torch.cat(means), torch.cat(variances)

    def _mode(self) -> Mode:
        return mode(self.covariance(self.x), self.y, self.link, self.a)

    def _cross(self, laplace: Mode, x: Tensor) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
        """k(X, x), and v = L^-1 W^1/2 k(X, x) with v' v the reduction of the covariance at x."""
        cross = self.covariance(self.x, x)
        v = torch.linalg.solve_triangular(laplace.L, laplace.W_sqrt[:, None] * cross, upper=False)
        return cross, v

    @torch.no_grad()
    def probability(self, x: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """p(y = 1 | x), averaged over the posterior of f."""
        return probability(self.link_name, *self.latent(x))


def _scaled(kernel: Kernel) -> bool:
    scaled = isinstance(kernel, ScaleKernel) and kernel.base_kernel.has_lengthscale
    return scaled or isinstance(kernel, LinearAndRBF)


def _check(x: Tensor, y: Tensor) -> None:
    if x.ndim != 2 or len(x) != len(y) or not len(x):
        raise BadInput(
            f"There must be one label a row, and one row at least; got {len(x)} rows and"
            f" {len(y)} labels."
        )
    if not bool(torch.isfinite(x).all()):
        raise BadInput("Every input must be a finite number; fill in or leave out what is missing.")
    if not bool(((y == 0) | (y == 1)).all()):
        raise BadInput(f"Labels must be 0 or 1, got {sorted(set(y.tolist()))[:5]}.")
