"""Initialization of HMOGP-LV: latent positions of the outputs, and inducing inputs."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from scant.errors import BadInput
from scant.kernels.hierarchical import level
from scant.models.replicated.hmogp_lv.layout import ReplicaBatch

GRID = 16  # grid points of the outputs' curves
RIDGE = 0.1


def start_level(shape: str | Kernel, variance: float) -> Any:
    """Kernel of one level with log parameters, so that optimizer steps are relative.

    A given kernel keeps its parameterization.
    """
    kernel: Any = level(shape)
    if isinstance(shape, Kernel):
        return kernel
    kernel.register_constraint("raw_outputscale", Positive(torch.exp, torch.log))
    kernel.base_kernel.register_constraint("raw_lengthscale", Positive(torch.exp, torch.log))
    kernel.outputscale, kernel.base_kernel.lengthscale = variance, 1.0
    return kernel


def latent_positions(
    layout: ReplicaBatch, dimensions: int, generator: torch.Generator
) -> Float[Tensor, "d q"]:
    """Initial latent positions: principal components of the outputs' pooled curves.

    The first component has unit standard deviation; missing directions are filled with small noise.
    The authors' code fits a GP to the outputs and a Bayesian GPLVM to its curves instead.

    Args:
        layout: Rows of the outputs.
        dimensions: Number of latent dimensions.
        generator: A CPU generator.
    """
    curves = _curves(layout)
    D = len(curves)
    centered = curves - curves.mean(0)
    U, widths, _ = torch.linalg.svd(centered, full_matrices=False)
    rank = min(dimensions, int((widths > 1e-6 * widths[0].clamp(min=1e-12)).sum()))
    positions = (
        torch.randn(D, dimensions, generator=generator, dtype=torch.float64).to(curves) * 0.1
    )
    # Sign convention: the largest entry of each component is positive.
    signs = U.gather(0, U.abs().argmax(0, keepdim=True)).sign()
    scores = (U * signs * widths)[:, :rank]
    positions[:, :rank] += scores / scores[:, :1].std(correction=0).clamp(min=1e-12)
    return positions


def _curves(layout: ReplicaBatch) -> Float[Tensor, "d g"]:
    """Curve of each output on a grid, by ridge regression on Gaussian basis functions of x."""
    x = layout.inputs[:, 0]
    grid = torch.linspace(0, 1, GRID).to(x) * (x.max() - x.min()) + x.min()
    width = ((x.max() - x.min()) / GRID * 1.5).clamp(min=1e-6)

    def basis(x: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((x.unsqueeze(-1) - grid) / width).square())

    B = basis(x)[layout.where] * layout.real.unsqueeze(2)
    gram = B.mT @ B + RIDGE * torch.eye(GRID).to(x)
    weights = torch.linalg.solve(gram, B.mT @ layout.y.unsqueeze(2))
    return (basis(grid) @ weights).squeeze(2)


def inducing_inputs(inputs: Float[Tensor, "u 2"], count: int) -> Float[Tensor, "m 2"]:
    """Initial inducing inputs (x, sampling), at most as many as distinct inputs.

    Each sampling gets a proportional number, at least one if possible, at equally spaced ranks of
    its x. A sampling without inducing inputs is predicted from the shared curve alone.

    Raises:
        BadInput: The count is below one.
    """
    if count < 1:
        raise BadInput(f"There must be at least one inducing input, got {count}.")
    labels, sampling = torch.unique(inputs[:, 1], return_inverse=True)
    sizes = torch.bincount(sampling)
    shares = _shares(sizes.tolist(), min(count, len(inputs)))
    inducing = []
    for label, share in enumerate(shares):
        x = inputs[sampling == label, 0].sort().values
        ranks = (torch.arange(share).to(x) + 0.5) * len(x) / max(share, 1)
        inducing.append(torch.stack([x[ranks.long()], labels[label].expand(share)], dim=1))
    return torch.cat(inducing)


def _shares(sizes: list[int], count: int) -> list[int]:
    """Divide `count` in proportion to the sizes: at most the size, at least one if possible."""
    shares = [0] * len(sizes)
    for _ in range(count):
        # The group with the smallest share of its size is next; ties go to the larger group.
        open_ = [i for i, size in enumerate(sizes) if shares[i] < size]
        worst = min(open_, key=lambda i: (shares[i] > 0, shares[i] / sizes[i], -sizes[i], i))
        shares[worst] += 1
    return shares
