"""Rows to measure speed on: drawn from fixed seeds, of the shapes that the publications have."""

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
    """Where a case's rows and models go, and in which precision their numbers are."""

    device: torch.device = CPU
    dtype: torch.dtype = DOUBLE

    def __call__(self, value: Any) -> Any:
        """A module there; or a tensor, in that precision where it is not of whole numbers."""
        whole = isinstance(value, Tensor) and not value.is_floating_point()
        return value.to(self.device) if whole else value.to(self.device, self.dtype)


def seeded(seed: int = 0) -> torch.Generator:
    """A generator on the processor."""
    return torch.Generator().manual_seed(seed)


def _normal(g: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def galaxies(n: int, d: int = 10) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
    """As many inputs as five bands and their errors."""
    g = seeded()
    x = _normal(g, n, d)
    return x, torch.sin(x[:, 0] * x[:, 1]) + 0.1 * _normal(g, n)


def features(n: int, d: int = 27) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
    """A target of two of many columns."""
    g = seeded()
    x = _normal(g, n, d)
    return x, torch.sin(x[:, 0]) + x[:, 1] + 0.5 * _normal(g, n)


def two_classes(n: int, d: int = 20) -> tuple[Float[Tensor, "n d"], Int[Tensor, " n"]]:
    """Labels 0 and 1 that four columns decide, with doubt."""
    g = seeded()
    x = _normal(g, n, d)
    f = 2 * torch.sin(2 * x[:, 0]) + x[:, 1] + x[:, 2] * x[:, 3]
    return x, (torch.rand(n, generator=g, dtype=torch.float64) < torch.sigmoid(3 * f)).long()


def outputs(n: int, d: int) -> Float[Tensor, "n d"]:
    """Smooth images of five latent dimensions, and noise."""
    g = seeded()
    x, w = (torch.randn(*shape, generator=g).double() for shape in ((n, 5), (5, d)))
    return torch.sin(x @ w) + 0.1 * torch.randn(n, d, generator=g).double()


def grid(height: int, width: int, side: int) -> tuple[Float[Tensor, "n c"], Float[Tensor, " n"]]:
    """Cells of side x side over a surface, and its averages at their centres."""
    axes = torch.arange(0, height, side).double(), torch.arange(0, width, side).double()
    lower = torch.cartesian_prod(*axes)
    centre = lower + side / 2
    return boxes(lower, lower + side), torch.sin(centre[:, 0] / 9) * torch.cos(centre[:, 1] / 5)


def fertility(n: int = 740) -> Supported:
    """80 fine cells and n - 80 of 2 x 2; 740 are the Canadian births, of ages by years."""
    height = (n - 80) // 10
    fine, y = grid(height, 40, 1)
    pick = torch.randperm(len(fine), generator=seeded())[:80]
    coarse, averages = grid(height, 40, 2)
    task = torch.tensor([0] * 80 + [1] * len(coarse))
    return Supported(torch.cat([fine[pick], coarse]), torch.cat([y[pick], averages]), task)


def curves(outputs: int, replicas: int, n: int, same: bool = False) -> Replicated:
    """Smooth curves of outputs that change slowly from one to the next, n points a replica.

    Args:
        same: Whether all outputs are measured at the same inputs, as genes of one sample are.
    """
    g = seeded()
    d, r, _ = torch.meshgrid(*map(torch.arange, (outputs, replicas, n)), indexing="ij")
    x = torch.rand(d.shape, generator=g, dtype=torch.float64) * 4
    x = x[:1].expand(d.shape) if same else x
    place = 3 * d / outputs
    y = torch.sin(x + place) + 0.4 * torch.cos(2 * x + r + place) + 0.1 * _normal(g, *x.shape)
    d, r, x, y = (v.reshape(-1) for v in (d, r, x, y))
    return Replicated.of(d, r, x, y)


def drawings(n: int, grey: bool = False) -> Float[Tensor, "n 400"]:
    """Random arcs of 20 x 20 pixels: as much ink as Omniglot has, in as many patches."""
    g = seeded()
    t = torch.linspace(0, 1, 30).double()
    centre, radius, phase, turn = (torch.rand(n, 1, generator=g).double() for _ in range(4))
    angle = 6.3 * (phase + turn * t)
    x, y = (10 + 3 * (centre - 0.5) + (4 + 4 * radius) * f(angle) for f in (torch.cos, torch.sin))
    pixels = torch.arange(20).double()
    images = torch.empty(n, 20, 20).double()
    for part in torch.arange(n).split(200):
        across, down = ((p[part, :, None] - pixels).square() for p in (x, y))
        images[part] = torch.exp(-(down[..., None] + across[:, :, None])).amax(1)
    images = torch.where(images > 0.05, images, 0.0).flatten(1)
    return images if grey else (images > 0.5).double()
