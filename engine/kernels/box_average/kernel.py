"""A stationary kernel averaged over supports: boxes, points, and weighted sets of either.

    k(v, v') = 1 / (|v| |v'|) integral over z in v, z' in v' of k(z, z')

(Yousefi 2021, 5.7). The EQ kernel exp(-|z - z'|^2 / (2 l^2)) factorizes over the dimensions of
boxes, and each factor has a closed form (`interval_rbf`, C.18 and C.20). The Matern kernels do
not factorize: each box is replaced by a grid of Gauss-Legendre nodes, so that the kernel is exactly
that of a weighted set of points, and positive semi-definite, while its values near the origin carry
an error that falls with the square of the number of nodes a lengthscale.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from scant.errors import BadInput
from scant.kernels.box_average.interval_rbf import (
    ByWidth,
    Interval,
    eq_average,
    eq_average_pairs,
    eq_average_selves,
)
from scant.kernels.box_average.support import Pieces, alike, pieces
from torch import Tensor

SHAPES = ("eq", "matern12", "matern32", "matern52")
Corners = tuple[Tensor, Tensor]
KEPT = 3  # supports whose intervals are known: of the data, of inducing points, of what is asked


class IntervalKernel(Kernel):
    """Covariance of averages of a function with unit variance; inputs are rows of `support`.

    Wrap it in a `ScaleKernel`, or leave the variance to the coregionalisation matrices, as MTGPA
    does. One lengthscale a dimension, in the units of the inputs.

    Args:
        dimensions: d of the space that the supports lie in.
        shape: `"eq"`, or a Matern kernel: `"matern12"`, `"matern32"`, `"matern52"`.
        nodes: Gauss-Legendre nodes a dimension within a box, for the Matern kernels. A box should
            not be much longer than `nodes` lengthscales.

    Raises:
        BadInput: An unknown shape.
    """

    has_lengthscale = True

    def __init__(self, dimensions: int, shape: str = "eq", nodes: int = 8, **kwargs: Any) -> None:
        super().__init__(ard_num_dims=dimensions, **kwargs)
        if shape not in SHAPES:
            raise BadInput(f"Kernel {shape!r} is unknown; use one of {SHAPES}.")
        # GPyTorch would compare it with the number of columns; a box has two per dimension.
        self.ard_num_dims = None
        self.dimensions, self.shape, self.nodes = dimensions, shape, nodes
        self._known: list[tuple[Corners, list[ByWidth]]] = []

    def __call__(self, x1: Tensor, x2: Tensor | None = None, *args: Any, **params: Any) -> Any:
        """As of any kernel of GPyTorch; x1 and x2 may be written in different forms."""
        if x2 is not None:
            x1, x2 = alike([x1, x2], self.dimensions)
        return super().__call__(x1, x2, *args, **params)

    def forward(
        self,
        x1: Float[Tensor, "*b n c1"],
        x2: Float[Tensor, "*b m c2"],
        diag: bool = False,
        **params: Any,
    ) -> Float[Tensor, "*b n m"] | Float[Tensor, "*b n"]:
        """Covariances of all pairs of supports, or of one with its like (`diag`)."""
        if x1.dim() > 2:
            repeated = x1.stride(0) == x2.stride(0) == 0  # a batch made by `expand`
            batch = zip(x1[:1], x2[:1]) if repeated else zip(x1, x2)
            K = torch.stack([self.forward(a, b, diag) for a, b in batch])
            return K.expand(len(x1), *K.shape[1:])
        first, second = pieces(x1, self.dimensions), pieces(x2, self.dimensions)
        if self.shape != "eq":
            first, second = self._grid(first), self._grid(second)
        if diag and x1 is x2 and self.shape == "eq" and first.weight is None:
            if first.lower is first.upper:
                return first.lower.new_ones(len(first.lower))
            return self._selves(first.rows())
        if diag:
            return self._pairs(first, second)
        K = self._all(first.rows(), second.rows())  # (5.7)
        if first.weight is not None:
            K = (first.weight.unsqueeze(2) * K.unflatten(0, first.weight.shape)).sum(1)
        if second.weight is not None:
            K = (K.unflatten(1, second.weight.shape) * second.weight).sum(2)
        return K

    def _pairs(self, first: Pieces, second: Pieces) -> Float[Tensor, " n"]:
        """Sums over every piece of a support with every piece of its like."""
        n, k, d = first.lower.shape
        m = second.lower.shape[1]
        x = [c.unsqueeze(2).expand(n, k, m, d).reshape(-1, d) for c in first[:2]]
        y = [c.unsqueeze(1).expand(n, k, m, d).reshape(-1, d) for c in second[:2]]
        K = self._each((x[0], x[1]), (y[0], y[1])).view(n, k, m)
        if first.weight is not None:
            K = K * first.weight.unsqueeze(2)
        if second.weight is not None:
            K = K * second.weight.unsqueeze(1)
        return K.sum((1, 2))

    def _all(self, x: Corners, y: Corners) -> Float[Tensor, "n m"]:
        if self.shape != "eq":
            # Distances by the product formula would cost half the digits near the diagonal.
            mode = "donot_use_mm_for_euclid_dist"
            scaled_x, scaled_y = x[0] / self.lengthscale, y[0] / self.lengthscale
            return self._matern(torch.cdist(scaled_x, scaled_y, compute_mode=mode))
        each = zip(self._intervals(x), self._intervals(y), self.lengthscale[0])
        factors = [eq_average(*of_dimension) for of_dimension in each]
        return math.prod(factors[1:], start=factors[0])

    def _selves(self, x: Corners) -> Float[Tensor, " n"]:
        """Of each support with itself."""
        each = zip(self._intervals(x), self.lengthscale[0])
        factors = [eq_average_selves(*of_dimension) for of_dimension in each]
        return math.prod(factors[1:], start=factors[0])

    def _intervals(self, x: Corners) -> list[ByWidth]:
        """Of each dimension; looked up where these supports have been met before.

        A fit meets the same ones at every step. They are compared by value, which costs little.
        """
        for i, (corners, known) in enumerate(self._known):
            if all(_same(a, b) for a, b in zip(corners, x)):
                self._known.insert(0, self._known.pop(i))
                return known
        known = [Interval(x[0][:, i], x[1][:, i]).by_width() for i in range(self.dimensions)]
        if not (x[0].requires_grad or x[1].requires_grad):
            self._known = [((x[0].clone(), x[1].clone()), known), *self._known[: KEPT - 1]]
        return known

    def _each(self, x: Corners, y: Corners) -> Float[Tensor, " n"]:
        if self.shape != "eq":
            squares = ((x[0] - y[0]) / self.lengthscale).square().sum(1)
            # Away from zero by 1e-15: the root's own slope there is infinite.
            return self._matern((squares + 1e-30).sqrt())
        lengthscale = self.lengthscale[0]
        factors = [
            eq_average_pairs(
                Interval(x[0][:, i], x[1][:, i]), Interval(y[0][:, i], y[1][:, i]), lengthscale[i]
            )
            for i in range(self.dimensions)
        ]
        return math.prod(factors[1:], start=factors[0])

    def _matern(self, r: Tensor) -> Tensor:
        if self.shape == "matern12":
            return torch.exp(-r)
        if self.shape == "matern32":
            return (1 + math.sqrt(3) * r) * torch.exp(-math.sqrt(3) * r)
        return (1 + math.sqrt(5) * r + 5 / 3 * r.square()) * torch.exp(-math.sqrt(5) * r)

    def _grid(self, boxes: Pieces) -> Pieces:
        """Every box as a grid of weighted points; one point where no box has any extent."""
        lower, upper, weight = boxes
        if bool((lower == upper).all()):
            return boxes
        places, shares = np.polynomial.legendre.leggauss(self.nodes)
        grid = lower.new_tensor(list(product(0.5 + 0.5 * places, repeat=self.dimensions)))
        share = lower.new_tensor(list(product(0.5 * shares, repeat=self.dimensions))).prod(1)
        points = torch.lerp(lower.unsqueeze(2), upper.unsqueeze(2), grid).flatten(1, 2)
        weight = lower.new_ones(lower.shape[:2]) if weight is None else weight
        return Pieces(points, points, (weight.unsqueeze(2) * share).flatten(1))


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device or b.requires_grad:
        return False
    return torch.equal(a, b)
