"""`AreaGP` with predictions averaged over its hyperparameters.

A few dozen areas leave the lengthscale and the variance of the rates uncertain. Predictions are
averaged over a grid around the optimum (INLA's grid strategy) of the lengthscale, the standard
deviations and the correlation of tasks, weighted by Laplace's approximation of the evidence.
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
from scant.models.mtgpa.likelihoods import Moments, MTGPAPrediction
from scant.models.mtgpa.mixture import Mixture
from scant.models.mtgpa.nodes import at_point, averaged_over
from scant.models.mtgpa.prior import Data

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # factors of the optimal lengthscale
DEVIATIONS = (0.5, 0.7, 1.0, 1.4, 2.0)  # factors of the optimal mixing
MIN_WEIGHT = 0.002  # nodes with smaller weights are dropped


class AreaNodes(AreaGP):
    """`AreaGP` averaged over nodes of its hyperparameters.

    Args:
        model: Trained model, whose likelihoods and prior are shared.
        points: Vector of all parameters at each node.
        weights: Weight of each node, summing to one.
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
        self._posteriors: dict[int, _Posterior] = {}

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._posteriors.clear()
        return super().load_state_dict(*args, **kwargs)

    @classmethod
    @torch.no_grad()
    def around(cls, model: AreaGP) -> AreaNodes:
        """Place nodes on a grid around a model's optimum."""
        parameters = list(model.parameters())
        points, values = list[Tensor](), list[float]()
        for point in _grid(model):
            value = -math.inf
            with at_point(parameters, point), suppress(torch.linalg.LinAlgError):
                value = float(model.elbo())
            points.append(point)
            values.append(value if math.isfinite(value) else -math.inf)
        weights = torch.tensor(values).to(points[0]).softmax(0)
        used = weights >= MIN_WEIGHT
        return cls(model, torch.stack(points)[used], weights[used] / weights[used].sum())

    def sentence(self) -> str:
        """Sentence on the averaging for reports."""
        return averaged_over(self.points)

    @contextmanager
    def _at(self, node: int) -> Iterator[None]:
        with at_point(list(self.parameters()), self.points[node]):
            if node not in self._posteriors:
                self._posteriors[node] = self._posterior()
            self._current = self._posteriors[node]
            try:
                yield
            finally:
                self._current = None

    @torch.no_grad()
    def log_rates(self, supports: Float[Tensor, "n c"], task: int) -> list[tuple[float, Moments]]:
        components = list[tuple[float, Moments]]()
        for node, weight in enumerate(self.weights.tolist()):
            with self._at(node):
                components += [(weight, q) for _, q in super().log_rates(supports, task)]
        return components

    def predict(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> MTGPAPrediction:
        predictions = list[MTGPAPrediction]()
        for node in range(len(self.points)):
            with self._at(node):
                predictions.append(super().predict(supports, task, exposure, known))
        columns = [torch.stack(column) for column in zip(*predictions)]
        weights = self.weights[:, None].expand(-1, len(supports))
        return Mixture(weights, *columns).moments()

    @torch.no_grad()
    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        log_densities = list[Tensor]()
        for node in range(len(self.points)):
            with self._at(node):
                log_densities.append(super().log_predictive(data))
        return (torch.stack(log_densities) + self.weights.log()[:, None]).logsumexp(0)


def _grid(model: AreaGP) -> Iterator[Float[Tensor, " p"]]:
    """Vector of all parameters at each node of the grid; fixed parameters are unchanged."""
    named = dict(model.named_parameters())
    learned = any(n.endswith("raw_lengthscale") and p.requires_grad for n, p in named.items())
    for length, deviation, mixing in product(
        LENGTHS if learned else (1.0,), DEVIATIONS, _mixings(model)
    ):
        values = []
        for name, p in named.items():
            if name == "prior.mixing":
                values.append(deviation * mixing)
            elif name.endswith("raw_lengthscale"):
                log_lengthscale = p.detach().clone()  # only the first dimension, that of a map
                log_lengthscale[..., 0] += math.log(length)
                values.append(log_lengthscale)
            else:
                values.append(p.detach().clone())
        yield torch.cat([value.ravel() for value in values])


def _mixings(model: AreaGP) -> list[Float[Tensor, "r j"]]:
    """Optimal mixing, and mixings with tasks halfway to independence and to full correlation."""
    prior = model.prior
    mixing = prior.mixing.detach().clone()
    r, tasks = mixing.shape
    if len(prior.kernels) > 1 or not 2 <= tasks <= r:
        return [mixing]
    B = mixing.T @ mixing + 1e-9 * torch.eye(tasks).to(mixing)
    std = B.diagonal().sqrt()
    R = B / torch.outer(std, std)
    sign = torch.outer(*2 * [torch.where(R[0] < 0, -1.0, 1.0).to(R)])
    mixings = [mixing]
    for target in (torch.eye(tasks).to(R), sign):
        mixed = torch.outer(std, std) * (R + target) / 2
        candidate = torch.zeros_like(mixing)
        candidate[:tasks] = torch.linalg.cholesky(mixed + 1e-9 * torch.eye(tasks).to(R)).T
        mixings.append(candidate)
    return mixings
