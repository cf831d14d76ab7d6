"""Exact multi-task GP regression over supports, for Gaussian likelihoods.

    y ~ N(m, sum_q B_q o K_q + diag(noise of each row's task))

(Yousefi 2021, section 5.1.2). A step is cubic in the number of rows, at most a few thousand. With
one task it is area-to-point kriging (Kyriakidis 2004). Tests compare MTGPA's bound and posterior
with it.

    model = ExactGP.build(data, tasks=2, dimensions=2, generator=generator)
    trainer = ExactTrainer(model)
    while not trainer.stalled:
        log_evidence = trainer.step()
    model.predict(supports, task=0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from jaxtyping import Float, Int
from linear_operator import to_linear_operator
from torch import Tensor

from scant.errors import BadInput
from scant.inference.exact import LogDensity, left_out, whitened
from scant.inference.expectations import LOG_2PI
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.hyperprior import log_hyperprior
from scant.models.mtgpa.initialization import check, spacing
from scant.models.mtgpa.likelihoods import (
    Gaussian,
    GaussianRate,
    Likelihood,
    Moments,
    MTGPAPrediction,
    likelihood,
)
from scant.models.mtgpa.mixture import Mixture
from scant.models.mtgpa.prior import Coregionalization, Data, Prior
from scant.models.mtgpa.tasks import TaskGP
from scant.optim.adam_lbfgs import AdamLBFGS
from scant.optim.ascent import maximize

POINTS = 100  # the initial lengthscale is twice the spacing of min(rows, POINTS) grid points
# Initial values, as factors of noise and lengthscale. The evidence often has one maximum with
# smooth functions and much noise, and a higher one with fine structure and little noise.
STARTS = ((1.0, 1.0), (0.01, 0.4))
FINER = ((0.01, 0.1), (0.01, 1.0))  # additional ones for fine structure
# Initial values of an added function: factors of the lengthscale, and its deviation as a share of
# the largest one. Fine structure is often short in one dimension and long in the others, such as
# what is peculiar to one year.
SHORT, LONG, BROAD = 0.25, 1.5, 3.0
SHARE, BROAD_SHARE = 0.1, 0.3
TRIED, GROWN = 5, 12  # steps from each initial value, and from each of an added function
# Log-normal hyperprior of the noise: median as a share of the task's variance, and deviation of the
# logarithm. Without it, functions could interpolate few rows with zero noise.
NOISE_MEDIAN, NOISE_DEVIATION = 0.02, 2.5
NOISE_PRIOR = "noise_prior"  # its name in a state dict


class ExactGP(TaskGP):
    """Exact multi-task GP conditioned on its data; task d observes function d.

    Unlike GPyTorch's `ExactGP`, each task has its own likelihood and noise, as in MTGPA.

    Args:
        likelihoods: Gaussian likelihood of each task; shared, not copied.
        prior: Prior of the functions; shared, not copied.
        data: Observations with roughly standardized y, which become part of the model's state.

    Raises:
        BadInput: A likelihood is not Gaussian.
    """

    supports: Float[Tensor, "n c"]
    y: Float[Tensor, " n"]
    task: Int[Tensor, " n"]
    exposure: Float[Tensor, " n"] | None  # only if a task's noise depends on it
    known: Float[Tensor, " n"] | None

    def __init__(self, likelihoods: Iterable[Likelihood], prior: Prior, data: Data) -> None:
        super().__init__(likelihoods, prior)
        if not all(isinstance(lik, Gaussian) for lik in self.likelihoods):
            raise BadInput("The posterior is exact with Gaussian likelihoods only.")
        if not any(isinstance(lik, GaussianRate) for lik in self.likelihoods):
            data = data._replace(exposure=None)
        for name in Data._fields:
            self.register_buffer(name, getattr(data, name))
        self.notes: list[str] = []  # numerical warnings, each once
        self._cached_factor: tuple[Tensor, Tensor] | None = None

    @classmethod
    def build(
        cls,
        data: Data,
        tasks: int,
        dimensions: int,
        generator: torch.Generator,
        ranks: Sequence[int] = (1,),
        shape: str = "eq",
        lengthscale: float | Sequence[float] | None = None,
        fixed_lengthscale: bool = False,
        noise: float = 0.1,
        offsets: bool = True,
        kernels: Sequence[Kernel] | None = None,
        likelihoods: Sequence[str] | None = None,
        covariates: int = 0,
        n_isotropic: int = 1,
        finer: bool = False,
    ) -> ExactGP:
        """Build a model from the best of several initial values after a few steps.

        Arguments are those of `MTGPA.build`, except:

        Args:
            noise: Noise of the first initial value; the others use a hundredth of it.
            likelihoods: Names of the likelihoods; default all `"gaussian"`.
            finer: True to also try shorter lengthscales, with a hyperprior on the noise.

        Raises:
            BadInput: A task has no data, or a value is not finite.
        """
        check(data, tasks)
        built = [likelihood(name) for name in likelihoods or ["gaussian"] * tasks]
        prior = Coregionalization(dimensions, tasks, ranks, shape, kernels, covariates, n_isotropic)
        model = cls(built, prior, data).to(data.supports)
        if lengthscale is None:
            start = model._spacing()
        else:
            start = torch.as_tensor(lengthscale).to(data.supports).expand(dimensions)
        prior.learn_lengthscales(not fixed_lengthscale)
        if finer:
            model.expect_noise()
        model._start_from_best(
            partial(
                model.start,
                data,
                start if fixed_lengthscale else start * lengthscale_factor,
                noise * noise_factor,
                generator,
                offsets,
            )
            for noise_factor, lengthscale_factor in (*STARTS, *(FINER if finer else ()))
        )
        return model

    def grow(self, rank: int, generator: torch.Generator) -> None:
        """Add a kernel, from the best of several initial values after a few steps.

        The evidence has many maxima in the parameters of several functions. From an optimum of
        fewer, functions are found that follow its residuals.
        """
        prior, spacing = self.prior, self._spacing()
        prior.extend(rank)
        d = len(spacing)
        starts = [(spacing * SHORT, SHARE), (spacing * BROAD, BROAD_SHARE)]
        if d > 1:
            along = torch.where(torch.eye(d).bool(), SHORT, LONG).to(spacing)
            starts += [(spacing * factors, SHARE) for factors in along]
        self._start_from_best(
            (
                partial(prior.start_last, lengthscale, share, generator)
                for lengthscale, share in starts
            ),
            GROWN,
        )

    def _spacing(self) -> Float[Tensor, " d"]:
        """Lengthscale for initial values: twice the spacing of a grid."""
        boxes, _ = self.prior.split(self.supports)
        return 2 * spacing(boxes, self.prior.dimensions, min(len(self.y), POINTS))

    def _start_from_best(self, starts: Iterable[Callable[[], None]], steps: int = TRIED) -> None:
        """Try initial values, each for a few steps; keep the best."""
        initial, results = deepcopy(self.state_dict()), []
        for start in starts:
            self.load_state_dict(initial)
            start()
            results.append((self.fit(steps), deepcopy(self.state_dict())))
        self.load_state_dict(max(results, key=lambda pair: pair[0])[1])

    def expect_noise(self) -> None:
        """Register a hyperprior on each task's noise."""
        for d, lik in enumerate(self.likelihoods):
            variance = self.data.of_task(d).y.var(correction=0).clamp(min=1e-4)
            mean = (NOISE_MEDIAN * variance).log()
            prior = NormalPrior(mean, torch.full_like(mean, NOISE_DEVIATION))
            lik.register_prior(NOISE_PRIOR, prior, "log_noise")

    @property
    def data(self) -> Data:
        """Training data."""
        return Data(self.supports, self.y, self.task, self.exposure, self.known)

    def noise(self) -> Float[Tensor, " t"]:
        """Noise variance of each task."""
        return torch.stack([lik.noise() for lik in self.likelihoods])

    def _residual(self) -> Float[Tensor, " n"]:
        return self.y - self.prior.mean(self.supports, self.task)

    def _covariance(self) -> Float[Tensor, "n n"]:
        """Covariance of y, with noise."""
        K: Tensor = self.prior.covariance(self.supports, self.task, self.supports, self.task)
        K.diagonal().add_(self._noise_of_rows())
        return K

    def _noise_of_rows(self) -> Float[Tensor, " n"]:
        """Noise variance of each row, including fixed noise."""
        noise = self.noise()[self.task]
        if self.exposure is not None:
            rate_noise = [lik.noise_at(self.exposure) - lik.noise() for lik in self.likelihoods]
            for d, spread in enumerate(rate_noise):
                noise = noise + torch.where(self.task == d, spread, 0.0)
        return noise if self.known is None else noise + self.known

    def _factor(self) -> tuple[Float[Tensor, "n n"], Float[Tensor, "n 1"]]:
        """Cholesky factor L of y's covariance, and L^-1 (y - m)."""
        return self._cached_factor or whitened(self._covariance(), self._residual().unsqueeze(1))

    @contextmanager
    def _held(self) -> Iterator[None]:
        self._cached_factor = self._factor()
        try:
            yield
        finally:
            self._cached_factor = None

    def elbo(self) -> Float[Tensor, ""]:
        """ln p(y) plus registered log priors, in nats."""
        with collect_numerical_warnings(self.notes):
            density: Tensor = LogDensity.apply(self._covariance(), self._residual())
        return density - 0.5 * len(self.y) * LOG_2PI + log_hyperprior(self)

    def fit(self, steps: int = 50) -> float:
        """Run L-BFGS until convergence; return the objective, -inf if it is not finite."""
        return [-math.inf, *maximize(ExactTrainer(self), steps)][-1]

    @torch.no_grad()
    def left_out(self) -> Mixture:
        """Leave-one-out prediction of each row (Rasmussen and Williams 2006, 5.12)."""
        error, variance = left_out(self._covariance(), self._residual())
        noise = torch.minimum(self._noise_of_rows(), variance)
        return Mixture.single(MTGPAPrediction(self.y - error, variance - noise, noise))

    def forward(self, supports: Float[Tensor, "n c"], task: int = 0) -> MultivariateNormal:
        """Posterior of a task's averages over supports, with the full covariance."""
        j = torch.full((len(supports),), task, device=supports.device)
        mean, weights = self._condition(supports, j)
        covariance = self.prior.covariance(supports, j, supports, j) - weights.T @ weights
        return MultivariateNormal(mean, to_linear_operator(covariance))

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        j = torch.full((len(supports),), task, device=supports.device)
        mean, weights = self._condition(supports, j)
        variance = (self.prior.variance(supports, j) - weights.square().sum(0)).clamp(min=0)
        return Moments(mean.unsqueeze(0), variance.expand(1, 1, -1))

    def _condition(self, x: Tensor, j: Tensor) -> tuple[Float[Tensor, " k"], Float[Tensor, "n k"]]:
        """Posterior means of functions j at x, and W with W'W the reduction of their covariance."""
        lower, whitened_y = self._factor()
        K = self.prior.covariance(self.supports, self.task, x, j)
        weights = torch.linalg.solve_triangular(lower, K, upper=False)
        return self.prior.mean(x, j) + (weights.T @ whitened_y)[:, 0], weights


class ExactTrainer(AdamLBFGS):
    """L-BFGS on the log evidence."""

    def __init__(self, model: TaskGP) -> None:
        super().__init__(model, model.elbo, len(model.y), adam=0)
