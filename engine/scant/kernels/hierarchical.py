"""Hierarchical kernels: sums over levels of a kernel shared within groups.

A row is an input x followed by group labels, from the widest group to the narrowest: (x, replica)
for two levels, (x, output, replica) for three. Level l has an independent function for each group,
shared by the rows whose first l labels agree:

    k(p, p') = k_0(x, x') + [output = output'] k_1(x, x') + [... and replica = replica'] k_2(x, x')

(Hensman, Lawrence and Rattray 2013; Ma 2023, 5.12 and, for three levels, 5.39-5.42). Each level may
be any GPyTorch kernel of x. Labels are integers stored as floats beside x; only equality matters,
so a new group takes any unused number.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from jaxtyping import Bool, Float
from torch import Tensor, nn

from scant.errors import BadInput

SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
SHAPES = (*SMOOTHNESS, "rbf")


class ReplicaKernel(Kernel):
    """Sum of one kernel per level of a hierarchy of groups (see the module docstring).

    Args:
        levels: Kernels of x, starting with the level that all rows share. L levels take L - 1
            label columns after those of x. A batch of hierarchies is a batch in every level.

    Raises:
        BadInput: Fewer than one level.
    """

    levels: Any  # a ModuleList of kernels

    def __init__(self, *levels: Kernel, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not levels:
            raise BadInput("A hierarchical kernel needs a kernel for one level at least; got none.")
        self.levels = nn.ModuleList(levels)

    @property
    def batch_shape(self) -> torch.Size:
        """Broadcast batch shape of the levels."""
        return torch.broadcast_shapes(*(level.batch_shape for level in self.levels))

    @batch_shape.setter
    def batch_shape(self, shape: torch.Size) -> None:
        """Ignore the value set by GPyTorch's constructor; the levels determine the shape."""

    @property
    def is_stationary(self) -> bool:
        return False

    def forward(
        self,
        x1: Float[Tensor, "*b n c"],
        x2: Float[Tensor, "*b m c"],
        diag: bool = False,
        **params: Any,
    ) -> Float[Tensor, "*b n m"] | Float[Tensor, "*b n"]:
        """Covariances of all pairs of rows, or row by row (`diag`)."""
        inputs = x1.shape[-1] - len(self.levels) + 1
        (a, first), (b, second) = (x.tensor_split((inputs,), dim=-1) for x in (x1, x2))
        total: Any = 0.0
        for number, kernel in enumerate(self.levels):
            K = kernel(a, b, diag=True) if diag else kernel(a, b).to_dense()
            same = same_group(first[..., :number], second[..., :number], diag)
            total = total + (K if number == 0 else K * same)  # (5.12); three levels: 5.39-5.42
        return total


def same_group(
    first: Float[Tensor, "*b n l"], second: Float[Tensor, "*b m l"], diag: bool = False
) -> Bool[Tensor, "*b n m"] | Bool[Tensor, "*b n"]:
    """Return True where all labels agree, for all pairs of rows or row by row (`diag`)."""
    if diag:
        return (first == second).all(-1)
    return (first.unsqueeze(-2) == second.unsqueeze(-3)).all(-1)


def level(
    shape: str | Kernel,
    variance: float | Float[Tensor, " b"] = 1.0,
    lengthscale: float | Float[Tensor, " b"] = 1.0,
    batch: int | None = None,
) -> Kernel:
    """Kernel of one level: a scaled stationary kernel with one lengthscale, in float64.

    Args:
        shape: One of `SHAPES`; or a kernel of x, which is copied with its current parameters.
        variance: Initial variance, one for all or one per batch element.
        lengthscale: Initial lengthscale in the unit of x, likewise.
        batch: Number of kernels with separate parameters; None shares one kernel.

    Raises:
        BadInput: An unknown shape.
    """
    if isinstance(shape, Kernel):
        return deepcopy(shape).double()
    if shape not in SHAPES:
        raise BadInput(f"Kernel {shape!r} is unknown; use one of {', '.join(SHAPES)}.")
    size = torch.Size() if batch is None else torch.Size([batch])
    if shape == "rbf":
        base: Kernel = RBFKernel(batch_shape=size)
    else:
        base = MaternKernel(nu=SMOOTHNESS[shape], batch_shape=size)
    kernel = ScaleKernel(base, batch_shape=size).double()
    # GPyTorch would convert a Python float to single precision.
    kernel.outputscale = torch.as_tensor(variance, dtype=torch.float64)
    initial = torch.as_tensor(lengthscale, dtype=torch.float64).expand(size)
    base.lengthscale = initial.reshape(*size, 1, 1)
    return kernel


def prior_variance(kernel: Kernel) -> Float[Tensor, " b"]:
    """Prior variance of a level's function, at x = 0 if not stationary; one per batch element."""
    if isinstance(kernel, ScaleKernel):
        return kernel.outputscale.reshape(-1)
    like = next(kernel.parameters(), torch.zeros(1, dtype=torch.float64))
    variance: Tensor = kernel(like.new_zeros(1, 1), diag=True)
    return variance.reshape(-1)
