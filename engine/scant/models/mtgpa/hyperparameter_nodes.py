"""Exact GP with predictions averaged over its hyperparameters.

The posterior of the hyperparameters is approximated as in INLA (Rue, Martino and Chopin 2009,
section 6.5). Laplace's approximation at the optimum gives principal axes. On both sides of each
axis there is a node where the log posterior has fallen as much as that of a standard Gaussian at
`REACH` sqrt(m), with m axes, so that the sides of a skewed posterior are stretched separately. With
up to four axes there are also nodes at the corners: INLA's central composite design. With more axes
corners are omitted; the rule is still exact for polynomials of degree three. Weights reproduce the
mass and variances of a Gaussian, times the ratio of the posterior to the stretched Gaussian.
Predictions are mixtures over the nodes.

    model.fit()
    over_nodes = NodesGP.around(model)     # an `ExactGP` with the model's likelihoods and prior
    over_nodes.predict(supports, task=0)   # and the other methods of `TaskGP`
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from scant.inference.exact import left_out
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.likelihoods import MTGPAPrediction
from scant.models.mtgpa.mixture import Mixture
from scant.models.mtgpa.nodes import at_point, averaged_over
from scant.models.mtgpa.prior import Data

REACH = 1.1  # f_0 of INLA's design
MAX_AXES, FEWER_AXES = 12, 5
MAX_ROWS = (
    300  # with more rows only FEWER_AXES: nodes cost more, hyperparameters are less uncertain
)
MAX_CACHED = 6_000_000  # elements of Cholesky factors cached between predictions
MAX_CORNER_AXES = 4  # most axes with corner nodes: 16 corners
# Deviation of a Gaussian hyperprior centered at the optimum, in the learned parameterization, which
# bounds hyperparameters that the data do not determine.
HYPERPRIOR_DEVIATION = 2.0
STEP = 1e-4  # step of finite differences of the gradient
SIDES = (0.25, 4.0)  # bounds of the stretch of a half axis
STRETCH_STEPS = 4  # evaluations of the search for it
MAX_RATIO = 3.0  # upper bound of the ratio between a node's weight and the Gaussian's
FAILED = 1e10  # decrease of the log posterior assigned to failed factorizations


class NodesGP(ExactGP):
    """`ExactGP` whose predictions are mixtures over nodes of its hyperparameters.

    `forward` and `elbo` use the parameters of the optimum.

    Args:
        model: Trained model, whose likelihoods and prior are shared.
        points: Vector of all parameters at each node, the optimum first.
        weights: Weight of each node, summing to one.
    """

    points: Float[Tensor, "k p"]
    weights: Float[Tensor, " k"]

    def __init__(
        self, model: ExactGP, points: Float[Tensor, "k p"], weights: Float[Tensor, " k"]
    ) -> None:
        super().__init__(model.likelihoods, model.prior, model.data)
        self.notes = model.notes
        self.register_buffer("points", points)
        self.register_buffer("weights", weights)
        self._factors: dict[int, tuple[Tensor, Tensor]] = {}  # factors by node
        self._last: tuple[_Query, Mixture] | None = None  # last query and its prediction

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._factors.clear()
        self._last = None
        return super().load_state_dict(*args, **kwargs)

    @classmethod
    def around(cls, model: ExactGP) -> NodesGP:
        """Place nodes around a model's optimum, varying the learned parameters."""
        posterior = _Posterior(model)
        points, weights = posterior.nodes()
        vectors = points.new_empty(len(points), sum(p.numel() for p in model.parameters()))
        for row, point in zip(vectors, points):
            with posterior.at(point):
                row.copy_(torch.cat([p.detach().ravel() for p in model.parameters()]))
        return cls(model, vectors, weights)

    def sentence(self) -> str:
        """Sentence on the averaging for reports."""
        return averaged_over(self.points)

    @contextmanager
    def _at(self, node: int) -> Iterator[None]:
        """Context with the parameters of a node and, if cached, its Cholesky factor."""
        with at_point(list(self.parameters()), self.points[node]):
            if node not in self._factors and len(self.points) * len(self.y) ** 2 <= MAX_CACHED:
                with torch.no_grad():
                    self._factors[node] = self._factor()
            self._cached_factor = self._factors.get(node)
            try:
                yield
            finally:
                self._cached_factor = None

    @torch.no_grad()
    def mixture(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Mixture:
        """Predictive distribution of a task at supports, as a mixture over the nodes.

        The last result is cached, since moments, densities and quantiles of the same supports are
        often requested in turn.
        """
        query = _Query(task, supports, exposure, known)
        if self._last and self._last[0].same(query):
            return self._last[1]
        predictions = list[MTGPAPrediction]()
        for node in range(len(self.points)):
            with self._at(node):
                predictions.append(super().predict(supports, task, exposure, known))
        columns = [torch.stack(column) for column in zip(*predictions)]
        mixture = Mixture(self.weights[:, None].expand(-1, len(supports)), *columns)
        self._last = (query.copy(), mixture)
        return mixture

    def predict(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> MTGPAPrediction:
        return self.mixture(supports, task, exposure, known).moments()

    @torch.no_grad()
    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        total = torch.zeros_like(data.y)
        for d in range(len(self.likelihoods)):
            rows = (data.task == d).nonzero().squeeze(1)
            if len(rows):
                own = data.at(rows)
                mixture = self.mixture(own.supports, d, own.exposures(), own.known)
                total[rows] = mixture.log_prob(own.y)
        return total

    @torch.no_grad()
    def left_out(self) -> Mixture:
        """Leave-one-out prediction of each row, as a mixture over the nodes.

        Without row i a node has a weight proportional to w_k / p(y_i | others, node k).
        """
        mixtures = list[Mixture]()
        for node in range(len(self.points)):
            with self._at(node):
                mixtures.append(super().left_out())
        log_density = torch.stack([mixture.log_prob(self.y) for mixture in mixtures])
        weights = (self.weights.log()[:, None] - log_density).softmax(0)
        columns = (torch.cat(column) for column in zip(*mixtures))
        return Mixture(*columns)._replace(weights=weights)


class _Query(NamedTuple):
    """Arguments of `NodesGP.mixture`, as the key of its cache."""

    task: int
    supports: Tensor
    exposure: Tensor | None
    known: Tensor | None

    def same(self, other: _Query) -> bool:
        pairs = zip(self[1:], other[1:])
        equal = (
            a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs
        )
        return self.task == other.task and all(equal)

    def copy(self) -> _Query:
        """Copy that is independent of the caller's tensors."""
        copies = (None if part is None else part.clone() for part in (self.exposure, self.known))
        return _Query(self.task, self.supports.clone(), *copies)


class _Posterior:
    """Posterior of a model's learned parameters, in their unconstrained parameterization."""

    def __init__(self, model: ExactGP) -> None:
        self.model = model
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimum = torch.cat([p.detach().ravel() for p in self.parameters])
        self.highest = self._value(self.optimum)

    @contextmanager
    def at(self, point: Float[Tensor, " p"]) -> Iterator[None]:
        with at_point(self.parameters, point):
            yield

    @torch.no_grad()
    def _value(self, point: Float[Tensor, " p"]) -> float:
        value = -math.inf
        with self.at(point), suppress(NanError, NotPSDError, torch.linalg.LinAlgError):
            value = float(self.model.elbo())
        deviation = (point - self.optimum) / HYPERPRIOR_DEVIATION
        return value - 0.5 * float(deviation.square().sum()) if math.isfinite(value) else -math.inf

    def _fall(self, point: Float[Tensor, " p"]) -> float:
        """Decrease of the log posterior from the optimum; may be negative."""
        return min(self.highest - self._value(point), FAILED)

    def _gradient(self, point: Float[Tensor, " p"]) -> Float[Tensor, " p"]:
        with self.at(point), torch.enable_grad():
            parts = torch.autograd.grad(self.model.elbo(), self.parameters, allow_unused=True)
        zeros = (torch.zeros_like(p) for p in self.parameters)
        filled = [zero if part is None else part for part, zero in zip(parts, zeros)]
        return torch.cat([part.ravel() for part in filled])

    def axes(self) -> Float[Tensor, "m p"]:
        """Principal axes of the Laplace approximation, scaled to one standard deviation."""
        p = len(self.optimum)
        H = self.optimum.new_empty(p, p)
        for i, unit in enumerate(torch.eye(p).to(self.optimum)):
            gradients = [self._gradient(self.optimum + side * STEP * unit) for side in (1, -1)]
            H[i] = (gradients[1] - gradients[0]) / (2 * STEP)
        precision, directions = torch.linalg.eigh((H + H.T) / 2)
        precision = precision.clamp(min=0) + 1 / HYPERPRIOR_DEVIATION**2
        axes = directions.T / precision.sqrt()[:, None]
        max_axes = MAX_AXES if len(self.model.y) <= MAX_ROWS else FEWER_AXES
        if p <= max_axes:
            return axes
        effect = torch.stack([self._effect(axis) for axis in axes])
        return axes[effect.argsort(descending=True)[:max_axes]]

    @torch.no_grad()
    def _effect(self, axis: Float[Tensor, " p"]) -> Float[Tensor, ""]:
        """Change of leave-one-out predictions from one end of an axis to the other."""
        try:
            predictions = []
            for side in (1, -1):
                with self.at(self.optimum + side * axis):
                    predictions.append(left_out(self.model._covariance(), self.model._residual()))
        except (NanError, NotPSDError):
            return axis.new_tensor(math.inf)
        (a, v), (b, w) = predictions
        return ((a - b).square() / (v + w) + 0.5 * (v / w).log().square()).sum()

    def nodes(self) -> tuple[Float[Tensor, "k p"], Float[Tensor, " k"]]:
        """Learned parameters at each node (the optimum first), and the nodes' weights."""
        axes = self.axes()
        m = len(axes)
        reach = REACH * math.sqrt(m)
        stretches = [[self._side(sign * axis, reach) for sign in (1, -1)] for axis in axes]
        design = [*torch.eye(m), *-torch.eye(m)]
        if m <= MAX_CORNER_AXES:
            design += [torch.tensor(c) / math.sqrt(m) for c in product((1.0, -1.0), repeat=m)]
        points, weights = [self.optimum], [REACH**2 - 1]
        for direction in design:
            point, volume = self.optimum.clone(), 1.0
            for share, axis, sides in zip(direction.tolist(), axes, stretches):
                if share:
                    stretch = sides[0 if share > 0 else 1]
                    point += share * reach * stretch * axis
                    volume *= 2 * stretch / sum(sides)
            fall = self._fall(point)
            ratio = min(math.exp(min(0.5 * reach**2 - fall, 9.0)), MAX_RATIO)
            points.append(point)
            weights.append(volume * ratio / len(design))
        normalized = self.optimum.new_tensor(weights)
        return torch.stack(points), normalized / normalized.sum()

    def _side(self, axis: Float[Tensor, " p"], reach: float) -> float:
        """Stretch of a half axis for which the decrease at its end equals that of a Gaussian."""
        (low, high), stretch, target = SIDES, 1.0, 0.5 * reach**2
        for _ in range(STRETCH_STEPS):
            fall = self._fall(self.optimum + stretch * reach * axis)
            if abs(fall - target) < 0.1 * target:
                break
            low, high = (low, stretch) if fall > target else (stretch, high)
            guess = stretch * math.sqrt(target / fall) if fall > 0 else math.inf
            stretch = guess if low < guess < high else math.sqrt(low * high)
        return stretch
