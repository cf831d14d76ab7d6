"""Exact Gaussian-process regression on outputs measured in replicas.

    y = f(x, output, replica) + noise,    f ~ GP(0, k)

The models differ in k alone, and in whether outputs are regressed together or each by itself, with
hyperparameters of its own: `scant.models.replicated.hgp`, `scant.models.replicated.baselines`.
What is computed
here goes over a batch of groups of rows: all rows are one group, or each output's are. Groups of
unequal size are padded; a padded row has variance 1, no covariance and the value 0, so that it adds
nothing to any determinant or square. Rows that the kernel cannot tell apart, such as replicas' at
one time where it knows no replicas, are averaged first, which changes nothing but the cost.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.models import GP
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from scant.errors import BadInput
from scant.inference.exact import LogDensity, whitened
from scant.inference.expectations import LOG_2PI
from scant.kernels.constraints import LogPositive
from scant.kernels.hierarchical import prior_variance
from scant.likelihoods.gaussian import given_noise
from scant.models.hyperprior import log_hyperprior
from scant.models.replicated.data import NEW, Data, ReplicatedPrediction

LEAST_NOISE = 1e-4  # variance, of values with variance 1: noise below it is over-fitting
CHUNK = 4096  # rows predicted at once
NOISES = ("shared", "each output")


class Packed(NamedTuple):
    """Rows in a batch of groups, each padded to the size of the largest."""

    at: Int[Tensor, "b m"]  # the row's number; 0 where padded
    real: Bool[Tensor, "b m"]  # not padded


class Merged(NamedTuple):
    """Rows that a kernel can tell apart; each the mean of so many (`times`) of the data."""

    output: Int[Tensor, " m"]
    replica: Int[Tensor, " m"]
    x: Float[Tensor, " m"]
    y: Float[Tensor, " m"]
    times: Float[Tensor, " m"]
    squares: Float[Tensor, " m"]  # sum of the squares about the mean


def merge(data: Data, outputs: bool, replicas: bool) -> Merged:
    """Rows of the same x and, where they are told apart, output and replica: averaged."""
    labels = (data.output * outputs, data.replica * replicas)
    keys = torch.stack([*(label.to(data.x) for label in labels), data.x], dim=1)
    keys, place, count = keys.unique(dim=0, return_inverse=True, return_counts=True)
    y = torch.zeros_like(keys[:, 0]).index_add(0, place, data.y) / count
    squares = torch.zeros_like(y).index_add(0, place, (data.y - y[place]).square())
    return Merged(keys[:, 0].long(), keys[:, 1].long(), keys[:, 2], y, count.to(y), squares)


def pack(group: Int[Tensor, " n"], count: int) -> Packed:
    """The rows of each of `count` groups, in their order."""
    order = torch.argsort(group, stable=True)
    sizes = torch.bincount(group, minlength=count)
    column = torch.arange(len(group), device=group.device)
    column = column - (sizes.cumsum(0) - sizes)[group[order]]
    at = torch.zeros(count, max(int(sizes.max()), 1), dtype=torch.int64, device=group.device)
    real = torch.zeros_like(at, dtype=torch.bool)
    at[group[order], column] = order
    real[group[order], column] = True
    return Packed(at, real)


class ReplicaGP(GP):
    """A GP over (x, output, replica), conditioned on the data it is given.

    By GPyTorch's interface, of rows (output, replica, x), replica `NEW` one that was never seen:

        loss = -model.elbo()                       # ln p(y) in nats
        f = model(rows)                            # a MultivariateNormal
        model.likelihood(f, rows)                  # of y

    It is no `ExactGP`, since that regresses one group of rows: here each output may be a group of
    its own, of rows averaged where the kernel cannot tell them apart. Where both can, `ExactGP`
    with the kernel of DHGP takes 1.3 times as long for an evaluation and its gradient of 200 rows,
    1.75 times of 800 (CPU time, one thread).

    Args:
        kernel: Of rows that `labels` says. Where each output is regressed by itself, it is a batch
            of one an output.
        data: Standardized (`Scale`).
        labels: Columns that the kernel takes after x: of "output" and then "replica" or
            "sampling", which is the same for all outputs.
        together: Regress all outputs together; by default where the kernel takes their labels.
        noise: One variance of noise for all outputs, or "each output" its own, as they have in any
            case where they are regressed by themselves.

    Raises:
        BadInput: `noise` is neither.
    """

    kernel: Any
    data: Data

    def __init__(
        self,
        kernel: nn.Module,
        data: Data,
        labels: tuple[str, ...],
        noise: str = "shared",
        together: bool | None = None,
    ) -> None:
        super().__init__()
        if noise not in NOISES:
            raise BadInput(f"Noise must be one of {', '.join(NOISES)}; got {noise!r}.")
        self.kernel, self.labels = kernel.to(data.x.device), labels
        self.together = "output" in labels if together is None else together
        self.outputs = data.n_outputs
        many = 1 if self.together and noise == "shared" else self.outputs
        self.log_noise = nn.Parameter(data.x.new_full((many,), 0.1).log())
        self.register_constraint("log_noise", LogPositive())
        self._condition(data)

    def _condition(self, data: Data) -> None:
        """Take up rows, and what is computed of them once."""
        self.data = data
        outputs = not self.together or "output" in self.labels or len(self.log_noise) > 1
        self.merged = merge(data, outputs, bool({"replica", "sampling"} & {*self.labels}))
        self.packed = self._pack(self.merged.output)

    def on(self, data: Data) -> ReplicaGP:
        """This model, its hyperparameters shared and not copied, conditioned on other rows."""
        other = copy(self)
        other._condition(data)
        return other

    def _pack(self, output: Int[Tensor, " n"]) -> Packed:
        if self.together:
            return pack(torch.zeros_like(output), 1)
        return pack(output, self.outputs)

    @property
    def noise(self) -> Float[Tensor, " d"]:
        """Variance of each output's observations about f."""
        return (self.log_noise.exp() + LEAST_NOISE).expand(self.outputs)

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        above = torch.as_tensor(value).to(self.log_noise) - LEAST_NOISE
        self.initialize(log_noise=above.log().expand_as(self.log_noise))

    @property
    def likelihood(self) -> GaussianLikelihood:
        """GPyTorch's, with the noise of the output that a row says: `likelihood(f, rows)`."""
        return given_noise(self.noise, column=0)

    def points(
        self, output: Int[Tensor, " n"], replica: Int[Tensor, " n"], x: Float[Tensor, " n"]
    ) -> Float[Tensor, "n c"]:
        """Rows as the kernel takes them."""
        labels = {"output": output, "replica": replica}
        if "sampling" in self.labels:
            labels["sampling"] = self.data.sampling(output, replica)
        return torch.stack([x, *(labels[name].to(x) for name in self.labels)], dim=1)

    def observed(self) -> tuple[Float[Tensor, "b m c"], Float[Tensor, "b m"], Float[Tensor, "b m"]]:
        """The data packed: rows as the kernel takes them, values, variances of their noise."""
        rows, (at, real) = self.merged, self.packed
        points = self.points(rows.output, rows.replica, rows.x)[at]
        noise = self.noise[rows.output[at]] / rows.times[at]
        return points, rows.y[at] * real, torch.where(real, noise, torch.ones_like(noise))

    def _within(self) -> Float[Tensor, ""]:
        """What averaging rows takes from ln p(y), and all of its constant."""
        rows = self.merged
        noise = self.noise[rows.output]
        each = (rows.times - 1) * noise.log() + rows.times.log() + rows.squares / noise
        return -0.5 * (each.sum() + len(self.data.y) * LOG_2PI)

    def _covariance(self) -> tuple[Float[Tensor, "b m m"], Float[Tensor, "b m"]]:
        """Of the packed values, noise and all; and the values."""
        points, y, noise = self.observed()
        real = self.packed.real
        K = self.kernel(points).to_dense() * (real.unsqueeze(1) & real.unsqueeze(2))
        return K + noise.diag_embed(), y  # padded rows keep a variance of 1: that of their noise

    def _known(self) -> Any:
        """The Cholesky factor of y's covariance, and that factor's inverse times y."""
        K, y = self._covariance()
        return whitened(K, y.unsqueeze(-1))

    def elbo(self, data: Data | None = None) -> Float[Tensor, ""]:
        """ln p(y) or a bound on it, and registered priors, in nats.

        Args:
            data: Other rows than it is conditioned on.
        """
        model = self if data is None else self.on(data)
        return model.log_density() + log_hyperprior(self)

    def log_density(self) -> Float[Tensor, ""]:
        """ln p(y) in nats, of the rows it is conditioned on."""
        density: Tensor = LogDensity.apply(*self._covariance())
        return density + self._within()

    def forward(self, rows: Float[Tensor, "k 3"]) -> MultivariateNormal:
        """Posterior of f, of rows (output, replica, x), with the covariance of all pairs.

        Raises:
            BadInput: An output or a replica that is not there.
        """
        output, replica, x = rows[:, 0].long(), rows[:, 1].long(), rows[:, 2]
        self.data.check(output, replica)
        asked = self._pack(output)
        points = self.points(output, replica, x)[asked.at]
        mean, gained, lost = self._factors(self._known(), points)
        blocks = self.kernel(points).to_dense() - gained.mT @ gained + lost.mT @ lost
        group, column = asked.real.nonzero(as_tuple=True)
        back = asked.at[asked.real].argsort()
        group, column = group[back], column[back]
        together = group.unsqueeze(1) == group
        covariance = blocks[group.unsqueeze(1), column.unsqueeze(1), column] * together
        return MultivariateNormal(mean[group, column], covariance)

    @torch.no_grad()
    def predict(
        self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> ReplicatedPrediction:
        """Posterior of f; a replica without rows is like a new one.

        Args:
            output: Index.
            replica: Index within the output's replicas, or `NEW`.
            x: Standardized.

        Raises:
            BadInput: An output or a replica that is not there.
        """
        self.data.check(output, replica)
        known = self._known()
        rows = zip(output.split(CHUNK), replica.split(CHUNK), x.split(CHUNK))
        parts = [self._posterior(known, *part) for part in rows if len(part[0])]
        mean, variance = (torch.cat(columns) for columns in zip(*parts)) if parts else (x, x)
        return ReplicatedPrediction(mean, variance.clamp(min=0), self.noise[output])

    def _posterior(
        self, known: Any, output: Tensor, replica: Tensor, x: Tensor
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        asked = self._pack(output)
        points = self.points(output, replica, x)[asked.at]
        mean, explained = self._project(known, points)
        variance = self.kernel(points, diag=True) - explained
        back = asked.at[asked.real].argsort()
        return mean[asked.real][back], variance[asked.real][back]

    def _project(
        self, known: Any, points: Float[Tensor, "b k c"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
        """Posterior mean of packed rows, and how much of their prior variance is explained."""
        mean, gained, lost = self._factors(known, points)
        return mean, gained.square().sum(1) - lost.square().sum(1)

    def _factors(
        self, known: Any, points: Float[Tensor, "b k c"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b g k"], Float[Tensor, "b l k"]]:
        """Posterior mean of packed rows, and G, L: of their covariance G'G - L'L is explained."""
        lower, half = known
        K = self.kernel(self.observed()[0], points).to_dense() * self.packed.real.unsqueeze(-1)
        weights = torch.linalg.solve_triangular(lower, K, upper=False)
        return (weights * half).sum(1), weights, weights[:, :0]

    @torch.no_grad()
    def shared(
        self, output: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]] | None:
        """Mean and variance of what an output's replicas share; None where they share nothing.

        It is a new replica, less what that replica would have of its own.
        """
        mean, variance, _ = self.predict(output, torch.full_like(output, NEW), x)
        return mean, (variance - self.levels(output)[:, 1]).clamp(min=0)

    @torch.no_grad()
    def levels(self, output: Int[Tensor, " k"]) -> Float[Tensor, "k 3"]:
        """Prior variance of outputs: shared by the replicas, of each replica, noise."""
        variances = (*self._variances(), self.noise)
        return torch.stack([v.expand(self.outputs)[output] for v in variances], dim=1)

    def _variances(self) -> tuple[Float[Tensor, " _"], Float[Tensor, " _"]]:
        """Of each output or of all: prior variance above the level of replicas, and at it."""
        *above, own = map(prior_variance, self.kernel.levels)
        return torch.stack(above).sum(0), own

    @torch.no_grad()
    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """Prior covariance of the outputs' curves at one x; here they have nothing in common."""
        return self.levels(torch.arange(self.outputs)).narrow(1, 0, 2).sum(1).diag_embed()

    def latent(self) -> None:
        """Places of the outputs in a latent space; here they have none."""
