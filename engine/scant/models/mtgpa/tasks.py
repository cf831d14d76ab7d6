"""Base class of multi-task GPs over supports: initialization and predictions."""

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

CHUNK = 4096  # rows per block of a prediction


class PredictiveCheck(NamedTuple):
    """Posterior predictive check at the observed supports.

    `error` is (y - mean) / sqrt(variance + noise), approximately N(0, 1) if the posterior averages
    over the observed supports reproduce the observations within their errors.
    """

    prediction: MTGPAPrediction
    error: Float[Tensor, " n"]

    def within(self, deviations: float = 1.96) -> float:
        """Share of observations within a number of predictive standard deviations of the mean."""
        return self.error.abs().le(deviations).double().mean().item()


class TaskGP(GP):
    """Base class of multi-task GPs over supports; subclasses implement `moments`.

    Args:
        likelihoods: Likelihood of each task; shared, not copied.
        prior: Prior of all functions of the likelihoods; shared, not copied.

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
        boundaries = list(accumulate((lik.functions for lik in self.likelihoods), initial=0))
        self.functions = [list(range(*bounds)) for bounds in pairwise(boundaries)]  # of each task
        self.prior = prior

    def start(
        self,
        data: Data,
        lengthscale: Float[Tensor, " d"],
        noise: float,
        generator: torch.Generator,
        offsets: bool = True,
    ) -> None:
        """Initialize prior and likelihoods from the data (see `MTGPA.build`)."""
        data = data._replace(supports=self.prior.split(data.supports)[0])
        starts, trends = [], []
        for d, lik in enumerate(self.likelihoods):
            own = data.of_task(d)
            lik.check(own.y, d)
            starts.append(lik.start(own.y, own.exposures(), noise))
            trends.append(lik.trends(own.y))
        offset, scale = torch.cat(starts, dim=1)
        for positions, sign in zip(self.functions, signs(data, self.prior.dimensions, trends)):
            scale[positions[: len(sign)]] *= sign
        self.prior.start(offset if offsets else 0 * offset, scale, lengthscale, generator)
        self.prior.offset.requires_grad_(offsets)

    def moments(self, supports: Float[Tensor, "n c"], task: int) -> Moments:
        """Posterior moments of a task's functions at supports."""
        raise NotImplementedError

    @torch.no_grad()
    def log_rates(self, supports: Float[Tensor, "n c"], task: int) -> list[tuple[float, Moments]]:
        """`moments` in blocks of supports, as weighted components of a mixture."""
        if not len(supports):
            return []
        parts = self._in_blocks(lambda rows: self.moments(supports[rows], task), supports)
        return [(1.0, Moments(*(torch.cat(column, dim=-1) for column in zip(*parts))))]

    @torch.no_grad()
    def predict(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> MTGPAPrediction:
        """Predict a task at supports of any form.

        Args:
            supports: Rows of `scant.kernels.box_average.support`. For a Gaussian task, mean and
                variance are those of the function's average over each support.
            task: Index of the task.
            exposure: Exposure of counts or of a `gaussian_rate`; default 1.
            known: Variance of fixed noise of new observations of a Gaussian task, in addition to
                the learned noise; default 0.
        """
        lik = self.likelihoods[task]
        if not len(supports):
            return MTGPAPrediction(*supports.new_zeros(3, 0))
        if exposure is None:
            exposure = supports.new_ones(len(supports))
        parts = self._in_blocks(
            lambda rows: lik.predict(self.moments(supports[rows], task), exposure[rows]),
            supports,
        )
        noise = self._noise(task, known)
        prediction = MTGPAPrediction(*(torch.cat(columns) for columns in zip(*parts)))
        return prediction if noise is None else prediction._replace(noise=prediction.noise + noise)

    def mixture(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Mixture:
        """Predictive distribution as a mixture; here one Gaussian with `predict`'s moments."""
        return Mixture.single(self.predict(supports, task, exposure, known))

    @torch.no_grad()
    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        """Log predictive density (or probability) of each observation, in nats."""
        total = torch.zeros_like(data.y)
        for d, lik in enumerate(self.likelihoods):
            rows = (data.task == d).nonzero().squeeze(1)
            if not len(rows):
                continue
            own = data.at(rows)
            noise = self._noise(d, own.known)
            parts = self._in_blocks(
                lambda i, own=own, lik=lik, d=d, noise=noise: lik.log_predictive(
                    own.y[i], _with(self.moments(own.supports[i], d), noise, i), own.exposures()[i]
                ),
                own.supports,
            )
            total[rows] = torch.cat([*parts, total[:0]])
        return total

    def _noise(self, task: int, known: Tensor | None) -> Tensor | None:
        """Fixed noise if the task's likelihood supports it, else None."""
        return known if self.likelihoods[task].errors else None

    def _in_blocks(self, function: Callable, supports: Float[Tensor, "n c"]) -> list:
        """Apply a function to blocks of supports, sized by their number of pieces."""
        n, step = len(supports), max(1, CHUNK // self._points_each(supports))
        with self._held():
            return [function(slice(i, min(i + step, n))) for i in range(0, n, step)]

    def _points_each(self, supports: Float[Tensor, "n c"]) -> int:
        """Number of points or boxes per support."""
        columns = supports.shape[1] - self.prior.covariates
        return max(1, columns // (2 * self.prior.dimensions + 1))

    @torch.no_grad()
    def aggregate_check(self, data: Data) -> PredictiveCheck:
        """Compare observations with the posterior predictions at their supports."""
        columns = torch.zeros(3, len(data.y), dtype=data.y.dtype, device=data.y.device)
        value = data.y.clone()
        for d, lik in enumerate(self.likelihoods):
            rows = (data.task == d).nonzero().squeeze(1)
            if len(rows):
                own = data.at(rows)
                columns[:, rows] = torch.stack(
                    self.predict(own.supports, d, own.exposures(), own.known)
                )
                value[rows] = lik.value(own.y)
        prediction = MTGPAPrediction(*columns)
        deviation = (prediction.variance + prediction.noise).sqrt()
        return PredictiveCheck(prediction, (value - prediction.mean) / deviation)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Context in which the posterior is factorized once; parameters must not change."""
        raise NotImplementedError


def _with(q: Moments, known: Tensor | None, rows: slice) -> Moments:
    """Add fixed noise to the function's variance, equivalent for new observations."""
    if known is None:
        return q
    covariance = q.covariance.clone()
    covariance[0, 0] += known[rows]
    return Moments(q.mean, covariance)
