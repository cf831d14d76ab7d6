"""Averages of exp(-(z - z')^2 / 2) over two intervals, in one dimension, to full precision.

With G(t) = t sqrt(pi/2) erf(t / sqrt 2) + exp(-t^2 / 2), so that G'' = exp(-t^2 / 2), the average
over z in [p, q] and z' in [r, s] is

    (G(q - r) + G(p - s) - G(p - r) - G(q - s)) / ((q - p)(s - r))

(Yousefi 2021, C.18, with lengths divided by l; there with exp(-(z - z')^2 / l^2)), and over a
single interval sqrt(pi/2) (erf((q - z') / sqrt 2) + erf((z' - p) / sqrt 2)) / (q - p) (C.20, whose
factor sqrt(pi) is missing from section 5.1.2).

Evaluated as printed, both lose all digits if an interval is short, long or far away. Instead:

- G(t) = sqrt(pi/2) |t| + T(|t|) with a tail T that decays like exp(-t^2 / 2) / t^2. The terms
  in |t| add up to twice the overlap, so nothing cancels, and erfc replaces erf if both ends lie
  on the same side.
- An interval shorter than `NARROW` is replaced by its Gauss-Legendre nodes: one for a point, else
  five. With five nodes the error is below 1e-12 wherever the kernel exceeds 1e-300.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

NARROW = 1 / 32  # lengthscales; C.18 loses at most three digits for wider intervals
MIN_DEDUPLICATED = 64  # intervals; repeats among fewer are not worth a search
POINT, SHORT, LONG = 0, 1, 2
ROOT_HALF_PI = math.sqrt(math.pi / 2)
ROOT_HALF = math.sqrt(0.5)
_rule = functools.cache(
    np.polynomial.legendre.leggauss
)  # nodes are eigenvalues: compute them once per count


class Interval(NamedTuple):
    """Intervals of one dimension; a point has equal ends."""

    lower: Tensor
    upper: Tensor

    def kinds(self, lengthscale: Tensor) -> Tensor:
        """POINT, SHORT or LONG for each interval."""
        width = (self.upper - self.lower).detach()
        return (width > 0).long() + (width > NARROW * lengthscale.detach()).long()

    def at(self, index: Tensor | slice) -> Interval:
        return Interval(self.lower[index], self.upper[index])

    def unsqueeze(self, dim: int) -> Interval:
        return Interval(self.lower.unsqueeze(dim), self.upper.unsqueeze(dim))

    def distinct(self) -> tuple[Interval, Tensor | None]:
        """Distinct intervals, and each interval's index among them (None: all are kept).

        The cells of a grid have few distinct intervals. Intervals that require gradients are kept.
        """
        n = len(self.lower)
        if n < MIN_DEDUPLICATED or self.lower.requires_grad or self.upper.requires_grad:
            return self, None
        lower, i = self.lower.unique(return_inverse=True)
        upper, j = self.upper.unique(return_inverse=True)
        codes, index = (i * n + j).unique(return_inverse=True)
        if 2 * len(codes) > n:
            return self, None
        return Interval(lower[codes // n], upper[codes % n]), index

    def by_width(self) -> ByWidth:
        """Distinct intervals sorted by width, computed once for any number of lengthscales."""
        distinct, index = self.distinct()
        widths, order = (distinct.upper - distinct.lower).detach().sort(stable=True)
        if not bool((order[1:] > order[:-1]).all()):
            back = torch.argsort(order)
            distinct, index = distinct.at(order), back if index is None else back[index]
        return ByWidth(distinct, index, widths.tolist())

    def nodes(self, kind: int) -> Iterator[tuple[Tensor, float]]:
        """Gauss-Legendre nodes within short intervals, and their weights."""
        if kind == POINT and not (self.lower.requires_grad or self.upper.requires_grad):
            yield self.lower, 1.0
            return
        abscissae, weights = _rule(1 if kind == POINT else 5)
        for abscissa, weight in zip(abscissae, weights):
            # Also for equal ends, so that each end receives its share of the gradient.
            yield (
                torch.lerp(self.lower, self.upper, 0.5 + 0.5 * float(abscissa)),
                0.5 * float(weight),
            )


class ByWidth(NamedTuple):
    """Distinct intervals in order of width, so that each kind is one slice."""

    distinct: Interval
    inverse: Tensor | None  # of each interval among the distinct ones; None: all are distinct
    widths: list[float]

    def groups(self, lengthscale: float) -> Iterator[tuple[int, Interval]]:
        """Intervals of each kind (POINT, SHORT, LONG) that occurs."""
        boundaries = [0, *(bisect_right(self.widths, w) for w in (0.0, NARROW * lengthscale))]
        for kind, (start, end) in enumerate(pairwise([*boundaries, len(self.widths)])):
            if end > start:
                yield kind, self.distinct.at(slice(start, end))

    def spread(self, K: Tensor, dim: int) -> Tensor:
        """Expand dimension `dim` of K from the distinct intervals to all intervals."""
        return K if self.inverse is None else K.index_select(dim, self.inverse)


class _Tail(torch.autograd.Function):
    """T(t) = exp(-t^2 / 2) - t sqrt(pi/2) erfc(t / sqrt 2) for t >= 0.

    The derivative is -sqrt(pi/2) erfc(t / sqrt 2). Autograd would compute it as a difference of
    terms that are t^2 times larger.
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
    # At ties maximum and minimum halve the gradient, as the derivative of G does.
    gap = torch.maximum(x.lower - y.upper, y.lower - x.upper)
    span = torch.maximum(x.upper - y.lower, y.upper - x.lower)
    overlap = torch.minimum(x.upper, y.upper) - torch.maximum(x.lower, y.lower)
    overlap = torch.maximum(overlap, torch.zeros_like(overlap))
    offsets = [span, gap, x.lower - y.lower, x.upper - y.upper]
    T_span, T_gap, T_lower, T_upper = (_Tail.apply((offset * scale).abs()) for offset in offsets)
    # (C.18) in terms of T, without cancellation
    total = 2 * ROOT_HALF_PI * overlap * scale + ((T_gap - T_lower) - (T_upper - T_span))
    return total / ((x.upper - x.lower) * scale * ((y.upper - y.lower) * scale))


def _long_self(x: Interval, lengthscale: Tensor) -> Tensor:
    width = (x.upper - x.lower) / lengthscale
    # (C.18) for equal intervals
    return 2 * (ROOT_HALF_PI * width + _Tail.apply(width) - 1) / width.square()


def _long_point(x: Interval, z: Tensor, lengthscale: Tensor) -> Tensor:
    left, right = z - x.lower, x.upper - z
    # Distances to the nearer end (negative inside) and to the farther one: erfc keeps its digits.
    to_near, to_far = -torch.minimum(left, right), torch.maximum(left, right)
    scale = ROOT_HALF / lengthscale
    integral = torch.erfc(to_near * scale) - torch.erfc(to_far * scale)  # (C.20)
    return ROOT_HALF_PI * lengthscale / (x.upper - x.lower) * integral


def _average(x: Interval, y: Interval, lengthscale: Tensor, kinds: tuple[int, int]) -> Tensor:
    """Averages of x with y, element by element; `kinds` are those of all x and of all y."""
    if kinds == (LONG, LONG):
        return _long_long(x, y, lengthscale)
    if kinds[1] == LONG:
        x, y, kinds = y, x, (kinds[1], kinds[0])
    terms = []
    for z, weight in y.nodes(kinds[1]):
        if kinds[0] == LONG:
            terms.append(_weighted(weight, _long_point(x, z, lengthscale)))
            continue
        for abscissa, w in x.nodes(kinds[0]):
            t = (abscissa - z) / lengthscale
            terms.append(_weighted(weight * w, torch.exp(-0.5 * t * t)))
    return functools.reduce(torch.add, terms)


def _weighted(weight: float, K: Tensor) -> Tensor:
    return K if weight == 1 else weight * K


def eq_average(
    x: Interval | ByWidth, y: Interval | ByWidth, lengthscale: Float[Tensor, ""]
) -> Float[Tensor, "n m"]:
    """Averages over every pair of n intervals x and m intervals y."""
    x, y = (i.by_width() if isinstance(i, Interval) else i for i in (x, y))
    length = float(lengthscale.detach())
    columns = [(b, j.unsqueeze(0)) for b, j in y.groups(length)]
    strips = []
    for a, i in x.groups(length):
        rows = i.unsqueeze(1)
        strips.append(_joined([_average(rows, j, lengthscale, (a, b)) for b, j in columns], 1))
    K = x.spread(_joined(strips, 0), 0)
    # K is symmetric if x is y, and gathering rows is ten times as fast as gathering columns.
    same = x is y and x.inverse is not None
    return x.spread(K.T.contiguous(), 0) if same else y.spread(K, 1)


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def eq_average_pairs(
    x: Interval, y: Interval, lengthscale: Float[Tensor, ""]
) -> Float[Tensor, " n"]:
    """Averages over the pairs (x_1, y_1), (x_2, y_2), ..."""
    groups = list(_groups(3 * x.kinds(lengthscale) + y.kinds(lengthscale)))
    parts = [_average(x.at(i), y.at(i), lengthscale, divmod(kind, 3)) for kind, i in groups]
    if len(groups) == 1:
        return parts[0]
    return torch.cat(parts)[torch.argsort(torch.cat([index for _, index in groups]))]


def eq_average_selves(x: ByWidth, lengthscale: Float[Tensor, ""]) -> Float[Tensor, " n"]:
    """Averages over each interval with itself."""
    groups = x.groups(float(lengthscale.detach()))
    parts = [
        _long_self(i, lengthscale) if kind == LONG else _average(i, i, lengthscale, (kind, kind))
        for kind, i in groups
    ]
    return x.spread(_joined(parts, 0), 0)


def _groups(kinds: Tensor) -> Iterator[tuple[int, Tensor]]:
    for kind in kinds.unique().tolist():
        yield int(kind), (kinds == kind).nonzero().squeeze(1)
