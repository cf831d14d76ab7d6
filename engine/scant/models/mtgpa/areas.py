"""Counts of areas whose rates are sums, by Laplace's approximation.

    y_i ~ p(y | sum_k w_ik exp(f_k)),    f the prior's functions at the points x_k of all supports

An observed sum of exponentials makes the posterior curved: if one part has a larger rate, the
others have smaller ones. A variational Gaussian becomes too narrow to avoid the curvature and is
overconfident about the parts (St. Louis and the counties around it: 8 % predicted, errors of a
factor of two). Laplace's approximation only uses the mode and stays as wide as the prior in the
directions that the sum does not determine. Following INLA (Rue, Martino and Chopin 2009), there are
Gauss-Newton steps to the mode, the evidence at the mode, and a correction of the mode such that
counts agree with the means of the exponentials (van Niekerk and Rue 2024). `area_nodes` averages
over the hyperparameters.

The cost is that of points x points and supports x supports matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.errors import BadInput
from scant.inference.numerical_warnings import collect_numerical_warnings
from scant.models.hyperprior import log_hyperprior
from scant.models.mtgpa.counts import Counts
from scant.models.mtgpa.initialization import check, spacing
from scant.models.mtgpa.likelihoods import Likelihood, Moments, likelihood
from scant.models.mtgpa.prior import COEFFICIENT, Coregionalization, Data
from scant.models.mtgpa.rates import points, points_each, tangent
from scant.models.mtgpa.tasks import TaskGP

FLAT = 25.0  # prior variance of a task's constant
START = 0.4  # initial standard deviation of log rates
STEPS, MIN_GAIN, HALVINGS = 50, 1e-9, 20  # search for a mode: steps, final gain, halvings
MAX_WORK = 4e8  # points² times supports of a quick fit
MAX_CORRECTION = 20.0  # bound on the variance, half of which is added to a log rate


class _Posterior(NamedTuple):
    """Posterior of f: mean K b and covariance K - K H' (I + H K H')^-1 H K."""

    b: Float[Tensor, " p"]
    H: Float[Tensor, "n p"]
    factor: Float[Tensor, "n n"]


class _Fit(NamedTuple):
    """Log joint density; gradient, expected information and points' shares of the log rates."""

    value: Float[Tensor, ""]
    slope: Float[Tensor, " n"]
    information: Float[Tensor, " n"]
    share: Float[Tensor, "n p"]


class AreaGP(TaskGP):
    """Multi-task GP of counts over supports, whose rates sum over the supports' points.

    Args:
        likelihoods: Likelihood of counts for each task; shared, not copied.
        prior: Prior of one function per task; shared, not copied.
        data: Observations, which become part of the model's state.

    Raises:
        BadInput: A likelihood is not for counts.
    """

    prior: Coregionalization
    supports: Float[Tensor, "n c"]
    y: Float[Tensor, " n"]
    task: Int[Tensor, " n"]
    exposure: Float[Tensor, " n"]
    places: Float[Tensor, "p c2"]
    of_task: Int[Tensor, " p"]
    weight: Float[Tensor, "n p"]

    def __init__(
        self, likelihoods: Iterable[Likelihood], prior: Coregionalization, data: Data
    ) -> None:
        super().__init__(likelihoods, prior)
        if not all(isinstance(lik, Counts) for lik in self.likelihoods):
            raise BadInput("Laplace's approximation is of counts only; choose another inference.")
        columns = (data.supports, data.y, data.task, data.exposures())
        for name, values in zip(("supports", "y", "task", "exposure"), columns):
            self.register_buffer(name, values)
        rows, weight = self._points(data.supports)
        n, k, _ = rows.shape
        named = torch.cat([rows, data.task[:, None, None].expand(n, k, 1).to(rows)], dim=2)
        unique, column = torch.unique(named.flatten(0, 1), dim=0, return_inverse=True)
        row = torch.arange(n, device=rows.device).repeat_interleave(k)
        point_weight = (weight * data.exposures().unsqueeze(1)).flatten()
        table = rows.new_zeros(n, len(unique)).index_put_(
            (row, column), point_weight, accumulate=True
        )
        for name, values in (
            ("places", unique[:, :-1]),
            ("of_task", unique[:, -1].long()),
            ("weight", table),
        ):
            self.register_buffer(name, values, persistent=False)
        self.notes: list[str] = []  # numerical warnings, each once
        self._current: _Posterior | None = None

    @classmethod
    def build(
        cls,
        data: Data,
        likelihoods: Sequence[str],
        dimensions: int,
        generator: torch.Generator,
        ranks: Sequence[int] = (1,),
        shape: str = "matern32",
        lengthscale: float | None = None,
        fixed_lengthscale: bool = False,
        noise: float = 0.1,
        covariates: int = 0,
        n_isotropic: int = 1,
    ) -> AreaGP:
        """Build a model initialized from the data; arguments are those of `MTGPA.build`.

        Raises:
            BadInput: A task has no data, or a value is not a count.
        """
        check(data, len(likelihoods))
        built = [likelihood(name) for name in likelihoods]
        prior = Coregionalization(
            dimensions,
            len(built),
            ranks,
            shape,
            None,
            covariates=covariates,
            n_isotropic=n_isotropic,
        )
        model = cls(built, prior, data).to(data.supports)
        if lengthscale is None:
            start = 2 * spacing(model.places[:, :dimensions], dimensions)
        else:
            start = torch.as_tensor(lengthscale).to(data.supports).expand(dimensions)
        model.start(data, start, noise, generator)
        with torch.no_grad():
            prior.mixing *= START
        prior.offset.requires_grad_(False)  # the constants have the prior variance FLAT
        prior.learn_lengthscales(not fixed_lengthscale)
        return model

    def elbo(self) -> Float[Tensor, ""]:
        """Laplace's approximation of ln p(y) plus registered log priors, in nats.

        The last step to the mode has gradients, so that those of the mode are included.
        """
        with collect_numerical_warnings(self.notes):
            K = self._covariance()
            with torch.no_grad():
                a = self._mode(K, self.weight)
            a = a + self._step(K, self.weight, a)
            fit = self._fit(K, self.weight, a)
            H = fit.information.sqrt().unsqueeze(1) * fit.share
            factor = torch.linalg.cholesky(_plus_one(H @ K @ H.T))
        return fit.value - factor.diagonal().log().sum() + log_hyperprior(self)

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        """Posterior of a task's log rates at supports."""
        posterior = self._current or self._posterior()
        rows, weight = self._points(supports)
        n, k, _ = rows.shape
        flat = rows.flatten(0, 1)
        j = torch.full((n * k,), task, device=rows.device)
        K = self.prior.covariance(flat, j, self.places, self.of_task)
        K += FLAT * (self.of_task == task)
        mean = self.prior.offset[task] + K @ posterior.b
        lower = torch.linalg.solve_triangular(posterior.factor, posterior.H @ K.T, upper=False)
        solved = lower.T.unflatten(0, (n, k))
        covariance = self._within(rows, task) - solved @ solved.mT
        return tangent(weight, mean.view(n, k), covariance)

    def _points(self, supports: Tensor) -> tuple[Float[Tensor, "n k c2"], Float[Tensor, "n k"]]:
        """Points of supports, with their support's covariates, and their weights."""
        boxes, z = self.prior.split(supports)
        points_ = points(boxes, self.prior.dimensions)
        n, k, _ = points_.lower.shape
        weight = points_.lower.new_ones(n, k) if points_.weight is None else points_.weight
        if z is None:
            return points_.lower, weight
        return torch.cat([points_.lower, z.unsqueeze(1).expand(n, k, -1)], dim=2), weight

    def _within(self, rows: Float[Tensor, "n k c2"], task: int) -> Float[Tensor, "n k k"]:
        """Prior covariance matrices among the points of each support."""
        locations = rows[..., : self.prior.dimensions]
        parts = [
            self.prior.mixing[self.prior.kernel_of == q, task].square().sum()
            * kernel.within(locations)
            for q, kernel in enumerate(self.prior.kernels)
        ]
        z = rows[..., self.prior.dimensions :]
        return sum(parts[1:], start=parts[0]) + FLAT + COEFFICIENT**2 * z @ z.mT

    def _covariance(self) -> Float[Tensor, "p p"]:
        K = self.prior.covariance(self.places, self.of_task, self.places, self.of_task)
        return K + FLAT * (self.of_task.unsqueeze(1) == self.of_task)

    def _fit(self, K: Tensor, weight: Tensor, a: Float[Tensor, " p"]) -> _Fit:
        f = K @ a
        rates = weight * (self.prior.offset[self.of_task] + f).clamp(-40, 40).exp()
        total = rates.sum(1).clamp(min=1e-300)
        log, one = total.log(), torch.ones_like(total)
        density, slope, information = (torch.zeros_like(total) for _ in range(3))
        for d, lik in enumerate(self.likelihoods):
            assert isinstance(lik, Counts)
            of_task = self.task == d
            density = torch.where(of_task, lik.log_prob(self.y, log, one), density)
            slope = torch.where(of_task, lik.slopes(self.y, log, one)[0], slope)
            information = torch.where(of_task, lik.slopes(total, log, one)[1], information)
        value = density.sum() - 0.5 * a @ f
        return _Fit(value, slope, information, rates / total.unsqueeze(1))

    def _step(
        self, K: Tensor, weight: Tensor, a: Float[Tensor, " p"], fit: _Fit | None = None
    ) -> Float[Tensor, " p"]:
        """Gauss-Newton step of a (the Hessian for sums of exponentials may be indefinite)."""
        fit = fit or self._fit(K, weight, a)
        H = fit.information.sqrt().unsqueeze(1) * fit.share
        r = H.T @ (H @ (K @ a)) + fit.share.T @ fit.slope
        KH = K @ H.T
        lower = torch.linalg.cholesky(_plus_one(H @ KH))
        return r - H.T @ torch.cholesky_solve((KH.T @ r).unsqueeze(1), lower)[:, 0] - a

    @torch.no_grad()
    def _mode(
        self, K: Tensor, weight: Tensor, start: Float[Tensor, " p"] | None = None
    ) -> Float[Tensor, " p"]:
        """a = K^-1 f at the mode, with f the deviation from the prior mean."""
        a = K.new_zeros(len(K)) if start is None else start
        fit = self._fit(K, weight, a)
        for _ in range(STEPS):
            step, size = self._step(K, weight, a, fit), 1.0
            for _ in range(HALVINGS):
                new = self._fit(K, weight, a + size * step)
                if float(new.value) >= float(fit.value):
                    break
                size /= 2
            gain = float(new.value - fit.value)
            if gain > 0:
                a, fit = a + size * step, new
            if not gain >= MIN_GAIN:
                break
        return a

    @torch.no_grad()
    def _posterior(self) -> _Posterior:
        K = self._covariance()
        a = self._mode(K, self.weight)
        fit = self._fit(K, self.weight, a)
        H = fit.information.sqrt().unsqueeze(1) * fit.share
        KH = K @ H.T
        factor = torch.linalg.cholesky(_plus_one(H @ KH))
        lower = torch.linalg.solve_triangular(factor, KH.T, upper=False)
        variance = (K.diagonal() - lower.square().sum(0)).clamp(min=0)
        corrected = self.weight * (variance.clamp(max=MAX_CORRECTION) / 2).exp()
        return _Posterior(self._mode(K, corrected, a), H, factor)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Context in which the posterior is computed once; parameters must not change."""
        previous = self._current
        self._current = previous or self._posterior()
        try:
            yield
        finally:
            self._current = previous

    def _points_each(self, supports: Float[Tensor, "n c"]) -> int:
        return points_each(self.prior.split(supports)[0], self.prior.dimensions)


def _plus_one(A: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    return A + torch.eye(len(A), dtype=A.dtype, device=A.device)


def fits(rows: int, latents: int) -> bool:
    """Return True if a fit is quick: a step costs points² times supports."""
    return math.prod((latents, latents, rows)) <= MAX_WORK
