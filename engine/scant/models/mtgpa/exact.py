"""Exact Gaussian-process regression over supports of several tasks, for Gaussian likelihoods.

    y ~ N(m, sum_q B_q o K_q + diag(noise of each row's task))

(Yousefi 2021, section 5.1.2). For a few thousand rows at most: a step costs their cube.
With one task it is area-to-point kriging (Kyriakidis 2004), and it is what MTGPA's bound and
posterior are checked against.

    model = ExactGP.build(data, tasks=2, dimensions=2, generator=generator)
    trainer = ExactTrainer(model)
    while not trainer.stalled:
        log_evidence = trainer.step()
    model.predict(supports, task=0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy

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
from scant.models.mtgpa.prior import Coregionalisation, Data, Prior
from scant.models.mtgpa.tasks import TaskGP
from scant.optim.adam_lbfgs import AdamLBFGS

POINTS = 100  # the first lengthscale is twice their spacing, or that of the rows if these are fewer
# Shares of the noise and of the lengthscale to start from. The evidence has a maximum where the
# functions are smooth and what is fine is noise, and often a higher one where it is not.
STARTS = ((1.0, 1.0), (0.01, 0.4))
# Further ones, which look for what is fine: noise, lengthscale, the share of it that kernels after
# the first have, and the share of a function's deviation that they have.
FINER = ((0.01, 0.1, 0.5, 1.0), (0.01, 1.0, 0.25, 0.3))
TRIED = 5  # steps from each of them
# Hyperprior of a noise: mean, as a share of the variance of its task, and deviation, of the
# logarithm. Few rows can be gone through without noise, whatever theirs is.
LIKELY_NOISE, WIDE_NOISE = 0.02, 2.5
NOISE_PRIOR = "noise_prior"  # its name in a state


class ExactGP(TaskGP):
    """Conditioned on the data it is given; task d observes function d.

    GPyTorch's `ExactGP` takes one likelihood of one noise, and its posterior is of the rows given
    alone: here each task has a likelihood, as in MTGPA, and the posterior is of any task.

    Args:
        likelihoods: Of each task, Gaussian; shared, not copied.
        prior: Shared as well.
        data: y standardized roughly, as for MTGPA. It is part of the model's state.

    Raises:
        BadInput: A likelihood is not Gaussian.
    """

    supports: Float[Tensor, "n c"]
    y: Float[Tensor, " n"]
    task: Int[Tensor, " n"]
    exposure: Float[Tensor, " n"] | None  # where a task's noise depends on it
    known: Float[Tensor, " n"] | None

    def __init__(self, likelihoods: Iterable[Likelihood], prior: Prior, data: Data) -> None:
        super().__init__(likelihoods, prior)
        if not all(isinstance(lik, Gaussian) for lik in self.likelihoods):
            raise BadInput("The posterior is exact with Gaussian likelihoods only.")
        if not any(isinstance(lik, GaussianRate) for lik in self.likelihoods):
            data = data._replace(exposure=None)
        for name in Data._fields:
            self.register_buffer(name, getattr(data, name))
        self.notes: list[str] = []  # of the numerics, each once
        self._known: tuple[Tensor, Tensor] | None = None

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
        kernels: Sequence[Kernel] | None = None,
        likelihoods: Sequence[str] | None = None,
        covariates: int = 0,
        alike: int = 1,
        finer: bool = False,
    ) -> ExactGP:
        """A model with start values from the data: of several the best after a few steps.

        All is as for `MTGPA.build`, but for:

        Args:
            noise: Of the first start; that of the others is a hundredth.
            likelihoods: By name; all `"gaussian"` by default.
            finer: Try starts of shorter lengthscales, too, and put a hyperprior on the noise.

        Raises:
            BadInput: A task without data, or a value that is not finite.
        """
        check(data, tasks)
        prior = Coregionalisation(dimensions, tasks, ranks, shape, kernels, covariates, alike)
        own = [likelihood(name) for name in likelihoods or ["gaussian"] * tasks]
        model = cls(own, prior, data).to(data.supports)
        if lengthscale is None:
            places, _ = prior.split(data.supports)
            start = 2 * spacing(places, dimensions, min(len(data.y), POINTS))
        else:
            start = torch.as_tensor(lengthscale).to(data.supports).expand(dimensions)
        prior.learn_lengthscales(not fixed_lengthscale)
        if finer:
            model.expect_noise()
        given, tried = deepcopy(model.state_dict()), []
        starts = [(*two, 0.5, 1.0) for two in STARTS] + (list(FINER) if finer else [])
        for of_noise, of_lengthscale, of_kernels, of_deviation in starts:
            model.load_state_dict(given)
            width = start if fixed_lengthscale else start * of_lengthscale
            model.start(data, width, noise * of_noise, generator)
            if of_deviation != 1 and not fixed_lengthscale:
                prior.refine(width, of_kernels, of_deviation)
            value = model.fit(TRIED)
            value = value if math.isfinite(value) else -math.inf
            tried.append((value, deepcopy(model.state_dict())))
        model.load_state_dict(max(tried, key=lambda pair: pair[0])[1])
        return model

    def expect_noise(self) -> None:
        """Put a hyperprior on each task's noise."""
        for d, lik in enumerate(self.likelihoods):
            variance = self.data.of_task(d).y.var(correction=0).clamp(min=1e-4)
            mean = (LIKELY_NOISE * variance).log()
            prior = NormalPrior(mean, torch.full_like(mean, WIDE_NOISE))
            lik.register_prior(NOISE_PRIOR, prior, "log_noise")

    @property
    def data(self) -> Data:
        """What it is conditioned on."""
        return Data(self.supports, self.y, self.task, self.exposure, self.known)

    def noise(self) -> Float[Tensor, " t"]:
        """Variance of each task's observations."""
        return torch.stack([lik.noise() for lik in self.likelihoods])

    def _residual(self) -> Float[Tensor, " n"]:
        return self.y - self.prior.mean(self.supports, self.task)

    def _covariance(self) -> Float[Tensor, "n n"]:
        """Of y."""
        K: Tensor = self.prior.covariance(self.supports, self.task, self.supports, self.task)
        K.diagonal().add_(self._noise_of_rows())
        return K

    def _noise_of_rows(self) -> Float[Tensor, " n"]:
        """Variance of the noise of each row, what is known of it included."""
        noise = self.noise()[self.task]
        if self.exposure is not None:
            of_task = [lik.noise_at(self.exposure) - lik.noise() for lik in self.likelihoods]
            for d, spread in enumerate(of_task):
                noise = noise + torch.where(self.task == d, spread, 0.0)
        return noise if self.known is None else noise + self.known

    def _factor(self) -> tuple[Float[Tensor, "n n"], Float[Tensor, "n 1"]]:
        """The Cholesky factor of y's covariance, and that factor's inverse times y - m."""
        return self._known or whitened(self._covariance(), self._residual().unsqueeze(1))

    @contextmanager
    def _held(self) -> Iterator[None]:
        self._known = self._factor()
        try:
            yield
        finally:
            self._known = None

    def elbo(self) -> Float[Tensor, ""]:
        """ln p(y), the evidence itself, and registered priors, in nats."""
        with collect_numerical_warnings(self.notes):
            density: Tensor = LogDensity.apply(self._covariance(), self._residual())
        return density - 0.5 * len(self.y) * LOG_2PI + log_hyperprior(self)

    def fit(self, steps: int = 50) -> float:
        """Steps of L-BFGS until none goes higher; the log evidence that they reached."""
        trainer, value = ExactTrainer(self), -math.inf
        for _ in range(steps):
            value = trainer.step()
            if trainer.stalled:
                break
        return value

    @torch.no_grad()
    def left_out(self) -> Mixture:
        """What the other rows say of each (Rasmussen and Williams 2006, 5.12)."""
        error, variance = left_out(self._covariance(), self._residual())
        noise = torch.minimum(self._noise_of_rows(), variance)
        return Mixture.of_one(MTGPAPrediction(self.y - error, variance - noise, noise))

    def forward(self, supports: Float[Tensor, "n c"], task: int = 0) -> MultivariateNormal:
        """Posterior of a task's averages over supports, with the covariance of all pairs."""
        j = torch.full((len(supports),), task, device=supports.device)
        mean, weights = self._given(supports, j)
        covariance = self.prior.covariance(supports, j, supports, j) - weights.T @ weights
        return MultivariateNormal(mean, to_linear_operator(covariance))

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        j = torch.full((len(supports),), task, device=supports.device)
        mean, weights = self._given(supports, j)
        variance = (self.prior.variance(supports, j) - weights.square().sum(0)).clamp(min=0)
        return Moments(mean.unsqueeze(0), variance.expand(1, 1, -1))

    def _given(self, x: Tensor, j: Tensor) -> tuple[Float[Tensor, " k"], Float[Tensor, "n k"]]:
        """Posterior means of functions j at x, and W: W'W is what is known of their covariance."""
        lower, half = self._factor()
        K = self.prior.covariance(self.supports, self.task, x, j)
        weights = torch.linalg.solve_triangular(lower, K, upper=False)
        return self.prior.mean(x, j) + (weights.T @ half)[:, 0], weights


class ExactTrainer(AdamLBFGS):
    """Steps of L-BFGS on the log evidence."""

    def __init__(self, model: TaskGP) -> None:
        super().__init__(model, model.elbo, len(model.y), adam=0)
