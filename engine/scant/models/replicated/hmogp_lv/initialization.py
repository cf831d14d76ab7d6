"""Where HMOGP-LV starts: latent positions from the curves of the outputs, and inducing inputs."""

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

GRID = 16  # points that the curves are compared at
RIDGE = 0.1


def start_level(shape: str | Kernel, variance: float) -> Any:
    """A kernel for one level, its parameters in logarithms: steps of theirs are relative.

    A kernel that is given is taken as it is.
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
    """Principal components of the outputs' curves, replicas pooled, the first of unit deviation.

    The authors' code fits a GP to the outputs and a Bayesian GPLVM to its curves to the same end.
    Directions that the outputs do not spread in are filled with small noise.

    Args:
        generator: A CPU generator.
    """
    curves = _curves(layout)
    D = len(curves)
    centred = curves - curves.mean(0)
    U, widths, _ = torch.linalg.svd(centred, full_matrices=False)
    rank = min(dimensions, int((widths > 1e-6 * widths[0].clamp(min=1e-12)).sum()))
    found = torch.randn(D, dimensions, generator=generator, dtype=torch.float64).to(curves) * 0.1
    # A component's sign is a convention: its largest entry is positive.
    signs = U.gather(0, U.abs().argmax(0, keepdim=True)).sign()
    scores = (U * signs * widths)[:, :rank]
    found[:, :rank] += scores / scores[:, :1].std(correction=0).clamp(min=1e-12)
    return found


def _curves(layout: ReplicaBatch) -> Float[Tensor, "d g"]:
    """Ridge regression of each output on bumps along x, at the places of the bumps."""
    x = layout.inputs[:, 0]
    grid = torch.linspace(0, 1, GRID).to(x) * (x.max() - x.min()) + x.min()
    width = ((x.max() - x.min()) / GRID * 1.5).clamp(min=1e-6)

    def bumps(x: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((x.unsqueeze(-1) - grid) / width).square())

    B = bumps(x)[layout.where] * layout.real.unsqueeze(2)
    gram = B.mT @ B + RIDGE * torch.eye(GRID).to(x)
    weights = torch.linalg.solve(gram, B.mT @ layout.y.unsqueeze(2))
    return (bumps(grid) @ weights).squeeze(2)


def inducing_inputs(inputs: Float[Tensor, "u 2"], count: int) -> Float[Tensor, "m 2"]:
    """Inducing inputs (x, sampling), no more than there are distinct inputs.

    Every sampling gets its share, one at least as long as they last, placed at even ranks of its x:
    the function of a sampling without any is known from the shared curve alone.

    Raises:
        BadInput: A count below one.
    """
    if count < 1:
        raise BadInput(f"There must be at least one inducing input, got {count}.")
    labels, members = torch.unique(inputs[:, 1], return_inverse=True)
    sizes = torch.bincount(members)
    shares = _shares(sizes.tolist(), min(count, len(inputs)))
    found = []
    for label, share in enumerate(shares):
        x = inputs[members == label, 0].sort().values
        ranks = (torch.arange(share).to(x) + 0.5) * len(x) / max(share, 1)
        found.append(torch.stack([x[ranks.long()], labels[label].expand(share)], dim=1))
    return torch.cat(found)


def _shares(sizes: list[int], count: int) -> list[int]:
    """`count` divided in proportion to the sizes, none above its size, one each while they last."""
    shares = [0] * len(sizes)
    for _ in range(count):
        # The one that is worst off next to its size takes the next; of equals, the larger first.
        open_ = [i for i, size in enumerate(sizes) if shares[i] < size]
        worst = min(open_, key=lambda i: (shares[i] > 0, shares[i] / sizes[i], -sizes[i], i))
        shares[worst] += 1
    return shares
