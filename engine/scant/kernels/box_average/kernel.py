"""A stationary kernel averaged over supports: boxes, points, and weighted sets of either.

    k(v, v') = 1 / (|v| |v'|) integral over z in v, z' in v' of k(z, z')

(Yousefi 2021, 5.7). The EQ kernel exp(-|z - z'|^2 / (2 l^2)) factorizes over the dimensions of
boxes, and each factor has a closed form (`interval_rbf`, C.18 and C.20). The Matern kernels do
not factorize: each box is replaced by a grid of nodes (`averaged`), so that its values near the
origin carry an error that falls with the square of the number of nodes a lengthscale.
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
KEPT = 3  # supports whose intervals are known: of the data, of inducing points, of what is asked


class IntervalKernel(SupportKernel):
    """Covariance of averages of a function with unit variance; inputs are rows of `support`.

    Wrap it in a `ScaleKernel`, or leave the variance to the coregionalisation matrices, as MTGPA
    does. One lengthscale a dimension, in the units of the inputs.

    Args:
        dimensions: d of the space that the supports lie in.
        shape: `"eq"`, or a Matern kernel: `"matern12"`, `"matern32"`, `"matern52"`.
        nodes: Gauss-Legendre nodes a dimension within a box, for the Matern kernels. A box should
            not be much longer than `nodes` lengthscales.
        alike: The number of first dimensions that share one lengthscale, such as both of a map.

    Raises:
        BadInput: An unknown shape.
    """

    has_lengthscale = True

    def __init__(
        self, dimensions: int, shape: str = "eq", nodes: int = 8, alike: int = 1, **kwargs: Any
    ) -> None:
        closed, own = shape == "eq", dimensions - alike + 1
        super().__init__(dimensions, None if closed else nodes, ard_num_dims=own, **kwargs)
        self.alike = alike
        if shape not in SHAPES:
            raise BadInput(f"Kernel {shape!r} is unknown; use one of {SHAPES}.")
        # GPyTorch would compare it with the number of columns; a box has two per dimension.
        self.ard_num_dims = None
        self.shape = shape
        self._known: list[tuple[Corners, list[ByWidth]]] = []

    @property
    def lengthscale(self) -> Float[Tensor, "1 d"]:
        """Of each dimension; setting it gives dimensions that share one their geometric mean."""
        own: Tensor = super().lengthscale
        if self.alike == 1:
            return own
        return torch.cat([own[:, :1].expand(1, self.alike), own[:, 1:]], dim=1)

    @lengthscale.setter
    def lengthscale(self, value: Tensor | float) -> None:
        wide = torch.as_tensor(value).to(self.raw_lengthscale).expand(1, self.dimensions)
        shared = wide[:, : self.alike].log().mean(1, keepdim=True).exp()
        own = wide if self.alike == 1 else torch.cat([shared, wide[:, self.alike :]], dim=1)
        bare = self.raw_lengthscale_constraint.inverse_transform(own)  # as GPyTorch sets it
        self.initialize(raw_lengthscale=bare)

    def _pairs(self, first: Pieces, second: Pieces, same: bool) -> Float[Tensor, " n"]:
        if same and self.shape == "eq" and first.weight is None:
            if first.lower is first.upper:
                return first.lower.new_ones(len(first.lower))
            return self._selves(first.rows())
        return super()._pairs(first, second, same)

    def _all(self, x: Corners, y: Corners) -> Float[Tensor, "n m"]:
        if self.shape != "eq":
            # Distances by the product formula would cost half the digits near the diagonal.
            mode = "donot_use_mm_for_euclid_dist"
            scaled_x, scaled_y = x[0] / self.lengthscale, y[0] / self.lengthscale
            return self._matern(torch.cdist(scaled_x, scaled_y, compute_mode=mode))
        each = zip(self._intervals(x), self._intervals(y), self.lengthscale[0])
        factors = [eq_average(*of_dimension) for of_dimension in each]
        return math.prod(factors[1:], start=factors[0])

    def _of_points(self, x: Tensor, y: Tensor) -> Float[Tensor, "n m"]:
        if self.shape != "eq" or x.requires_grad or y.requires_grad:
            return super()._of_points(x, y)
        middle = x.mean(0)
        return cast(Tensor, EQOfPoints.apply(x - middle, y - middle, self.lengthscale[0]))

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
    """exp(-|(x - y) / l|^2 / 2) of all pairs of points, with a gradient for the lengthscales alone.

    Polygons are thousands of points, whose covariances are looked at in every step: distances and
    gradient are matrix products here, and K is all that is kept. Where points are 1,000
    lengthscales from their mean, distances lose ten digits of sixteen.
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
