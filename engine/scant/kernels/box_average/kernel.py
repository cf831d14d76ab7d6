"""A stationary kernel averaged over supports: boxes, points, and weighted sets of either.

    k(v, v') = 1 / (|v| |v'|) integral over z in v, z' in v' of k(z, z')

(Yousefi 2021, 5.7). The EQ kernel exp(-|z - z'|^2 / (2 l^2)) factorizes over the dimensions of
boxes, and each factor has a closed form (`interval_rbf`, C.18 and C.20). The Matern kernels do
not factorize: each box is replaced by a grid of nodes (`averaged`), with an error that falls with
the square of the number of nodes per lengthscale.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from scant.errors import BadInput
from scant.kernels.box_average.averaged import Corners, SupportKernel
from scant.kernels.box_average.interval_rbf import (
    ByWidth,
    Interval,
    eq_average,
    eq_average_pairs,
    eq_average_selves,
)
from scant.kernels.box_average.support import Pieces

SHAPES = ("eq", "matern12", "matern32", "matern52")
MAX_CACHED = 3  # sets of supports with cached intervals: data, inducing points, query


class IntervalKernel(SupportKernel):
    """Covariance of averages of a function with unit variance; inputs are rows of `support`.

    Wrap it in a `ScaleKernel`, or use coregionalization matrices for the variance (MTGPA). There
    is one lengthscale per dimension, in the units of the inputs.

    Args:
        dimensions: Dimension d of the input space.
        shape: `"eq"`, or a Matern kernel: `"matern12"`, `"matern32"`, `"matern52"`.
        nodes: Gauss-Legendre nodes per dimension of a box, for the Matern kernels. A box should
            not be much longer than `nodes` lengthscales.
        n_isotropic: Number of leading dimensions that share one lengthscale, e.g. 2 on a map.

    Raises:
        BadInput: An unknown shape.
    """

    has_lengthscale = True

    def __init__(
        self,
        dimensions: int,
        shape: str = "eq",
        nodes: int = 8,
        n_isotropic: int = 1,
        **kwargs: Any,
    ) -> None:
        closed_form, n_lengthscales = shape == "eq", dimensions - n_isotropic + 1
        super().__init__(
            dimensions, None if closed_form else nodes, ard_num_dims=n_lengthscales, **kwargs
        )
        self.n_isotropic = n_isotropic
        if shape not in SHAPES:
            raise BadInput(f"Kernel {shape!r} is unknown; use one of {SHAPES}.")
        # GPyTorch would compare it with the number of columns; a box has two per dimension.
        self.ard_num_dims = None
        self.shape = shape
        self._cache: list[tuple[Corners, list[ByWidth]]] = []

    @property
    def lengthscale(self) -> Float[Tensor, "1 d"]:
        """One lengthscale per dimension; the setter takes the geometric mean of tied ones."""
        distinct: Tensor = super().lengthscale
        if self.n_isotropic == 1:
            return distinct
        return torch.cat([distinct[:, :1].expand(1, self.n_isotropic), distinct[:, 1:]], dim=1)

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        full = torch.as_tensor(value).to(self.raw_lengthscale).expand(1, self.dimensions)
        if self.n_isotropic > 1:
            tied = full[:, : self.n_isotropic].log().mean(1, keepdim=True).exp()
            full = torch.cat([tied, full[:, self.n_isotropic :]], dim=1)
        raw = self.raw_lengthscale_constraint.inverse_transform(full)
        self.initialize(raw_lengthscale=raw)

    def _pairs(self, first: Pieces, second: Pieces, same: bool) -> Float[Tensor, " n"]:
        if same and self.shape == "eq" and first.weight is None:
            if first.lower is first.upper:
                return first.lower.new_ones(len(first.lower))
            return self._selves(first.rows())
        return super()._pairs(first, second, same)

    def _all(self, x: Corners, y: Corners) -> Float[Tensor, "n m"]:
        if self.shape != "eq":
            # |x|^2 + |y|^2 - 2 x'y would lose half the digits near the diagonal.
            mode = "donot_use_mm_for_euclid_dist"
            scaled_x, scaled_y = x[0] / self.lengthscale, y[0] / self.lengthscale
            return self._matern(torch.cdist(scaled_x, scaled_y, compute_mode=mode))
        dimensions = zip(self._intervals(x), self._intervals(y), self.lengthscale[0])
        factors = [eq_average(*arguments) for arguments in dimensions]
        return math.prod(factors[1:], start=factors[0])

    def _of_points(self, x: Tensor, y: Tensor) -> Float[Tensor, "n m"]:
        if self.shape != "eq" or x.requires_grad or y.requires_grad:
            return super()._of_points(x, y)
        middle = x.mean(0)
        return cast(Tensor, EQOfPoints.apply(x - middle, y - middle, self.lengthscale[0]))

    def _selves(self, x: Corners) -> Float[Tensor, " n"]:
        """Covariance of each support with itself."""
        dimensions = zip(self._intervals(x), self.lengthscale[0])
        factors = [eq_average_selves(*arguments) for arguments in dimensions]
        return math.prod(factors[1:], start=factors[0])

    def _intervals(self, x: Corners) -> list[ByWidth]:
        """Sorted intervals of each dimension, cached for the last `MAX_CACHED` sets of supports.

        A fit evaluates the same supports at every step; they are compared by value.
        """
        for i, (corners, intervals) in enumerate(self._cache):
            if all(_same(a, b) for a, b in zip(corners, x)):
                self._cache.insert(0, self._cache.pop(i))
                return intervals
        intervals = [Interval(x[0][:, i], x[1][:, i]).by_width() for i in range(self.dimensions)]
        if not (x[0].requires_grad or x[1].requires_grad):
            self._cache = [
                ((x[0].clone(), x[1].clone()), intervals),
                *self._cache[: MAX_CACHED - 1],
            ]
        return intervals

    def _each(self, x: Corners, y: Corners) -> Float[Tensor, " n"]:
        if self.shape != "eq":
            squares = ((x[0] - y[0]) / self.lengthscale).square().sum(1)
            # The gradient of the square root is infinite at zero.
            return self._matern((squares + 1e-30).sqrt())
        lengthscale = self.lengthscale[0]
        factors = [
            eq_average_pairs(
                Interval(x[0][:, i], x[1][:, i]), Interval(y[0][:, i], y[1][:, i]), lengthscale[i]
            )
            for i in range(self.dimensions)
        ]
        return math.prod(factors[1:], start=factors[0])

    def within(self, points: Float[Tensor, "n k d"]) -> Float[Tensor, "n k k"]:
        scaled = points / self.lengthscale[0]
        squares = (scaled.unsqueeze(2) - scaled.unsqueeze(1)).square().sum(3)
        if self.shape == "eq":
            return torch.exp(-0.5 * squares)
        return self._matern((squares + 1e-30).sqrt())

    def _matern(self, r: Tensor) -> Tensor:
        if self.shape == "matern12":
            return torch.exp(-r)
        if self.shape == "matern32":
            return (1 + math.sqrt(3) * r) * torch.exp(-math.sqrt(3) * r)
        return (1 + math.sqrt(5) * r + 5 / 3 * r.square()) * torch.exp(-math.sqrt(5) * r)


class EQOfPoints(torch.autograd.Function):
    """exp(-|(x - y) / l|^2 / 2) of all pairs of points, differentiable in the lengthscales only.

    Polygons consist of thousands of points, so distances and gradient are matrix products, and
    only K is saved for the backward pass. Distances lose ten of sixteen digits if points lie 1,000
    lengthscales from their mean.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "n d"],
        y: Float[Tensor, "m d"],
        lengthscale: Float[Tensor, " d"],
    ) -> Float[Tensor, "n m"]:
        a, b = x / lengthscale, y / lengthscale
        K = torch.addmm(a.square().sum(1, keepdim=True), a, b.T, beta=-0.5)
        K.sub_(0.5 * b.square().sum(1)).clamp_(max=0).exp_()
        ctx.save_for_backward(a, b, lengthscale, K)
        return K

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        a, b, lengthscale, K = ctx.saved_tensors
        W = grads[0] * K
        # dK/dl = K (x - y)^2 / l^3, summed over all pairs with their weights
        squares = W.sum(1) @ a.square() + W.sum(0) @ b.square() - 2 * (a * (W @ b)).sum(0)
        return None, None, squares / lengthscale


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device or b.requires_grad:
        return False
    return torch.equal(a, b)
