"""Averages of exp(-(z - z')^2 / 2) over two intervals, in one dimension, to full precision.

With G(t) = t sqrt(pi/2) erf(t / sqrt 2) + exp(-t^2 / 2), so that G'' = exp(-t^2 / 2), the average
over z in [p, q] and z' in [r, s] is

    (G(q - r) + G(p - s) - G(p - r) - G(q - s)) / ((q - p)(s - r))

(Yousefi 2021, C.18, after lengths are divided by l; there with exp(-(z - z')^2 / l^2)), and over a
single interval sqrt(pi/2) (erf((q - z') / sqrt 2) + erf((z' - p) / sqrt 2)) / (q - p) (C.20, whose
factor sqrt(pi) section 5.1.2 lacks).

As printed, both lose all digits when an interval is short, long or far away. So:

- G(t) = sqrt(pi/2) |t| + T(|t|) with a tail T that decays like exp(-t^2 / 2) / t^2. The parts
  in |t| are summed by hand to twice the overlap, which leaves nothing to cancel, and erf is
  written by erfc where both ends lie on one side.
- An interval shorter than `NARROW` is replaced by its Gauss-Legendre nodes, exactly one of them
  for a point. With five nodes the error is below 1e-12 as far out as the kernel is above 1e-300.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

NARROW = 1 / 32  # lengthscales; above it C.18 loses three digits at most
FEW = 64  # intervals, among which repeated ones are not worth looking for
POINT, SHORT, LONG = 0, 1, 2
ROOT_HALF_PI = math.sqrt(math.pi / 2)
ROOT_HALF = math.sqrt(0.5)


class Interval(NamedTuple):
    """Intervals of one dimension; a point has equal ends."""

    lower: Tensor
    upper: Tensor

    def kinds(self, lengthscale: Tensor) -> Tensor:
        """POINT, SHORT or LONG of each."""
        width = (self.upper - self.lower).detach()
        return (width > 0).long() + (width > NARROW * lengthscale.detach()).long()

    def at(self, index: Tensor | slice) -> Interval:
        return Interval(self.lower[index], self.upper[index])

    def unsqueeze(self, dim: int) -> Interval:
        return Interval(self.lower.unsqueeze(dim), self.upper.unsqueeze(dim))

    def distinct(self) -> tuple[Interval, Tensor | None]:
        """Each interval once, and where each of all is found among them (None: nothing gained).

        The cells of a grid share few intervals. Not where a gradient has to reach every end.
        """
        n = len(self.lower)
        if n < FEW or self.lower.requires_grad or self.upper.requires_grad:
            return self, None
        lower, i = self.lower.unique(return_inverse=True)
        upper, j = self.upper.unique(return_inverse=True)
        codes, places = (i * n + j).unique(return_inverse=True)
        if 2 * len(codes) > n:
            return self, None
        return Interval(lower[codes // n], upper[codes % n]), places

    def nodes(self, kind: int) -> Iterator[tuple[Tensor, float]]:
        """Gauss-Legendre nodes within short intervals, and their weights."""
        places, weights = np.polynomial.legendre.leggauss(1 if kind == POINT else 5)
        for place, weight in zip(places, weights):
            # The mid-point also of equal ends, so that each end gets its share of the gradient.
            yield torch.lerp(self.lower, self.upper, 0.5 + 0.5 * float(place)), 0.5 * float(weight)


class _Tail(torch.autograd.Function):
    """T(t) = exp(-t^2 / 2) - t sqrt(pi/2) erfc(t / sqrt 2) for t >= 0.

    The derivative, -sqrt(pi/2) erfc(t / sqrt 2), is given by hand: by the rules of calculus it is
    a difference of terms t^2 times its size.
    """

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.save_for_backward(t)
        bracket = 1 - ROOT_HALF_PI * t * torch.special.erfcx(ROOT_HALF * t)
        return torch.exp(-0.5 * t * t) * bracket

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (t,) = ctx.saved_tensors
        return -ROOT_HALF_PI * grads[0] * torch.erfc(ROOT_HALF * t)


def _long_long(x: Interval, y: Interval, lengthscale: Tensor) -> Tensor:
    scale = 1 / lengthscale
    # At ties maximum and minimum halve the gradient, which is what G's own derivative asks for.
    gap = torch.maximum(x.lower - y.upper, y.lower - x.upper)
    span = torch.maximum(x.upper - y.lower, y.upper - x.lower)
    overlap = torch.minimum(x.upper, y.upper) - torch.maximum(x.lower, y.lower)
    overlap = torch.maximum(overlap, torch.zeros_like(overlap))
    ends = [span, gap, x.lower - y.lower, x.upper - y.upper]
    far, near, low, high = (_Tail.apply((end * scale).abs()) for end in ends)
    # (C.18), without its cancellation
    total = 2 * ROOT_HALF_PI * overlap * scale + ((near - low) - (high - far))
    return total / ((x.upper - x.lower) * scale * ((y.upper - y.lower) * scale))


def _long_point(x: Interval, z: Tensor, lengthscale: Tensor) -> Tensor:
    left, right = z - x.lower, x.upper - z
    # From the nearer end, inside counted negative, to the farther one: erfc keeps its digits there.
    near, far = -torch.minimum(left, right), torch.maximum(left, right)
    scale = ROOT_HALF / lengthscale
    integral = torch.erfc(near * scale) - torch.erfc(far * scale)  # (C.20)
    return ROOT_HALF_PI * lengthscale * integral / (x.upper - x.lower)


def _average(x: Interval, y: Interval, lengthscale: Tensor, kinds: tuple[int, int]) -> Tensor:
    """Element by element, where all of x are of one kind and all of y of one."""
    if kinds == (LONG, LONG):
        return _long_long(x, y, lengthscale)
    if kinds[1] == LONG:
        x, y, kinds = y, x, (kinds[1], kinds[0])
    total: Tensor | float = 0.0
    for z, weight in y.nodes(kinds[1]):
        if kinds[0] == LONG:
            total = total + weight * _long_point(x, z, lengthscale)
            continue
        for place, w in x.nodes(kinds[0]):
            t = (place - z) / lengthscale
            total = total + weight * w * torch.exp(-0.5 * t * t)
    assert isinstance(total, Tensor)
    return total


def eq_average(x: Interval, y: Interval, lengthscale: Float[Tensor, ""]) -> Float[Tensor, "n m"]:
    """Averages over every pair of n intervals x and m intervals y (`"n"` and `"m"` ends)."""
    (x, from_row), (y, from_column) = x.distinct(), y.distinct()
    rows, columns = (list(_groups(i.kinds(lengthscale))) for i in (x, y))
    strips = []
    for a, i in rows:
        blocks = [
            _average(x.at(i).unsqueeze(1), y.at(j).unsqueeze(0), lengthscale, (a, b))
            for b, j in columns
        ]
        strips.append(torch.cat(blocks, dim=1))
    K = _gather(torch.cat(strips), 0, rows, from_row)
    return _gather(K, 1, columns, from_column)


def _gather(K: Tensor, dim: int, groups: list[tuple[int, Tensor]], places: Tensor | None) -> Tensor:
    """From the order of groups to that of the distinct intervals, and on to that of all."""
    if len(groups) > 1:
        back = torch.argsort(torch.cat([index for _, index in groups]))
        places = back if places is None else back[places]
    return K if places is None else K.index_select(dim, places)


def eq_average_pairs(
    x: Interval, y: Interval, lengthscale: Float[Tensor, ""]
) -> Float[Tensor, " n"]:
    """Averages over the first of x with the first of y, the second with the second, and so on."""
    groups = list(_groups(3 * x.kinds(lengthscale) + y.kinds(lengthscale)))
    parts = [_average(x.at(i), y.at(i), lengthscale, divmod(kind, 3)) for kind, i in groups]
    return _gather(torch.cat(parts), 0, groups, None)


def _groups(kinds: Tensor) -> Iterator[tuple[int, Tensor]]:
    for kind in kinds.unique().tolist():
        yield int(kind), (kinds == kind).nonzero().squeeze(1)
