"""What a GP of several tasks over supports begins with and answers, whatever its inference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from gpytorch.models import GP
from jaxtyping import Float
from torch import Tensor, nn

from scant.errors import BadInput
from scant.models.mtgpa.initialization import signs
from scant.models.mtgpa.likelihoods import Likelihood, Moments, MTGPAPrediction
from scant.models.mtgpa.mixture import Mixture
from scant.models.mtgpa.prior import Data, Prior

CHUNK = 4096  # rows predicted at once


class PredictiveCheck(NamedTuple):
    """The aggregate check: observed supports beside what the posterior says of them.

    `error` is (y - mean) / sqrt(variance + noise): near N(0, 1) where the posterior average over
    each observed support returns the observation within its error.
    """

    prediction: MTGPAPrediction
    error: Float[Tensor, " n"]

    def within(self, deviations: float = 1.96) -> float:
        """Share of observations that many predictive standard deviations from the mean, or less."""
        return self.error.abs().le(deviations).double().mean().item()


class TaskGP(GP):
    """A subclass knows the posterior of a task's functions at supports: `moments`.

    Args:
        likelihoods: Of each task; shared, not copied.
        prior: Of as many functions as the likelihoods have; shared as well.

    Raises:
        BadInput: There is no task.
    """

    likelihoods: Sequence[Likelihood]
    prior: Any  # a `Prior`

    def __init__(self, likelihoods: Iterable[Likelihood], prior: Prior) -> None:
        super().__init__()
        self.likelihoods = nn.ModuleList(likelihoods)  # type: ignore[assignment]
        if not len(self.likelihoods):
            raise BadInput("There is no task; give each task a likelihood.")
        ends = list(accumulate((lik.functions for lik in self.likelihoods), initial=0))
        self.functions = [list(range(*between)) for between in pairwise(ends)]  # of each task
        self.prior = prior

    def start(
        self,
        data: Data,
        lengthscale: Float[Tensor, " d"],
        noise: float,
        generator: torch.Generator,
        offsets: bool = True,
    ) -> None:
        """Start values of prior and likelihoods, from the data (see `MTGPA.build`)."""
        data = data._replace(supports=self.prior.split(data.supports)[0])
        starts = []
        for d, lik in enumerate(self.likelihoods):
            own = data.of_task(d)
            lik.check(own.y, d)
            starts.append(lik.start(own.y, own.exposures(), noise))
        offset, scale = torch.cat(starts, dim=1)
        first = [own[0] for own in self.functions]
        scale[first] *= signs(data, self.prior.dimensions, len(self.likelihoods))
        self.prior.start(offset if offsets else 0 * offset, scale, lengthscale, generator)
        self.prior.offset.requires_grad_(offsets)

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        """Posterior of a task's functions at supports."""
        raise NotImplementedError

    @torch.no_grad()
    def log_rates(self, supports: Float[Tensor, "n c"], task: int) -> list[tuple[float, Moments]]:
        """`moments` of supports of any number, with the weights of what they are a mixture of."""
        if not len(supports):
            return []
        parts = self._in_chunks(lambda rows: self.moments(supports[rows], task), supports)
        return [(1.0, Moments(*(torch.cat(column, dim=-1) for column in zip(*parts))))]

    @torch.no_grad()
    def predict(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> MTGPAPrediction:
        """What a task is to observe at supports of any form, whether or not it has data there.

        Args:
            supports: Rows of `scant.kernels.box_average.support`; for a Gaussian task the mean and
                variance are of the function's average over each.
            task: Which.
            exposure: Of counts, and of a `gaussian_rate` (1 by default).
            known: Variance of known noise that observations of a Gaussian task are to have, beside
                what is learned (0 by default).
        """
        lik = self.likelihoods[task]
        if not len(supports):
            return MTGPAPrediction(*supports.new_zeros(3, 0))
        if exposure is None:
            exposure = supports.new_ones(len(supports))
        parts = self._in_chunks(
            lambda rows: lik.predict(self.moments(supports[rows], task), exposure[rows]),
            supports,
        )
        noise = self._noise(task, known)
        told = MTGPAPrediction(*(torch.cat(columns) for columns in zip(*parts)))
        return told if noise is None else told._replace(noise=told.noise + noise)

    def mixture(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Mixture:
        """The same as a mixture of Gaussians; here of one, with the moments of `predict`."""
        return Mixture.of_one(self.predict(supports, task, exposure, known))

    @torch.no_grad()
    def quantiles(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        p: Float[Tensor, " k"],
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Float[Tensor, "k n"]:
        """Of a new observation at supports, in the units of y (see `Likelihood.quantiles`)."""
        lik = self.likelihoods[task]
        given = supports.new_ones(len(supports)) if exposure is None else exposure
        noise = self._noise(task, known)
        parts = self._in_chunks(
            lambda i: lik.quantiles(_with(self.moments(supports[i], task), noise, i), given[i], p),
            supports,
        )
        return torch.cat([supports.new_zeros(len(p), 0), *parts], dim=1)

    @torch.no_grad()
    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        """Log density (or probability) of observations, given those trained on; in nats a row."""
        total = torch.zeros_like(data.y)
        for d, lik in enumerate(self.likelihoods):
            rows = (data.task == d).nonzero().squeeze(1)
            if not len(rows):
                continue
            own = data.at(rows)
            noise = self._noise(d, own.known)
            parts = self._in_chunks(
                lambda i, own=own, lik=lik, d=d, noise=noise: lik.log_predictive(
                    own.y[i], _with(self.moments(own.supports[i], d), noise, i), own.exposures()[i]
                ),
                own.supports,
            )
            total[rows] = torch.cat([*parts, total[:0]])
        return total

    def _noise(self, task: int, known: Tensor | None) -> Tensor | None:
        """Known noise, of a task that may have some."""
        return known if self.likelihoods[task].errors else None

    def _in_chunks(self, of_rows: Callable, supports: Float[Tensor, "n c"]) -> list:
        """Values chunk by chunk of supports: the pieces that these are made of count as rows do."""
        n, step = len(supports), max(1, CHUNK // self._points_each(supports))
        with self._held():
            return [of_rows(slice(i, min(i + step, n))) for i in range(0, n, step)]

    def _points_each(self, supports: Float[Tensor, "n c"]) -> int:
        """Points or boxes that a support is looked at by."""
        columns = supports.shape[1] - self.prior.covariates
        return max(1, columns // (2 * self.prior.dimensions + 1))

    @torch.no_grad()
    def aggregate_check(self, data: Data) -> PredictiveCheck:
        """Does the posterior average over each observed support return the observation?"""
        columns = torch.zeros(3, len(data.y), dtype=data.y.dtype, device=data.y.device)
        for d in range(len(self.likelihoods)):
            rows = (data.task == d).nonzero().squeeze(1)
            if len(rows):
                own = data.at(rows)
                columns[:, rows] = torch.stack(
                    self.predict(own.supports, d, own.exposures(), own.known)
                )
        prediction = MTGPAPrediction(*columns)
        deviation = (prediction.variance + prediction.noise).sqrt()
        return PredictiveCheck(prediction, (data.y - prediction.mean) / deviation)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Inside, what the posterior rests on is factorized once; parameters stay as they are."""
        raise NotImplementedError


def _with(q: Moments, known: Tensor | None, rows: slice) -> Moments:
    """As if known noise were the function's: of new observations it is the same."""
    if known is None:
        return q
    covariance = q.covariance.clone()
    covariance[0, 0] += known[rows]
    return Moments(q.mean, covariance)
