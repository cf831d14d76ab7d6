"""Kernel protocol of MOGPs-AR, RBF-ARD (Ma 2023, 3.4), and an adapter for GPyTorch kernels."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import gpytorch
import torch
from gpytorch.kernels import RBFKernel
from jaxtyping import Float
from torch import Tensor

from scant.inference.kmeans import kmeans_centres
from scant.kernels.rbf import ard_covariances, eq

ROWS = 5_000  # rows used by k-means; more hardly change the centers
FLOOR = 1e-9  # columns with a smaller standard deviation count as constant


@runtime_checkable
class Rows(Protocol):
    """Inputs prepared by a kernel: a tensor, or images cut into patches."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Any: ...


@runtime_checkable
class Kernel(Protocol):
    """Batch of Q covariance functions: a GPyTorch kernel ("q n m") with additional methods."""

    def __call__(self, x1: Tensor, x2: Tensor | None = None) -> Any:
        """Lazy covariances, like any GPyTorch kernel."""

    def prepare(self, x: Float[Tensor, "n v"]) -> Any:
        """Preprocess inputs once, before training or prediction."""

    def start(self, rows: Any, m: int, generator: torch.Generator) -> Float[Tensor, "q m e"]:
        """m initial inducing points for each latent function."""

    def inducing(self, z: Float[Tensor, "q m e"]) -> Float[Tensor, "q m m"]:
        """Covariance of the inducing variables, without jitter."""

    def covariances(
        self, z: Float[Tensor, "q m e"], rows: Any
    ) -> tuple[Float[Tensor, "q m m"], Float[Tensor, "q m b"]]:
        """Covariances of the inducing variables, without jitter, and with the rows."""

    def diagonal(self, rows: Any) -> Float[Tensor, "q b"]:
        """Prior variances at the rows."""


class Columns(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """Adapter of any GPyTorch kernel over unprocessed columns to the `Kernel` protocol.

    Args:
        base: Kernel with batch shape Q and unit variance (the mixing matrix scales it).
    """

    def __init__(self, base: gpytorch.kernels.Kernel) -> None:
        super().__init__(batch_shape=base.batch_shape)
        self.base = base

    @property
    def n_latent(self) -> int:
        return self.batch_shape.numel()

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:
        return self.base.forward(x1, x2, diag=diag, **params)

    def prepare(self, x: Float[Tensor, "n v"]) -> Float[Tensor, "n v"]:
        """Return the columns unchanged."""
        return x

    def start(
        self, rows: Float[Tensor, "n v"], m: int, generator: torch.Generator
    ) -> Float[Tensor, "q m v"]:
        """k-means centers, with a different initialization for each latent function."""
        subset = torch.randperm(len(rows), generator=generator)[:ROWS].to(rows.device)
        return torch.stack(
            [kmeans_centres(rows[subset], m, generator) for _ in range(self.n_latent)]
        )

    def inducing(self, z: Float[Tensor, "q m v"]) -> Float[Tensor, "q m m"]:
        return self.base(z).to_dense()

    def covariances(
        self, z: Float[Tensor, "q m v"], rows: Float[Tensor, "b v"]
    ) -> tuple[Float[Tensor, "q m m"], Float[Tensor, "q m b"]]:
        return self.inducing(z), self.base(z, rows).to_dense()

    def diagonal(self, rows: Float[Tensor, "b v"]) -> Float[Tensor, "q b"]:
        return self.base(rows, diag=True).expand(self.n_latent, -1)


class Ranks(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """Batch kernel that repeats each of Q kernels for its R latent functions."""

    def __init__(self, base: Any, n_latent: int, rank: int) -> None:
        super().__init__()
        self.base, self.rank, self.count = base, rank, n_latent * rank

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size([self.count])

    @batch_shape.setter
    def batch_shape(self, shape: torch.Size) -> None:
        """Ignore the value set by GPyTorch's constructor."""

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:
        return self.base.forward(x1, x2, diag=diag, **params).repeat_interleave(self.rank, 0)


class RbfArd(Columns):
    """k_q(x, x') = exp(-1/2 sum_j (x_j - x'_j)^2 / l_qj^2), on standardized columns.

    The variance of 3.4 is fixed to 1, since the mixing matrix scales it. Lengthscales are in units
    of the typical distance between rows, so that 1 is a suitable initial value.

    Args:
        x: Training inputs, which set the scale.
        n_latent: Number Q of kernels.
        standardize: True scales each column by its standard deviation, False all by a common one.
    """

    shift: Tensor
    scale: Tensor
    unit: Tensor

    def __init__(self, x: Float[Tensor, "n v"], n_latent: int, standardize: bool = True) -> None:
        n_features = x.shape[1]
        rbf = RBFKernel(ard_num_dims=n_features, batch_shape=torch.Size([n_latent])).to(x)
        rbf.lengthscale = torch.ones_like(rbf.lengthscale)
        gpytorch.kernels.Kernel.__init__(self, batch_shape=rbf.batch_shape)
        scale = x.std(0, correction=0)
        if not standardize:
            scale = scale.square().mean().sqrt().expand(n_features).clone()
        self.register_buffer("shift", x.mean(0))
        self.register_buffer("scale", torch.where(scale > FLOOR, scale, torch.ones_like(scale)))
        spread = self.prepare(x).square().sum(1).mean()  # half the mean squared distance
        self.register_buffer("unit", spread.clamp(min=FLOOR).sqrt())
        self.rbf = rbf

    @property
    def lengthscale(self) -> Float[Tensor, "q 1 v"]:
        return self.rbf.lengthscale

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        self.rbf.lengthscale = value

    def forward(
        self, x1: Float[Tensor, "*_ n v"], x2: Float[Tensor, "*_ m v"], diag: bool = False, **_: Any
    ) -> Float[Tensor, "q n m"] | Float[Tensor, "q n"]:
        """Covariances of inputs that are not standardized yet."""
        weight = 1 / (self.unit * self.rbf.lengthscale)
        x1, x2 = (self.prepare(x) * weight for x in (x1, x2))
        return (-0.5 * (x1 - x2).square().sum(-1)).exp() if diag else eq(x1, x2)

    def prepare(self, x: Float[Tensor, "n v"]) -> Float[Tensor, "n v"]:
        """Standardize the columns."""
        return (x - self.shift) / self.scale

    def inducing(self, z: Float[Tensor, "q m v"]) -> Float[Tensor, "q m m"]:
        return self.covariances(z, z[0, :0])[0]

    def covariances(
        self, z: Float[Tensor, "q m v"], rows: Float[Tensor, "b v"]
    ) -> tuple[Float[Tensor, "q m m"], Float[Tensor, "q m b"]]:
        """Both covariances at once; GPyTorch's forward doubles the time of a step."""
        return ard_covariances(z, self.unit * self.rbf.lengthscale, rows)

    def diagonal(self, rows: Float[Tensor, "b v"]) -> Float[Tensor, "q b"]:
        return rows.new_ones(self.n_latent, len(rows))
