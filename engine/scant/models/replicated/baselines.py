"""Exact baselines of the hierarchical models.

- `Pooled`: one function for all outputs and replicas.
- `Independent`: one function per output, shared by its replicas; outputs are independent.
- `LMC`: pooled replicas and a linear model of coregionalization of outputs (Ma 2023, 2.7.2).
- `HLMC`: `LMC` whose functions have a replica level.
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import AdditiveKernel, IndexKernel, Kernel
from jaxtyping import Float
from torch import Tensor

from scant.kernels.hierarchical import ReplicaKernel, level, prior_variance
from scant.models.replicated.data import Data
from scant.models.replicated.exact import ReplicaGP
from scant.models.replicated.hgp import OWN, SHARED, start

SMOOTHED_AT = 24  # grid points of the smoothed outputs for initial loadings


class Pooled(ReplicaGP):
    """One function for all outputs and replicas."""

    @classmethod
    def build(
        cls,
        data: Data,
        generator: torch.Generator | None = None,
        *,
        kernel_shared: str | Kernel = "matern32",
        noise: str = "shared",
    ) -> Pooled:
        """Build a model with initial hyperparameters (see `HGP.build`)."""
        curve = level(kernel_shared, float(start(SHARED, generator)), float(start(1.0, generator)))
        return cls(ReplicaKernel(curve), data, (), noise, together=True)

    def _variances(self) -> tuple[Float[Tensor, " _"], Float[Tensor, " _"]]:
        shared = prior_variance(self.kernel.levels[0])
        return shared, torch.zeros_like(shared)

    @torch.no_grad()
    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        """Prior covariance of the outputs at one x: all entries are equal."""
        return self._variances()[0].expand(self.outputs, self.outputs).clone()


class Independent(ReplicaGP):
    """One function per output, shared by its replicas; outputs are independent."""

    @classmethod
    def build(
        cls,
        data: Data,
        generator: torch.Generator | None = None,
        *,
        kernel_shared: str | Kernel = "matern32",
    ) -> Independent:
        """Build a model with initial hyperparameters (see `HGP.build`)."""
        d = data.n_outputs
        curve = level(kernel_shared, start(SHARED, generator, d), start(1.0, generator, d), batch=d)
        return cls(ReplicaKernel(curve), data, ())

    def _variances(self) -> tuple[Float[Tensor, " _"], Float[Tensor, " _"]]:
        shared = prior_variance(self.kernel.levels[0])
        return shared, torch.zeros_like(shared)


class Mixing(IndexKernel):
    """`IndexKernel` with a dense lookup by one-hot products.

    GPyTorch's sparse lookup takes ten times as long for a few hundred rows, and the gradient of an
    index is slower than that of a product with one-hot matrices.
    """

    def forward(
        self, i1: Float[Tensor, "*b n 1"], i2: Float[Tensor, "*b m 1"], **params: Any
    ) -> Float[Tensor, "*b n m"]:
        B = self.covar_factor @ self.covar_factor.mT + self.var.diag_embed()
        number = torch.arange(len(B), device=B.device)
        return (i1 == number).to(B) @ B @ (i2 == number).to(B).mT


class LMC(ReplicaGP):
    """Linear model of coregionalization: sum_q B_q k_q with B_q = A_q A_q' + diag."""

    LABELS: tuple[str, ...] = ("output",)

    @classmethod
    def build(
        cls,
        data: Data,
        generator: torch.Generator | None = None,
        *,
        kernel_shared: str = "matern32",
        kernel_replica: str = "matern32",
        functions: int = 2,
        noise: str = "shared",
    ) -> LMC:
        """Build a model with initial hyperparameters.

        Args:
            data: Standardized data.
            generator: Perturbs the initial values; None uses the defaults.
            kernel_shared: Kernel k_q, one of `scant.kernels.hierarchical.SHAPES`.
            kernel_replica: Kernel of the samplings (`HLMC` only).
            functions: Number Q of functions, each with B_q of rank 1 plus a diagonal.
            noise: "shared", or "each output".
        """
        mixing = principal(data, functions).cpu()
        parts: list[Kernel] = []
        for q in range(functions):
            curve = cls.curve(kernel_shared, kernel_replica, generator)
            mixture = Mixing(data.n_outputs, 1, active_dims=torch.tensor([1])).double()
            scatter = start(1.0, generator, data.n_outputs)
            with torch.no_grad():
                mixture.covar_factor.copy_((mixing[:, q] * scatter).unsqueeze(1))
            mixture.var = torch.full((data.n_outputs,), 0.1 / functions, dtype=torch.float64)
            parts.append(mixture * curve)
        return cls(AdditiveKernel(*parts), data, cls.LABELS, noise)

    @classmethod
    def curve(cls, shared: str, replica: str, generator: torch.Generator | None) -> Kernel:
        """Kernel k_q with unit variance, over the columns it uses."""
        kernel: Any = level(shared, 1.0, float(start(1.0, generator))).base_kernel
        kernel.active_dims = torch.tensor([0])
        return kernel

    def _mixture(self) -> Float[Tensor, "d d"]:
        """sum_q B_q."""
        return torch.stack([p.kernels[0].covar_matrix.to_dense() for p in self.kernel.kernels]).sum(
            0
        )

    def _variances(self) -> tuple[Float[Tensor, " _"], Float[Tensor, " _"]]:
        shared = self._mixture().diagonal()
        return shared, torch.zeros_like(shared)

    @torch.no_grad()
    def outputs_covariance(self) -> Float[Tensor, "d d"]:
        return self._mixture()


class HLMC(LMC):
    """LMC whose functions are two-level hierarchies: sum_q B_q (k_q + [same sampling] k'_q).

    It has the covariance of HMOGP-LV (Ma 2023, 5.12-5.14) with free matrices B_q in place of k_H,
    and exact inference.
    """

    LABELS = ("output", "sampling")

    @classmethod
    def curve(cls, shared: str, replica: str, generator: torch.Generator | None) -> Kernel:
        levels = [
            level(shape, float(start(value, generator)), float(start(1.0, generator)))
            for shape, value in ((shared, SHARED), (replica, OWN))
        ]
        return ReplicaKernel(*levels, active_dims=(0, 2))

    def _variances(self) -> tuple[Float[Tensor, " _"], Float[Tensor, " _"]]:
        parts = [(B.covar_matrix.to_dense().diagonal(), k.levels) for B, k in self._parts()]
        return tuple(  # type: ignore[return-value]
            torch.stack([b * prior_variance(levels[i]) for b, levels in parts]).sum(0)
            for i in range(2)
        )

    def _parts(self) -> Any:
        return [p.kernels for p in self.kernel.kernels]


def principal(data: Data, count: int) -> Float[Tensor, "d q"]:
    """Loadings of the outputs on the principal components of their smoothed, pooled curves."""
    grid = torch.linspace(float(data.x.min()), float(data.x.max()), SMOOTHED_AT).to(data.x)
    width = (grid[-1] - grid[0]).clamp(min=1e-6) / 12
    nearness = torch.exp(-0.5 * ((grid.unsqueeze(1) - data.x) / width).square()) + 1e-9
    curves = []
    for d in range(data.n_outputs):
        weights = nearness * (data.output == d)
        curves.append(weights @ data.y / (weights.sum(1) + 1e-12))
    U, S, _ = torch.linalg.svd(torch.stack(curves), full_matrices=False)
    loadings = U * S / SMOOTHED_AT**0.5
    result = torch.full((data.n_outputs, count), 0.1).to(loadings)
    result[:, : loadings.shape[1]] = loadings[:, :count]
    return result
