"""An exact GP whose predictions count that its hyperparameters are not known.

Their posterior is approached as INLA does (Rue, Martino and Chopin 2009, section 6.5): Laplace's
approximation at the optimum gives principal axes; along each, to both sides, lies a node where the
log posterior has fallen as that of a standard Gaussian has at `REACH` sqrt(m), m being the number
of axes, so that a skewed posterior has its two sides stretched differently. Up to four axes there
are nodes at the corners between them as well: INLA's central composite design. With more axes the
corners would be too many; without them the rule is exact for polynomials of degree three all the
same. Nodes and optimum are weighted so that a Gaussian's mass and variances come out right, times
the ratio of the true posterior to the stretched Gaussian. Predictions are mixtures over the nodes.

    model.fit()
    over_nodes = NodesGP.around(model)     # an `ExactGP` of the same state and some more
    over_nodes.predict(supports, task=0)   # and so on, as of any `TaskGP`
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
MOST_AXES, FEWER_AXES = 12, 5
MOST_WITH_ALL = 300  # rows; of more, nodes cost more and hyperparameters are better known
KEPT = 6_000_000  # numbers of Cholesky factors that are kept between predictions
MOST_CORNERED = 4  # axes, up to which the design has corners: 16 of them
# Deviation of a Gaussian hyperprior about the optimum, of logarithms and of what is standardized:
# a hyperparameter that the data say nothing about would otherwise go anywhere.
WIDE = 2.0
STEP = 1e-4  # of finite differences of the gradient
SIDES = (0.25, 4.0)  # bounds of the stretch of an axis to one side
TURNS = 4  # of the search for it
MOST_RATIO = 3.0  # by which a node's weight may differ from the Gaussian's, either way
FAILED = 1e10  # fall of the log posterior where a covariance has no factor


class NodesGP(ExactGP):
    """An `ExactGP` whose predictions are mixtures over nodes of its hyperparameters.

    Its parameters are those of the optimum, about which `forward` and `elbo` tell.

    Args:
        model: Trained; likelihoods and prior are shared.
        points: All parameters at each node, the optimum first.
        weights: Of the nodes; they add up to one.
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
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}  # factors of nodes
        self._last: tuple[_Asked, Mixture] | None = None  # the last question and its answer

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._kept.clear()
        self._last = None
        return super().load_state_dict(*args, **kwargs)

    @classmethod
    def around(cls, model: ExactGP) -> NodesGP:
        """With nodes about a model's optimum; of parameters that are learned only."""
        posterior = _Posterior(model)
        points, weights = posterior.nodes()
        whole = points.new_empty(len(points), sum(p.numel() for p in model.parameters()))
        for row, point in zip(whole, points):
            with posterior.at(point):
                row.copy_(torch.cat([p.detach().ravel() for p in model.parameters()]))
        return cls(model, whole, weights)

    def sentence(self) -> str:
        """What is averaged."""
        return averaged_over(self.points)

    @contextmanager
    def _at(self, node: int) -> Iterator[None]:
        """Inside, the parameters are those of a node; predictions there know its factor."""
        with at_point(list(self.parameters()), self.points[node]):
            if node not in self._kept and len(self.points) * len(self.y) ** 2 <= KEPT:
                with torch.no_grad():
                    self._kept[node] = self._factor()
            self._known = self._kept.get(node)
            try:
                yield
            finally:
                self._known = None

    @torch.no_grad()
    def mixture(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Mixture:
        """Of all nodes, what a task is to observe at supports.

        Moments, densities and quantiles of the same supports are often asked for in turn, so that
        the last answer is kept.
        """
        asked = _Asked(task, supports, exposure, known)
        if self._last and self._last[0].same(asked):
            return self._last[1]
        told = list[MTGPAPrediction]()
        for node in range(len(self.points)):
            with self._at(node):
                told.append(super().predict(supports, task, exposure, known))
        columns = [torch.stack(column) for column in zip(*told)]
        made = Mixture(self.weights[:, None].expand(-1, len(supports)), *columns)
        self._last = (asked.copy(), made)
        return made

    def predict(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> MTGPAPrediction:
        return self.mixture(supports, task, exposure, known).moments()

    def quantiles(
        self,
        supports: Float[Tensor, "n c"],
        task: int,
        p: Float[Tensor, " k"],
        exposure: Float[Tensor, " n"] | None = None,
        known: Float[Tensor, " n"] | None = None,
    ) -> Float[Tensor, "k n"]:
        return self.mixture(supports, task, exposure, known).quantiles(p)

    @torch.no_grad()
    def log_predictive(self, data: Data) -> Float[Tensor, " n"]:
        total = torch.zeros_like(data.y)
        for d in range(len(self.likelihoods)):
            rows = (data.task == d).nonzero().squeeze(1)
            if len(rows):
                own = data.at(rows)
                told = self.mixture(own.supports, d, own.exposures(), own.known)
                total[rows] = told.log_prob(own.y)
        return total

    @torch.no_grad()
    def left_out(self) -> Mixture:
        """What the other rows say of each.

        Without row i a node's weight is w_k / p(y_i | others, node k), as all rows gave w_k.
        """
        told = list[Mixture]()
        for node in range(len(self.points)):
            with self._at(node):
                told.append(super().left_out())
        log_density = torch.stack([one.log_prob(self.y) for one in told])
        weights = (self.weights.log()[:, None] - log_density).softmax(0)
        columns = (torch.cat(column) for column in zip(*told))
        return Mixture(*columns)._replace(weights=weights)


class _Asked(NamedTuple):
    """What a mixture was asked about."""

    task: int
    supports: Tensor
    exposure: Tensor | None
    known: Tensor | None

    def same(self, other: _Asked) -> bool:
        pairs = zip(self[1:], other[1:])
        alike = (
            a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs
        )
        return self.task == other.task and all(alike)

    def copy(self) -> _Asked:
        """That does not change with what was given."""
        own = (None if part is None else part.clone() for part in (self.exposure, self.known))
        return _Asked(self.task, self.supports.clone(), *own)


class _Posterior:
    """Of a model's learned parameters, in the space where they are learned."""

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
        away = (point - self.optimum) / WIDE
        return value - 0.5 * float(away.square().sum()) if math.isfinite(value) else -math.inf

    def _fall(self, point: Float[Tensor, " p"]) -> float:
        """Of the log posterior, from the optimum; may be below zero."""
        return min(self.highest - self._value(point), FAILED)

    def _gradient(self, point: Float[Tensor, " p"]) -> Float[Tensor, " p"]:
        with self.at(point), torch.enable_grad():
            parts = torch.autograd.grad(self.model.elbo(), self.parameters, allow_unused=True)
        zeros = (torch.zeros_like(p) for p in self.parameters)
        filled = [zero if part is None else part for part, zero in zip(parts, zeros)]
        return torch.cat([part.ravel() for part in filled])

    def axes(self) -> Float[Tensor, "m p"]:
        """Principal axes of the Laplace approximation, each as long as a deviation."""
        p = len(self.optimum)
        H = self.optimum.new_empty(p, p)
        for i, unit in enumerate(torch.eye(p).to(self.optimum)):
            ends = [self._gradient(self.optimum + side * STEP * unit) for side in (1, -1)]
            H[i] = (ends[1] - ends[0]) / (2 * STEP)
        precision, directions = torch.linalg.eigh((H + H.T) / 2)
        precision = precision.clamp(min=0) + 1 / WIDE**2
        axes = directions.T / precision.sqrt()[:, None]
        most = MOST_AXES if len(self.model.y) <= MOST_WITH_ALL else FEWER_AXES
        if p <= most:
            return axes
        felt = torch.stack([self._felt(axis) for axis in axes])
        return axes[felt.argsort(descending=True)[:most]]

    @torch.no_grad()
    def _felt(self, axis: Float[Tensor, " p"]) -> Float[Tensor, ""]:
        """How far a deviation along an axis moves what is said of rows left out."""
        try:
            ends = []
            for side in (1, -1):
                with self.at(self.optimum + side * axis):
                    ends.append(left_out(self.model._covariance(), self.model._residual()))
        except (NanError, NotPSDError):
            return axis.new_tensor(math.inf)
        (a, v), (b, w) = ends
        return ((a - b).square() / (v + w) + 0.5 * (v / w).log().square()).sum()

    def nodes(self) -> tuple[Float[Tensor, "k p"], Float[Tensor, " k"]]:
        """Learned parameters at the nodes, the optimum first, and the nodes' weights."""
        axes = self.axes()
        m = len(axes)
        reach = REACH * math.sqrt(m)
        stretches = [[self._side(sign * axis, reach) for sign in (1, -1)] for axis in axes]
        design = [*torch.eye(m), *-torch.eye(m)]
        if m <= MOST_CORNERED:
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
            ratio = math.exp(min(max(0.5 * reach**2 - fall, -9.0), 9.0))
            ratio = min(max(ratio, 1 / MOST_RATIO), MOST_RATIO) if fall < FAILED else 0.0
            points.append(point)
            weights.append(volume * ratio / len(design))
        found = self.optimum.new_tensor(weights)
        return torch.stack(points), found / found.sum()

    def _side(self, axis: Float[Tensor, " p"], reach: float) -> float:
        """By what a half axis is to be stretched so that the fall at its end is a Gaussian's."""
        (low, high), stretch, wanted = SIDES, 1.0, 0.5 * reach**2
        for _ in range(TURNS):
            fall = self._fall(self.optimum + stretch * reach * axis)
            if abs(fall - wanted) < 0.1 * wanted:
                break
            low, high = (low, stretch) if fall > wanted else (stretch, high)
            guess = stretch * math.sqrt(wanted / fall) if fall > 0 else math.inf
            stretch = guess if low < guess < high else math.sqrt(low * high)
        return stretch
