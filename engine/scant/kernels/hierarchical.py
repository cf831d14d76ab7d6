"""Hierarchical kernels: a function for each group and level, and their sums.

A row is an input x and the labels of the groups that it lies in, from the widest to the narrowest:
(x, replica) in two levels, (x, output, replica) in three. Level l is a function of its own for
every group, so that two rows share it where their first l labels agree:

    k(p, p') = k_0(x, x') + [output = output'] k_1(x, x') + [... and replica = replica'] k_2(x, x')

(Hensman, Lawrence and Rattray 2013; Ma 2023, 5.12 and, in three levels, 5.39-5.42). Each level may
be any GPyTorch kernel of x. Labels are whole numbers, kept as floats beside x; rows with the same
label lie in the same group, whatever the number, so that a group never seen takes an unused one.
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
    """Sum of a kernel for each level of a hierarchy of groups; see the module.

    Args:
        levels: Kernels of x alone, the one that all rows share first. L levels take L - 1 label
            columns after those of x. A batch of hierarchies is a batch in every level.

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
        """Of the levels together: broadcast, as their matrices are."""
        return torch.broadcast_shapes(*(level.batch_shape for level in self.levels))

    @batch_shape.setter
    def batch_shape(self, shape: torch.Size) -> None:
        """GPyTorch's constructor sets one; that of the levels holds."""

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
        """Covariances of all pairs of rows, or of each with its like (`diag`)."""
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
    """Whether all labels agree, for every pair of rows, or of each row with its like (`diag`)."""
    if diag:
        return (first == second).all(-1)
    return (first.unsqueeze(-2) == second.unsqueeze(-3)).all(-1)


def level(
    shape: str | Kernel,
    variance: float | Float[Tensor, " b"] = 1.0,
    lengthscale: float | Float[Tensor, " b"] = 1.0,
    batch: int | None = None,
) -> Kernel:
    """A kernel for one level: variance times a stationary kernel of one lengthscale, in float64.

    Args:
        shape: One of `SHAPES`; or a kernel of x, which is copied and starts as it is.
        variance: To start from, one for all or one each.
        lengthscale: To start from, in the unit of x, likewise.
        batch: That many kernels at once, each with parameters of its own. A kernel without a batch
            is the same in all.

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
    made = ScaleKernel(base, batch_shape=size).double()
    # As tensors: GPyTorch would take a plain number for one of single precision.
    made.outputscale = torch.as_tensor(variance, dtype=torch.float64)
    each = torch.as_tensor(lengthscale, dtype=torch.float64).expand(size)
    base.lengthscale = each.reshape(*size, 1, 1)
    return made


def prior_variance(kernel: Kernel) -> Float[Tensor, " b"]:
    """Of the function of a level, at x = 0 where it depends on x; one for each of a batch."""
    if isinstance(kernel, ScaleKernel):
        return kernel.outputscale.reshape(-1)
    like = next(kernel.parameters(), torch.zeros(1, dtype=torch.float64))
    found: Tensor = kernel(like.new_zeros(1, 1), diag=True)
    return found.reshape(-1)
