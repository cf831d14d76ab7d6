"""Counts of areas whose rates are sums, by Laplace's approximation.

    y_i ~ p(y | sum_k w_ik exp(f_k)),    f the prior's functions at the points x_k of all supports

A known sum of exponentials bends the posterior: what one part has more, the others have less, by
factors. A Gaussian whose expected log likelihood is to be high shrinks until it does not feel the
bend, and says of the parts of a group that it knows them (of St. Louis and the counties around it:
by 8 %, where they were off by a factor of two). Laplace's approximation looks at the mode alone and
stays as wide across the bend as the prior allows. As INLA has it (Rue, Martino and Chopin 2009):
Gauss and Newton's steps to the mode, the evidence there, and a mode that is moved so that counts
agree with means of exponentials (van Niekerk and Rue 2024). `area_nodes` averages over the
hyperparameters.

The cost is that of matrices of points by points and supports by supports.
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
from scant.models.mtgpa.prior import COEFFICIENT, Coregionalisation, Data
from scant.models.mtgpa.rates import points, points_each, tangent
from scant.models.mtgpa.tasks import TaskGP

FLAT = 25.0  # prior variance of a task's constant
START = 0.4  # deviation of log rates to start from
STEPS, SETTLED, HALVINGS = 50, 1e-9, 20  # of the search for a mode; what it gains at least
MOST_WORK = 4e8  # points² times supports
MOST_MOVED = 20.0  # variance whose half is added to a log rate


class _Posterior(NamedTuple):
    """At some hyperparameters: f has mean K b and covariance K - K H' (I + H K H')^-1 H K."""

    b: Float[Tensor, " p"]
    H: Float[Tensor, "n p"]
    factor: Float[Tensor, "n n"]


class _Fit(NamedTuple):
    """Log joint density, gradient and expected information of log rates, shares of the points."""

    value: Float[Tensor, ""]
    slope: Float[Tensor, " n"]
    information: Float[Tensor, " n"]
    share: Float[Tensor, "n p"]


class AreaGP(TaskGP):
    """Several tasks of counts over supports, of one function each.

    Args:
        likelihoods: Of each task, of counts; shared, not copied.
        prior: Shared as well.
        data: Part of the model's state.

    Raises:
        BadInput: A likelihood is not of counts.
    """

    prior: Coregionalisation
    supports: Float[Tensor, "n c"]
    y: Float[Tensor, " n"]
    task: Int[Tensor, " n"]
    exposure: Float[Tensor, " n"]
    places: Float[Tensor, "p c2"]
    of_task: Int[Tensor, " p"]
    weight: Float[Tensor, "n p"]

    def __init__(
        self, likelihoods: Iterable[Likelihood], prior: Coregionalisation, data: Data
    ) -> None:
        super().__init__(likelihoods, prior)
        if not all(isinstance(lik, Counts) for lik in self.likelihoods):
            raise BadInput("Laplace's approximation is of counts only; choose another inference.")
        own = (data.supports, data.y, data.task, data.exposures())
        for name, values in zip(("supports", "y", "task", "exposure"), own):
            self.register_buffer(name, values)
        rows, weight = self._points(data.supports)
        n, k, _ = rows.shape
        named = torch.cat([rows, data.task[:, None, None].expand(n, k, 1).to(rows)], dim=2)
        found, place = torch.unique(named.flatten(0, 1), dim=0, return_inverse=True)
        which = torch.arange(n, device=rows.device).repeat_interleave(k)
        of_points = (weight * data.exposures().unsqueeze(1)).flatten()
        table = rows.new_zeros(n, len(found)).index_put_((which, place), of_points, accumulate=True)
        for name, values in (
            ("places", found[:, :-1]),
            ("of_task", found[:, -1].long()),
            ("weight", table),
        ):
            self.register_buffer(name, values, persistent=False)
        self.notes: list[str] = []  # of the numerics, each once
        self._known: _Posterior | None = None

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
        alike: int = 1,
    ) -> AreaGP:
        """A model with start values from the data; all is as for `MTGPA.build`.

        Raises:
            BadInput: A task without data, or a value that is no count.
        """
        check(data, len(likelihoods))
        own = [likelihood(name) for name in likelihoods]
        prior = Coregionalisation(
            dimensions, len(own), ranks, shape, None, covariates=covariates, alike=alike
        )
        model = cls(own, prior, data).to(data.supports)
        if lengthscale is None:
            start = 2 * spacing(model.places[:, :dimensions], dimensions)
        else:
            start = torch.as_tensor(lengthscale).to(data.supports).expand(dimensions)
        model.start(data, start, noise, generator)
        with torch.no_grad():
            prior.mixing *= START
        prior.offset.requires_grad_(False)  # FLAT is about it
        prior.learn_lengthscales(not fixed_lengthscale)
        return model

    def elbo(self) -> Float[Tensor, ""]:
        """Laplace's approximation of ln p(y), and registered priors, in nats.

        The last step to the mode is taken with gradients, so that they count that the mode moves.
        """
        with collect_numerical_warnings(self.notes):
            K = self._covariance()
            with torch.no_grad():
                a = self._mode(K, self.weight)
            a = a + self._step(K, self.weight, a)
            at = self._fit(K, self.weight, a)
            H = at.information.sqrt().unsqueeze(1) * at.share
            factor = torch.linalg.cholesky(_plus_one(H @ K @ H.T))
        return at.value - factor.diagonal().log().sum() + log_hyperprior(self)

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        """Posterior of the log rates of a task at supports."""
        known = self._known or self._posterior()
        rows, weight = self._points(supports)
        n, k, _ = rows.shape
        flat = rows.flatten(0, 1)
        j = torch.full((n * k,), task, device=rows.device)
        K = self.prior.covariance(flat, j, self.places, self.of_task)
        K += FLAT * (self.of_task == task)
        mean = self.prior.offset[task] + K @ known.b
        lower = torch.linalg.solve_triangular(known.factor, known.H @ K.T, upper=False)
        half = lower.T.unflatten(0, (n, k))
        covariance = self._within(rows, task) - half @ half.mT
        return tangent(weight, mean.view(n, k), covariance)

    def _points(self, supports: Tensor) -> tuple[Float[Tensor, "n k c2"], Float[Tensor, "n k"]]:
        """The points of supports, each with its support's covariates, and their weights."""
        where, z = self.prior.split(supports)
        at = points(where, self.prior.dimensions)
        n, k, _ = at.lower.shape
        weight = at.lower.new_ones(n, k) if at.weight is None else at.weight
        if z is None:
            return at.lower, weight
        return torch.cat([at.lower, z.unsqueeze(1).expand(n, k, -1)], dim=2), weight

    def _within(self, rows: Float[Tensor, "n k c2"], task: int) -> Float[Tensor, "n k k"]:
        """Prior covariances of the points of each support."""
        where = rows[..., : self.prior.dimensions]
        parts = [
            self.prior.mixing[self.prior.kernel_of == q, task].square().sum() * kernel.within(where)
            for q, kernel in enumerate(self.prior.kernels)
        ]
        z = rows[..., self.prior.dimensions :]
        return sum(parts[1:], start=parts[0]) + FLAT + COEFFICIENT**2 * z @ z.mT

    def _covariance(self) -> Float[Tensor, "p p"]:
        K = self.prior.covariance(self.places, self.of_task, self.places, self.of_task)
        return K + FLAT * (self.of_task.unsqueeze(1) == self.of_task)

    def _fit(self, K: Tensor, weight: Tensor, a: Float[Tensor, " p"]) -> _Fit:
        f = K @ a
        each = weight * (self.prior.offset[self.of_task] + f).clamp(-40, 40).exp()
        total = each.sum(1).clamp(min=1e-300)
        log, one = total.log(), torch.ones_like(total)
        density, slope, information = (torch.zeros_like(total) for _ in range(3))
        for d, lik in enumerate(self.likelihoods):
            assert isinstance(lik, Counts)
            mine = self.task == d
            density = torch.where(mine, lik.log_prob(self.y, log, one), density)
            slope = torch.where(mine, lik.slopes(self.y, log, one)[0], slope)
            information = torch.where(mine, lik.slopes(total, log, one)[1], information)
        value = density.sum() - 0.5 * a @ f
        return _Fit(value, slope, information, each / total.unsqueeze(1))

    def _step(
        self, K: Tensor, weight: Tensor, a: Float[Tensor, " p"], at: _Fit | None = None
    ) -> Float[Tensor, " p"]:
        """Of Gauss and Newton: the Hessian of a sum of exponentials need not be definite."""
        at = at or self._fit(K, weight, a)
        H = at.information.sqrt().unsqueeze(1) * at.share
        r = H.T @ (H @ (K @ a)) + at.share.T @ at.slope
        KH = K @ H.T
        lower = torch.linalg.cholesky(_plus_one(H @ KH))
        return r - H.T @ torch.cholesky_solve((KH.T @ r).unsqueeze(1), lower)[:, 0] - a

    @torch.no_grad()
    def _mode(
        self, K: Tensor, weight: Tensor, start: Float[Tensor, " p"] | None = None
    ) -> Float[Tensor, " p"]:
        """K^-1 of f at the mode, less its constant."""
        a = K.new_zeros(len(K)) if start is None else start
        at = self._fit(K, weight, a)
        for _ in range(STEPS):
            step, size = self._step(K, weight, a, at), 1.0
            for _ in range(HALVINGS):
                new = self._fit(K, weight, a + size * step)
                if float(new.value) >= float(at.value):
                    break
                size /= 2
            gained = float(new.value - at.value)
            if gained > 0:
                a, at = a + size * step, new
            if not gained >= SETTLED:
                break
        return a

    @torch.no_grad()
    def _posterior(self) -> _Posterior:
        K = self._covariance()
        a = self._mode(K, self.weight)
        at = self._fit(K, self.weight, a)
        H = at.information.sqrt().unsqueeze(1) * at.share
        KH = K @ H.T
        factor = torch.linalg.cholesky(_plus_one(H @ KH))
        lower = torch.linalg.solve_triangular(factor, KH.T, upper=False)
        variance = (K.diagonal() - lower.square().sum(0)).clamp(min=0)
        moved = self.weight * (variance.clamp(max=MOST_MOVED) / 2).exp()
        return _Posterior(self._mode(K, moved, a), H, factor)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Inside, the posterior is found once; parameters stay as they are."""
        before = self._known
        self._known = before or self._posterior()
        try:
            yield
        finally:
            self._known = before

    def _points_each(self, supports: Float[Tensor, "n c"]) -> int:
        return points_each(self.prior.split(supports)[0], self.prior.dimensions)


def _plus_one(A: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    return A + torch.eye(len(A), dtype=A.dtype, device=A.device)


def fits(rows: int, latents: int) -> bool:
    """Whether so many supports and points are quick: a step costs points² times supports."""
    return math.prod((latents, latents, rows)) <= MOST_WORK
