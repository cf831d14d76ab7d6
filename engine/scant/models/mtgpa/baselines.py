"""Baselines of MTGPA with exact inference (Yousefi 2021, Fig. 5.4).

- `kriging`: area-to-point kriging, separately for each task (Kyriakidis 2004).
- `single`: separate tasks with supports replaced by their centroids.
- `icm`: the intrinsic coregionalization model on centroids (Bonilla et al. 2008).
- `dependent`: dependent Gaussian processes on centroids (Boyle and Frean 2005).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.kmeans import square_distances
from scant.kernels.box_average.support import centroids
from scant.kernels.constraints import LogPositive
from scant.models.mtgpa.exact import ExactGP
from scant.models.mtgpa.initialization import extent
from scant.models.mtgpa.likelihoods import MIN_NOISE, Gaussian
from scant.models.mtgpa.prior import Coregionalization, Data, Prior

BASELINES = ("kriging", "single", "icm", "dependent")
START = 0.15  # initial lengthscale, as a share of the data's extent


class DependentGP(Prior):
    """Dependent GPs: outputs that smooth a common white noise, plus independent EQ terms.

    With Gaussian smoothing kernels of lengthscale l_d / sqrt 2, scaled such that the shared part of
    an output has variance v_d^2,

        cov(f_d(x), f_d'(x')) = v_d v_d' prod_i sqrt(2 l_di l_d'i / (l_di^2 + l_d'i^2))
                                exp(-(x_i - x'_i)^2 / (l_di^2 + l_d'i^2)),

    plus an independent EQ term for d = d' (Boyle and Frean 2005, section 3).
    """

    def __init__(self, dimensions: int, tasks: int) -> None:
        super().__init__()
        zeros, zeros_2d = torch.zeros(tasks).double(), torch.zeros(tasks, dimensions).double()
        for name, start in {
            "offset": zeros, "shared": zeros + 1, "log_own": zeros, "log_lengthscale": zeros_2d,
            "log_own_lengthscale": zeros_2d,
        }.items():  # fmt: skip
            self.register_parameter(name, nn.Parameter(start.clone()))
            if name.startswith("log_"):
                self.register_constraint(name, LogPositive())

    @property
    def lengthscale(self) -> Float[Tensor, "t d"]:
        """Lengthscales of the shared part of each output."""
        return self.log_lengthscale.exp()

    def mean(self, x: Float[Tensor, "n d"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.offset[j]

    def variance(self, x: Float[Tensor, "n d"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.shared[j].square() + (2 * self.log_own[j]).exp()

    def covariance(
        self,
        x1: Float[Tensor, "n d"],
        j1: Int[Tensor, " n"],
        x2: Float[Tensor, "m d"],
        j2: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]:
        tasks = range(len(self.offset))
        rows, columns = ([(j == d).nonzero().squeeze(1) for d in tasks] for j in (j1, j2))
        strips = [
            torch.cat([self._block(x1[rows[d]], d, x2[columns[e]], e) for e in tasks], dim=1)
            for d in tasks
        ]
        order = [torch.argsort(torch.cat(index)) for index in (rows, columns)]
        return torch.cat(strips).index_select(0, order[0]).index_select(1, order[1])

    def _block(
        self, x1: Float[Tensor, "n d"], d: int, x2: Float[Tensor, "m d"], e: int
    ) -> Float[Tensor, "n m"]:
        """Covariances between output d and output e."""
        a, b = self.lengthscale[d], self.lengthscale[e]
        squares = a.square() + b.square()
        variance = self.shared[d] * self.shared[e] * (2 * a * b / squares).prod().sqrt()
        K = variance * torch.exp(-square_distances(x1 / squares.sqrt(), x2 / squares.sqrt()))
        if d != e:
            return K
        lengthscale = self.log_own_lengthscale[d].exp()
        distances = square_distances(x1 / lengthscale, x2 / lengthscale)
        return K + torch.exp(2 * self.log_own[d] - 0.5 * distances)


class CentroidGP(Prior):
    """Prior over points, evaluated at the centroids of supports."""

    prior: Prior

    def __init__(self, prior: Prior, dimensions: int) -> None:
        super().__init__()
        self.prior, self.dimensions = prior, dimensions

    def mean(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.prior.mean(centroids(x, self.dimensions), j)

    def variance(self, x: Float[Tensor, "n c"], j: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.prior.variance(centroids(x, self.dimensions), j)

    def covariance(
        self,
        x1: Float[Tensor, "n c1"],
        j1: Int[Tensor, " n"],
        x2: Float[Tensor, "m c2"],
        j2: Int[Tensor, " m"],
    ) -> Float[Tensor, "n m"]:
        points = [centroids(x, self.dimensions) for x in (x1, x2)]
        return self.prior.covariance(points[0], j1, points[1], j2)


def baseline(
    name: str,
    data: Data,
    dimensions: int,
    generator: torch.Generator,
    lengthscale: Float[Tensor, " d"] | None = None,
    fixed_lengthscale: bool = False,
) -> ExactGP:
    """Build an initialized baseline; `fit` trains it.

    Args:
        name: One of `BASELINES`. `kriging` and `single` take a single task, numbered 0 (`alone`).
        data: Observations with roughly standardized y.
        dimensions: Dimension of the input space.
        generator: A CPU generator.
        lengthscale: Initial lengthscales, in the units of the inputs.
        fixed_lengthscale: True to keep the initial lengthscales.

    Raises:
        BadInput: The name is unknown, or there are several tasks for a single-task baseline.
    """
    if name not in BASELINES:
        raise BadInput(f"Baseline {name!r} is unknown; use one of {BASELINES}.")
    tasks = int(data.task.max()) + 1
    if name in ("kriging", "single") and tasks > 1:
        raise BadInput(f"Baseline {name!r} is of one task; got {tasks}. Give it one at a time.")
    start = _start(data, dimensions) if lengthscale is None else lengthscale
    values = [data.of_task(d).y for d in range(tasks)]
    means = torch.stack([y.mean() for y in values])
    scales = torch.stack([y.std(correction=0) for y in values]).clamp(min=1e-2)
    if name == "dependent":
        prior: Prior = _dependent(dimensions, means, scales, start, fixed_lengthscale)
    else:
        prior = mixture = Coregionalization(dimensions, tasks, (tasks if name == "icm" else 1,))
        mixture.start(means, scales, start, generator)
        mixture.learn_lengthscales(not fixed_lengthscale)
    if name != "kriging":
        prior = CentroidGP(prior, dimensions)
    likelihoods = [Gaussian() for _ in range(tasks)]
    for lik, scale in zip(likelihoods, scales):
        above = (0.1 * scale.square() - MIN_NOISE).clamp(min=1e-12)
        lik.initialize(log_noise=above.log().to(lik.log_noise))
    return ExactGP(likelihoods, prior, data).to(data.y.device)


def alone(data: Data, task: int) -> Data:
    """Rows of one task, renumbered as task 0."""
    own = data.of_task(task)
    return own._replace(task=torch.zeros_like(own.task))


def _start(data: Data, dimensions: int) -> Float[Tensor, " d"]:
    lower, upper = extent(data.supports, dimensions)
    return START * torch.where(upper > lower, upper - lower, torch.ones_like(lower))


def _dependent(
    dimensions: int, means: Tensor, scales: Tensor, lengthscale: Tensor, fixed: bool
) -> DependentGP:
    prior = DependentGP(dimensions, len(means))
    log_lengthscale = lengthscale.log().expand_as(prior.log_lengthscale)
    log_own = (0.3 * scales).log()
    prior.initialize(
        offset=means,
        shared=scales,
        log_own=log_own,
        log_lengthscale=log_lengthscale,
        log_own_lengthscale=log_lengthscale,
    )
    prior.log_lengthscale.requires_grad_(not fixed)
    prior.log_own_lengthscale.requires_grad_(not fixed)
    return prior
