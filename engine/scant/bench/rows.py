"""Simulated rows for benchmarks with fixed seeds and the shapes of the publications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scant.kernels.box_average.support import boxes
from scant.models.mtgpa.prior import Data as Supported
from scant.models.replicated.data import Data as Replicated

CPU, DOUBLE = torch.device("cpu"), torch.float64


@dataclass(frozen=True)
class On:
    """Device and dtype of a case."""

    device: torch.device = CPU
    dtype: torch.dtype = DOUBLE

    def __call__(self, value: Any) -> Any:
        """Move a module or tensor; integer tensors keep their dtype."""
        whole = isinstance(value, Tensor) and not value.is_floating_point()
        return value.to(self.device) if whole else value.to(self.device, self.dtype)


def seeded(seed: int = 0) -> torch.Generator:
    """Return a seeded generator on the CPU."""
    return torch.Generator().manual_seed(seed)


def _normal(g: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def galaxies(n: int, d: int = 10) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
    """Simulate galaxies with ten inputs, as for five bands and their errors."""
    g = seeded()
    x = _normal(g, n, d)
    return x, torch.sin(x[:, 0] * x[:, 1]) + 0.1 * _normal(g, n)


def features(n: int, d: int = 27) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
    """Simulate a target that depends on two of d columns."""
    g = seeded()
    x = _normal(g, n, d)
    return x, torch.sin(x[:, 0]) + x[:, 1] + 0.5 * _normal(g, n)


def two_classes(n: int, d: int = 20) -> tuple[Float[Tensor, "n d"], Int[Tensor, " n"]]:
    """Simulate noisy binary labels that depend on four columns."""
    g = seeded()
    x = _normal(g, n, d)
    f = 2 * torch.sin(2 * x[:, 0]) + x[:, 1] + x[:, 2] * x[:, 3]
    return x, (torch.rand(n, generator=g, dtype=torch.float64) < torch.sigmoid(3 * f)).long()


def outputs(n: int, d: int) -> Float[Tensor, "n d"]:
    """Simulate smooth functions of five latent dimensions with noise."""
    g = seeded()
    x, w = (torch.randn(*shape, generator=g).double() for shape in ((n, 5), (5, d)))
    return torch.sin(x @ w) + 0.1 * torch.randn(n, d, generator=g).double()


def grid(height: int, width: int, side: int) -> tuple[Float[Tensor, "n c"], Float[Tensor, " n"]]:
    """Return cells of side x side on a surface, and its values at their centers."""
    axes = torch.arange(0, height, side).double(), torch.arange(0, width, side).double()
    lower = torch.cartesian_prod(*axes)
    centre = lower + side / 2
    return boxes(lower, lower + side), torch.sin(centre[:, 0] / 9) * torch.cos(centre[:, 1] / 5)


def fertility(n: int = 740) -> Supported:
    """Simulate 80 fine cells and n - 80 of 2 x 2; n = 740 as for the Canadian births."""
    height = (n - 80) // 10
    fine, y = grid(height, 40, 1)
    pick = torch.randperm(len(fine), generator=seeded())[:80]
    coarse, averages = grid(height, 40, 2)
    task = torch.tensor([0] * 80 + [1] * len(coarse))
    return Supported(torch.cat([fine[pick], coarse]), torch.cat([y[pick], averages]), task)


def curves(outputs: int, replicas: int, n: int, same: bool = False) -> Replicated:
    """Simulate smooth, similar curves of outputs with n points per replica.

    Args:
        outputs: Number of outputs.
        replicas: Number of replicas of each output.
        n: Number of points of each replica.
        same: True for the same inputs for all outputs, as for genes of a sample.
    """
    g = seeded()
    d, r, _ = torch.meshgrid(*map(torch.arange, (outputs, replicas, n)), indexing="ij")
    x = torch.rand(d.shape, generator=g, dtype=torch.float64) * 4
    x = x[:1].expand(d.shape) if same else x
    phase = 3 * d / outputs
    y = torch.sin(x + phase) + 0.4 * torch.cos(2 * x + r + phase) + 0.1 * _normal(g, *x.shape)
    d, r, x, y = (v.reshape(-1) for v in (d, r, x, y))
    return Replicated.of(d, r, x, y)


def drawings(n: int, grey: bool = False) -> Float[Tensor, "n 400"]:
    """Simulate arcs of 20 x 20 pixels with about the ink and patches of Omniglot."""
    g = seeded()
    t = torch.linspace(0, 1, 30).double()
    centre, radius, phase, turn = (torch.rand(n, 1, generator=g).double() for _ in range(4))
    angle = 6.3 * (phase + turn * t)
    x, y = (10 + 3 * (centre - 0.5) + (4 + 4 * radius) * f(angle) for f in (torch.cos, torch.sin))
    pixels = torch.arange(20).double()
    images = torch.empty(n, 20, 20).double()
    for part in torch.arange(n).split(200):
        dx2, dy2 = ((p[part, :, None] - pixels).square() for p in (x, y))
        images[part] = torch.exp(-(dy2[..., None] + dx2[:, :, None])).amax(1)
    images = torch.where(images > 0.05, images, 0.0).flatten(1)
    return images if grey else (images > 0.5).double()
