"""Exact Gaussian-process regression on outputs measured in replicas.

    y = f(x, output, replica) + noise,    f ~ GP(0, k)

The models (`scant.models.replicated.hgp`, `scant.models.replicated.baselines`) differ in k, and in
whether outputs are regressed jointly or separately with their own hyperparameters. Computations are
batched over groups: one group of all rows, or one per output. Groups are padded to equal size with
rows of variance 1, zero covariance and value 0, which contribute nothing to determinants and
squares. Rows that the kernel cannot distinguish (replicas at the same x, for a kernel without
replicas) are averaged first, which only reduces the cost.
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

MIN_NOISE = 1e-4  # minimum noise variance, for values with unit variance, against overfitting
CHUNK = 4096  # rows per block of a prediction
NOISES = ("shared", "each output")


class Packed(NamedTuple):
    """Indices of rows in a batch of groups, padded to the size of the largest."""

    at: Int[Tensor, "b m"]  # row index; 0 where padded
    real: Bool[Tensor, "b m"]  # not padded


class Merged(NamedTuple):
    """Distinct rows for a kernel, each the mean of `times` rows of the data."""

    output: Int[Tensor, " m"]
    replica: Int[Tensor, " m"]
    x: Float[Tensor, " m"]
    y: Float[Tensor, " m"]
    times: Float[Tensor, " m"]
    squares: Float[Tensor, " m"]  # sum of squared deviations from the mean


def merge(data: Data, outputs: bool, replicas: bool) -> Merged:
    """Average rows with equal x and, if requested, equal output and replica."""
    labels = (data.output * outputs, data.replica * replicas)
    keys = torch.stack([*(label.to(data.x) for label in labels), data.x], dim=1)
    keys, index, count = keys.unique(dim=0, return_inverse=True, return_counts=True)
    y = torch.zeros_like(keys[:, 0]).index_add(0, index, data.y) / count
    squares = torch.zeros_like(y).index_add(0, index, (data.y - y[index]).square())
    return Merged(keys[:, 0].long(), keys[:, 1].long(), keys[:, 2], y, count.to(y), squares)


def pack(group: Int[Tensor, " n"], count: int) -> Packed:
    """Indices of the rows of each of `count` groups, in order."""
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
    """Exact GP over (x, output, replica), conditioned on its data.

    In GPyTorch's interface, with rows (output, replica, x) and `NEW` for a new replica:

        loss = -model.elbo()                       # -ln p(y) in nats
        f = model(rows)                            # a MultivariateNormal
        model.likelihood(f, rows)                  # distribution of y

    Unlike GPyTorch's `ExactGP` it supports one group of rows per output, and averages rows that the
    kernel cannot distinguish. On one group, `ExactGP` with the kernel of DHGP takes 1.3 times as
    long for the objective and its gradient with 200 rows, 1.75 times with 800 (CPU, one thread).

    Args:
        kernel: Kernel over x and `labels`; with separate outputs, a batch with one per output.
        data: Standardized data (`Scale`).
        labels: Columns of the kernel after x: "output", then "replica" or "sampling" (shared by
            all outputs).
        noise: "shared", or "each output" for separate noise variances; separately regressed
            outputs always have their own.
        together: True to regress all outputs jointly; by default if the kernel uses their labels.

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
        n_noise = 1 if self.together and noise == "shared" else self.outputs
        self.log_noise = nn.Parameter(data.x.new_full((n_noise,), 0.1).log())
        self.register_constraint("log_noise", LogPositive())
        self._condition(data)

    def _condition(self, data: Data) -> None:
        """Store the data with its merged and packed rows."""
        self.data = data
        outputs = not self.together or "output" in self.labels or len(self.log_noise) > 1
        self.merged = merge(data, outputs, bool({"replica", "sampling"} & {*self.labels}))
        self.packed = self._pack(self.merged.output)

    def on(self, data: Data) -> ReplicaGP:
        """The model conditioned on other data, with shared (not copied) hyperparameters."""
        other = copy(self)
        other._condition(data)
        return other

    def _pack(self, output: Int[Tensor, " n"]) -> Packed:
        if self.together:
            return pack(torch.zeros_like(output), 1)
        return pack(output, self.outputs)

    @property
    def noise(self) -> Float[Tensor, " d"]:
        """Noise variance of each output."""
        return (self.log_noise.exp() + MIN_NOISE).expand(self.outputs)

    @noise.setter
    def noise(self, value: Tensor | float) -> None:
        above = torch.as_tensor(value).to(self.log_noise) - MIN_NOISE
        self.initialize(log_noise=above.log().expand_as(self.log_noise))

    @property
    def likelihood(self) -> GaussianLikelihood:
        """Gaussian likelihood with the noise of each row's output: `likelihood(f, rows)`."""
        return given_noise(self.noise, column=0)

    def points(
        self, output: Int[Tensor, " n"], replica: Int[Tensor, " n"], x: Float[Tensor, " n"]
    ) -> Float[Tensor, "n c"]:
        """Inputs of the kernel: x and the label columns."""
        labels = {"output": output, "replica": replica}
        if "sampling" in self.labels:
            labels["sampling"] = self.data.sampling(output, replica)
        return torch.stack([x, *(labels[name].to(x) for name in self.labels)], dim=1)

    def observed(self) -> tuple[Float[Tensor, "b m c"], Float[Tensor, "b m"], Float[Tensor, "b m"]]:
        """Packed data: kernel inputs, values and noise variances."""
        rows, (at, real) = self.merged, self.packed
        points = self.points(rows.output, rows.replica, rows.x)[at]
        noise = self.noise[rows.output[at]] / rows.times[at]
        return points, rows.y[at] * real, torch.where(real, noise, torch.ones_like(noise))

    def _within(self) -> Float[Tensor, ""]:
        """Term of ln p(y) due to averaging rows, and the constant -n ln(2 pi) / 2."""
        rows = self.merged
        noise = self.noise[rows.output]
        terms = (rows.times - 1) * noise.log() + rows.times.log() + rows.squares / noise
        return -0.5 * (terms.sum() + len(self.data.y) * LOG_2PI)

    def _covariance(self) -> tuple[Float[Tensor, "b m m"], Float[Tensor, "b m"]]:
        """Covariance of the packed values, with noise, and the values."""
        points, y, noise = self.observed()
        real = self.packed.real
        K = self.kernel(points).to_dense() * (real.unsqueeze(1) & real.unsqueeze(2))
        return K + noise.diag_embed(), y  # padded rows have variance 1 (their noise)

    def _solve(self) -> Any:
        """Cholesky factor L of y's covariance, and L^-1 y."""
        K, y = self._covariance()
        return whitened(K, y.unsqueeze(-1))

    def elbo(self, data: Data | None = None) -> Float[Tensor, ""]:
        """ln p(y) (or a bound on it) plus registered log priors, in nats.

        Args:
            data: Data to use instead of the model's own.
        """
        model = self if data is None else self.on(data)
        return model.log_density() + log_hyperprior(self)

    def log_density(self) -> Float[Tensor, ""]:
        """ln p(y) of the model's data, in nats."""
        density: Tensor = LogDensity.apply(*self._covariance())
        return density + self._within()

    def forward(self, rows: Float[Tensor, "k 3"]) -> MultivariateNormal:
        """Posterior of f at rows (output, replica, x), with the full covariance.

        Raises:
            BadInput: An output or a replica does not exist.
        """
        output, replica, x = rows[:, 0].long(), rows[:, 1].long(), rows[:, 2]
        self.data.check(output, replica)
        packed = self._pack(output)
        points = self.points(output, replica, x)[packed.at]
        mean, explained, unexplained = self._factors(self._solve(), points)
        blocks = (
            self.kernel(points).to_dense() - explained.mT @ explained + unexplained.mT @ unexplained
        )
        group, column = packed.real.nonzero(as_tuple=True)
        order = packed.at[packed.real].argsort()
        group, column = group[order], column[order]
        same_group = group.unsqueeze(1) == group
        covariance = blocks[group.unsqueeze(1), column.unsqueeze(1), column] * same_group
        return MultivariateNormal(mean[group, column], covariance)

    @torch.no_grad()
    def predict(
        self, output: Int[Tensor, " k"], replica: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> ReplicatedPrediction:
        """Posterior of f; a replica without rows counts as new.

        Args:
            output: Output indices.
            replica: Replica indices within the outputs, or `NEW`.
            x: Standardized inputs.

        Raises:
            BadInput: An output or a replica does not exist.
        """
        self.data.check(output, replica)
        solution = self._solve()
        rows = zip(output.split(CHUNK), replica.split(CHUNK), x.split(CHUNK))
        parts = [self._posterior(solution, *part) for part in rows if len(part[0])]
        mean, variance = (torch.cat(columns) for columns in zip(*parts)) if parts else (x, x)
        return ReplicatedPrediction(mean, variance.clamp(min=0), self.noise[output])

    def _posterior(
        self, solution: Any, output: Tensor, replica: Tensor, x: Tensor
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        packed = self._pack(output)
        points = self.points(output, replica, x)[packed.at]
        mean, explained = self._project(solution, points)
        variance = self.kernel(points, diag=True) - explained
        order = packed.at[packed.real].argsort()
        return mean[packed.real][order], variance[packed.real][order]

    def _project(
        self, solution: Any, points: Float[Tensor, "b k c"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
        """Posterior mean of packed rows, and the reduction of their prior variance."""
        mean, explained, unexplained = self._factors(solution, points)
        return mean, explained.square().sum(1) - unexplained.square().sum(1)

    def _factors(
        self, solution: Any, points: Float[Tensor, "b k c"]
    ) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b g k"], Float[Tensor, "b l k"]]:
        """Posterior mean of packed rows, and G, U with G'G - U'U the reduction of covariance."""
        lower, whitened_y = solution
        K = self.kernel(self.observed()[0], points).to_dense() * self.packed.real.unsqueeze(-1)
        weights = torch.linalg.solve_triangular(lower, K, upper=False)
        return (weights * whitened_y).sum(1), weights, weights[:, :0]

    @torch.no_grad()
    def shared(
        self, output: Int[Tensor, " k"], x: Float[Tensor, " k"]
    ) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]] | None:
        """Mean and variance of the function shared by an output's replicas.

        Its variance is that of a new replica less the replica-level prior variance. None for models
        without a shared function.
        """
        mean, variance, _ = self.predict(output, torch.full_like(output, NEW), x)
        return mean, (variance - self.levels(output)[:, 1]).clamp(min=0)

    @torch.no_grad()
    def levels(self, output: Int[Tensor, " k"]) -> Float[Tensor, "k 3"]:
        """Prior variance components of outputs: shared by replicas, replica level, noise."""
        variances = (*self._variances(), self.noise)
        return torch.stack([v.expand(self.outputs)[output] for v in variances], dim=1)

    def _variances(self) -> tuple[Float[Tensor, " _"], Float[Tensor, " _"]]:
        """Prior variance above and at the replica level, one for each output or for all."""
        *above, own = map(prior_variance, self.kernel.levels)
        return torch.stack(above).sum(0), own

    @torch.no_grad()
    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """Prior covariance of the outputs' curves at one x, here diagonal."""
        return self.levels(torch.arange(self.outputs)).narrow(1, 0, 2).sum(1).diag_embed()

    def latent(self) -> None:
        """Latent positions of the outputs; None for models without a latent space."""
