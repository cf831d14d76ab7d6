"""Supports as rows of a matrix: points, boxes, and weighted sets of either.

GPyTorch kernels take matrices with one row per input, so a support in d dimensions is encoded as

- `d` columns: a point,
- `2 d` columns: a box, its lower corner and then its upper one (equal along flat dimensions),
- `k (2 d + 1)` columns: k pieces, each a box (or a point) and its weight; pieces of weight 0 are
  padding. The weights of an average sum to one, those of a difference of two supports to zero.

The number of columns distinguishes the three forms. The third represents polygons, unions of boxes
and bags of inputs (Yousefi 2021, section 5.2, the finite sum in place of 5.9).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from scant.errors import BadInput


class Pieces(NamedTuple):
    """Supports as k weighted boxes each; a box with equal corners is a point."""

    lower: Float[Tensor, "n k d"]
    upper: Float[Tensor, "n k d"]
    weight: Float[Tensor, "n k"] | None  # None: k = 1 and all weights are one

    def rows(self) -> tuple[Float[Tensor, "nk d"], Float[Tensor, "nk d"]]:
        """Lower and upper corners of all pieces, grouped by support."""
        return self.lower.flatten(0, 1), self.upper.flatten(0, 1)


def boxes(lower: Float[Tensor, "n d"], upper: Float[Tensor, "n d"]) -> Float[Tensor, "n dd"]:
    """Rows of axis-aligned boxes.

    Raises:
        BadInput: A corner is not finite, or an upper one lies below its lower one.
    """
    bad = ~(lower.isfinite() & upper.isfinite() & (upper >= lower))
    if bool(bad.any()):
        row, column = (int(i) for i in bad.nonzero()[0])
        raise BadInput(
            f"Box {row} runs from {float(lower[row, column])} to {float(upper[row, column])} in "
            f"dimension {column}; both ends must be finite numbers, the lower one first."
        )
    return torch.cat([lower, upper], dim=1)


def weighted_points(
    points: Float[Tensor, "n k d"], weight: Float[Tensor, "n k"] | None = None
) -> Float[Tensor, "n c"]:
    """Rows of weighted sets of points; without weights each set is averaged.

    Args:
        points: k points per set; pad with any finite point of weight 0.
        weight: Weight of each point; sums to one over a set for an average.

    Raises:
        BadInput: A coordinate or a weight is not a finite number.
    """
    if weight is None:
        weight = points.new_full(points.shape[:2], 1 / points.shape[1])
    if not bool(points.isfinite().all() & weight.isfinite().all()):
        raise BadInput("A point or a weight of a support is not a finite number; leave it out.")
    return torch.cat([points, points, weight.unsqueeze(2)], dim=2).flatten(1)


def pieces(supports: Float[Tensor, "n c"], d: int) -> Pieces:
    """Decode rows of supports in d dimensions into weighted boxes.

    Raises:
        BadInput: The number of columns fits none of the three forms.
    """
    c = supports.shape[-1]
    if c == d:
        corner = supports.unsqueeze(1)
        return Pieces(corner, corner, None)
    if c == 2 * d:
        return Pieces(supports[:, None, :d], supports[:, None, d:], None)
    if c % (2 * d + 1):
        raise BadInput(
            f"Supports in {d} dimensions have {d} columns (points), {2 * d} (boxes) or a multiple "
            f"of {2 * d + 1} (weighted pieces); got {c}."
        )
    parts = supports.unflatten(1, (-1, 2 * d + 1))
    # Drop pieces that are padding in every row.
    used = (parts[..., 2 * d] != 0).any(0).nonzero()
    parts = parts[:, : int(used.max()) + 1 if len(used) else 1]
    return Pieces(parts[..., :d], parts[..., d : 2 * d], parts[..., 2 * d])


def widen(supports: Float[Tensor, "n c"], d: int, columns: int) -> Float[Tensor, "n columns"]:
    """Supports rewritten in the form that has this number of columns."""
    if supports.shape[-1] == columns:
        return supports
    lower, upper, weight = pieces(supports, d)
    if columns == 2 * d and weight is None:
        return torch.cat([lower, upper], dim=2).flatten(1)
    n, k, _ = lower.shape
    weight = lower.new_ones(n, k) if weight is None else weight
    rows = torch.cat([lower, upper, weight.unsqueeze(2)], dim=2)
    missing = columns // (2 * d + 1) - k
    if columns % (2 * d + 1) or missing < 0:
        raise BadInput(
            f"Supports of {supports.shape[-1]} columns cannot be written with {columns}."
        )
    # Padding repeats the first piece with weight zero, so that it lies within the data's range.
    spare = torch.cat([rows[:, :1, :-1], torch.zeros_like(rows[:, :1, -1:])], dim=2)
    return torch.cat([rows, spare.expand(n, missing, -1)], dim=1).flatten(1)


def same_form(parts: list[Float[Tensor, "... _ _"]], d: int) -> list[Float[Tensor, "... _ _"]]:
    """Supports of several forms, rewritten in the narrowest common form."""
    columns = max(part.shape[-1] for part in parts)
    if any(part.shape[-1] > 2 * d for part in parts):
        columns = max(part.shape[-1] // (2 * d + 1) for part in parts) * (2 * d + 1)
    return [p if p.shape[-1] == columns else widen(p, d, columns) for p in parts]


def join(parts: list[Float[Tensor, "_ _"]], d: int) -> Float[Tensor, "n c"]:
    """Supports of several forms concatenated along the rows."""
    return torch.cat(same_form(parts, d))


def centroids(supports: Float[Tensor, "n c"], d: int) -> Float[Tensor, "n d"]:
    """Centroid of each support, in the units of the inputs."""
    lower, upper, weight = pieces(supports, d)
    middle = 0.5 * (lower + upper)
    if weight is None:
        return middle[:, 0]
    share = weight.abs() / weight.abs().sum(1, keepdim=True)
    return (share.unsqueeze(2) * middle).sum(1)
