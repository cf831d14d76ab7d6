"""Kernels averaged over supports, and quadrature that averages any kernel over points.

    k(v, v') = 1 / (|v| |v'|) integral over z in v, z' in v' of k(z, z')

(Yousefi 2021, 5.7). If the integrals have no closed form, each box is replaced by a grid of
Gauss-Legendre nodes, so that the kernel is exactly that of a weighted set of points, and positive
semi-definite.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from scant.kernels.box_average.support import Pieces, pieces, same_form

Corners = tuple[Tensor, Tensor]  # lower and upper corners, "n d" each; equal for points


class SupportKernel(Kernel):
    """Covariance of averages of a function over supports; inputs are rows of `support`.

    A subclass implements the kernel between pieces: `_all` for all pairs, `_each` row by row.

    Args:
        dimensions: Dimension d of the input space.
        nodes: Gauss-Legendre nodes per dimension of a box; None if `_all` and `_each` integrate
            over boxes themselves.
    """

    def __init__(self, dimensions: int, nodes: int | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dimensions, self.nodes = dimensions, nodes

    def __call__(self, x1: Tensor, x2: Tensor | None = None, *args: Any, **params: Any) -> Any:
        """Evaluate lazily, as GPyTorch does; x1 and x2 may differ in their form of support."""
        if x2 is not None:
            x1, x2 = same_form([x1, x2], self.dimensions)
        return super().__call__(x1, x2, *args, **params)

    def forward(
        self,
        x1: Float[Tensor, "*b n c1"],
        x2: Float[Tensor, "*b m c2"],
        diag: bool = False,
        **params: Any,
    ) -> Float[Tensor, "*b n m"] | Float[Tensor, "*b n"]:
        """Covariances of all pairs of supports, or row by row (`diag`)."""
        if x1.dim() > 2:
            repeated = x1.stride(0) == x2.stride(0) == 0  # a batch made by `expand`
            batch = zip(x1[:1], x2[:1]) if repeated else zip(x1, x2)
            K = torch.stack([self.forward(a, b, diag) for a, b in batch])
            return K.expand(len(x1), *K.shape[1:])
        first, second = self._pieces(x1), self._pieces(x2)
        if diag:
            return self._pairs(first, second, x1 is x2)
        weighted = first.weight is not None or second.weight is not None
        x, y = first.rows(), second.rows()
        points = weighted and torch.equal(*x) and torch.equal(*y)
        K = self._of_points(x[0], y[0]) if points else self._all(x, y)  # (5.7)
        if first.weight is not None:
            K = (first.weight.unsqueeze(2) * K.unflatten(0, first.weight.shape)).sum(1)
        if second.weight is not None:
            K = (K.unflatten(1, second.weight.shape) * second.weight).sum(2)
        return K

    def _pieces(self, x: Tensor) -> Pieces:
        parts = pieces(x, self.dimensions)
        return parts if self.nodes is None else grid(parts, self.nodes)

    def _pairs(self, first: Pieces, second: Pieces, same: bool) -> Float[Tensor, " n"]:
        """Covariance of each row of `first` with the same row of `second`, summed over pieces."""
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
        raise NotImplementedError

    def _of_points(self, x: Tensor, y: Tensor) -> Float[Tensor, "n m"]:
        """`_all` for points; a subclass may override it with a faster method."""
        return self._all((x, x), (y, y))

    def _each(self, x: Corners, y: Corners) -> Float[Tensor, " n"]:
        raise NotImplementedError

    def within(self, points: Float[Tensor, "n k d"]) -> Float[Tensor, "n k k"]:
        """Covariance matrices among the k points of each of n sets."""
        n, k, d = points.shape
        x = points.unsqueeze(2).expand(n, k, k, d).reshape(-1, d)
        y = points.unsqueeze(1).expand(n, k, k, d).reshape(-1, d)
        return self._each((x, x), (y, y)).view(n, k, k)


class AveragedKernel(SupportKernel):
    """Any kernel over points, stationary or not, averaged over supports by quadrature.

    A box becomes `nodes` ** d points, so covariances among many boxes are expensive: 200 boxes in
    the plane become 12,800 points. Covariances with a few inducing points (MTGPA) are cheap.

    Args:
        base_kernel: Kernel over points in d dimensions. The error falls with the number of nodes
            per lengthscale; a box should not be much longer than `nodes` lengthscales.

    The other arguments are those of `SupportKernel`.
    """

    def __init__(self, base_kernel: Kernel, dimensions: int, nodes: int = 8) -> None:
        super().__init__(dimensions, nodes)
        self.base_kernel = base_kernel

    @property
    def lengthscale(self) -> Float[Tensor, "1 d"]:
        """Lengthscales of the first component that has 1 or d of them; NaN if none has."""
        parts = [k for k in self.base_kernel.modules() if isinstance(k, Kernel)]
        lengthscales = [k.lengthscale.reshape(1, -1) for k in parts if k.has_lengthscale]
        fitting = [ls for ls in lengthscales if ls.shape[1] in (1, self.dimensions)]
        return (fitting or [torch.full((1, 1), torch.nan)])[0].expand(1, self.dimensions)

    def _all(self, x: Corners, y: Corners) -> Float[Tensor, "n m"]:
        K: Tensor = self.base_kernel(x[0], y[0]).to_dense()
        return K

    def _each(self, x: Corners, y: Corners) -> Float[Tensor, " n"]:
        K: Tensor = self.base_kernel(x[0], y[0], diag=True)
        return K


def grid(boxes: Pieces, nodes: int) -> Pieces:
    """Boxes as grids of weighted points, along the dimensions in which any box has an extent."""
    lower, upper, weight = boxes
    extents = extended(boxes)
    if not extents:
        return boxes
    abscissae, quadrature_weights = np.polynomial.legendre.leggauss(nodes)
    relative = lower.new_full((nodes ** len(extents), lower.shape[-1]), 0.5)
    relative[:, extents] = lower.new_tensor(
        list(product(0.5 + 0.5 * abscissae, repeat=len(extents)))
    )
    node_weight = lower.new_tensor(
        list(product(0.5 * quadrature_weights, repeat=len(extents)))
    ).prod(1)
    points = torch.lerp(lower.unsqueeze(2), upper.unsqueeze(2), relative).flatten(1, 2)
    weight = lower.new_ones(lower.shape[:2]) if weight is None else weight
    return Pieces(points, points, (weight.unsqueeze(2) * node_weight).flatten(1))


def extended(boxes: Pieces) -> list[int]:
    """Dimensions in which at least one box has a positive width."""
    dimensions: list[int] = (boxes.lower != boxes.upper).any(0).any(0).nonzero().squeeze(1).tolist()
    return dimensions
