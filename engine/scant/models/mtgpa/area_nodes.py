"""`AreaGP` whose predictions count that its hyperparameters are not known.

A few dozens of areas do not tell how far their rates go together, nor how much they vary. As areal
models do (INLA's grid strategy), predictions are averaged over a grid about the optimum: of the
lengthscale, of the deviations, and of how alike the tasks are, weighted by Laplace's evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from scant.models.mtgpa.areas import AreaGP, _Posterior
from scant.models.mtgpa.counts import Counts
from scant.models.mtgpa.likelihoods import Moments, MTGPAPrediction
from scant.models.mtgpa.mixture import Mixture
from scant.models.mtgpa.nodes import at_point, averaged_over
from scant.models.mtgpa.prior import Data

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the optimum
DEVIATIONS = (0.5, 0.7, 1.0, 1.4, 2.0)
LEAST = 0.002  # weight of a node that stays


class AreaNodes(AreaGP):
    """An `AreaGP` averaged over nodes of its hyperparameters.

    Args:
        model: Trained; likelihoods and prior are shared.
        points: All parameters at each node.
        weights: Of the nodes; they add up to one.
    """

    points: Float[Tensor, "k p"]
    weights: Float[Tensor, " k"]

    def __init__(
        self, model: AreaGP, points: Float[Tensor, "k p"], weights: Float[Tensor, " k"]
    ) -> None:
        data = Data(model.supports, model.y, model.task, model.exposure)
        super().__init__(model.likelihoods, model.prior, data)
        self.notes = model.notes
        self.register_buffer("points", points)
        self.register_buffer("weights", weights)
        self._kept: dict[int, _Posterior] = {}

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._kept.clear()
        return super().load_state_dict(*args, **kwargs)

    @classmethod
    @torch.no_grad()
    def around(cls, model: AreaGP) -> AreaNodes:
        """With nodes about a model's optimum."""
        parameters = list(model.parameters())
        points, values = list[Tensor](), list[float]()
        for point in _grid(model):
            value = -math.inf
            with at_point(parameters, point), suppress(torch.linalg.LinAlgError):
                value = float(model.elbo())
            points.append(point)
            values.append(value if math.isfinite(value) else -math.inf)
        weights = torch.tensor(values).to(points[0]).softmax(0)
        stay = weights >= LEAST
        return cls(model, torch.stack(points)[stay], weights[stay] / weights[stay].sum())

    def sentence(self) -> str:
        """What is averaged."""
        return averaged_over(self.points)

    @contextmanager
    def _at(self, node: int) -> Iterator[None]:
        with at_point(list(self.parameters()), self.points[node]):
            if node not in self._kept:
                self._kept[node] = self._posterior()
            self._known = self._kept[node]
            try:
                yield
            finally:
                self._known = None

    @torch.no_grad()
    def log_rates(self, supports: Float[Tensor, "n c"], task: int) -> list[tuple[float, Moments]]:
        told = list[tuple[float, Moments]]()
        for node, weight in enumerate(self.weights.tolist()):
            with self._at(node):
                told += [(weight, q) for _, q in super().log_rates(supports, task)]
        return told

    def predict(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> MTGPAPrediction:
        told = list[MTGPAPrediction]()
        for node in range(len(self.points)):
            with self._at(node):
                told.append(super().predict(supports, task, exposure, known))
        columns = [torch.stack(column) for column in zip(*told)]
        weights = self.weights[:, None].expand(-1, len(supports))
        return Mixture(weights, *columns).moments()

    @torch.no_grad()
    def quantiles(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        p: Float[Tensor, " k"],
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Float[Tensor, "k n"]:
        if not len(supports):
            return supports.new_zeros(len(p), 0)
        lik = self.likelihoods[task]
        assert isinstance(lik, Counts)
        given = supports.new_ones(len(supports)) if exposure is None else exposure
        parts = [q for _, q in self.log_rates(supports, task)]
        return lik.quantiles_of(parts, self.weights, given, p)

    @torch.no_grad()
    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        told = list[Tensor]()
        for node in range(len(self.points)):
            with self._at(node):
                told.append(super().log_predictive(data))
        return (torch.stack(told) + self.weights.log()[:, None]).logsumexp(0)


def _grid(model: AreaGP) -> Iterator[Float[Tensor, " p"]]:
    """All parameters of a model at each node of the grid; what is fixed stays."""
    named = dict(model.named_parameters())
    learned = any(n.endswith("raw_lengthscale") and p.requires_grad for n, p in named.items())
    for length, deviation, mixing in product(
        LENGTHS if learned else (1.0,), DEVIATIONS, _mixings(model)
    ):
        made = []
        for name, p in named.items():
            if name == "prior.mixing":
                made.append(deviation * mixing)
            elif name.endswith("raw_lengthscale"):
                own = p.detach().clone()  # the logarithm; of a map's dimensions the first
                own[..., 0] += math.log(length)
                made.append(own)
            else:
                made.append(p.detach().clone())
        yield torch.cat([value.ravel() for value in made])


def _mixings(model: AreaGP) -> list[Float[Tensor, "r j"]]:
    """The mixing at the optimum, and with tasks halfway to independent and to proportional."""
    prior = model.prior
    mixing = prior.mixing.detach().clone()
    r, tasks = mixing.shape
    if len(prior.kernels) > 1 or not 2 <= tasks <= r:
        return [mixing]
    B = mixing.T @ mixing + 1e-9 * torch.eye(tasks).to(mixing)
    spread = B.diagonal().sqrt()
    R = B / torch.outer(spread, spread)
    sign = torch.outer(*2 * [torch.where(R[0] < 0, -1.0, 1.0).to(R)])
    found = [mixing]
    for other in (torch.eye(tasks).to(R), sign):
        mixed = torch.outer(spread, spread) * (R + other) / 2
        own = torch.zeros_like(mixing)
        own[:tasks] = torch.linalg.cholesky(mixed + 1e-9 * torch.eye(tasks).to(R)).T
        found.append(own)
    return found
