"""Initialization of MTGPA: inducing points, their spacing, and signs of task correlations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from scant.errors import BadInput
from scant.inference.kmeans import kmeans_centres, square_distances
from scant.kernels.box_average.support import centroids, pieces
from scant.models.mtgpa.prior import Data

ROWS = 20_000  # centroids used by k-means; more hardly change the centers


def inducing_points(
    supports: Float[Tensor, "n c"],
    dimensions: int,
    count: int,
    place: str,
    generator: torch.Generator,
) -> Float[Tensor, "m d"]:
    """Initial inducing points for supports.

    Args:
        supports: Supports of the data.
        dimensions: Dimension of the input space.
        count: Number of inducing points.
        place: `"kmeans"`: centers of the supports' centroids, scaled to unit variance (Yousefi
            2021, section 5.3). `"even"`: the largest grid of at most `count` points with equal
            spacing in that scale, over the bounding box. `"inside"`: k-means over the midpoints of
            all pieces, or these midpoints if there are at most `count`.
        generator: A CPU generator.

    Raises:
        BadInput: The count is below one, or the place is unknown.
    """
    if count < 1:
        raise BadInput(f"There must be at least one inducing point, got {count}.")
    if place == "even":
        return _even(supports, dimensions, count)
    if place not in ("kmeans", "inside"):
        raise BadInput(f"Place {place!r} is unknown; use 'kmeans', 'even' or 'inside'.")
    centres = centroids(supports, dimensions)
    if place == "inside":
        parts = pieces(supports, dimensions)
        middles = (parts.lower + parts.upper) / 2
        centres = torch.unique(middles.flatten(0, 1), dim=0)  # padding repeats other pieces
        if len(centres) <= count:
            return centres
    scale = centres.std(0, correction=0).clamp(min=1e-12)
    if len(centres) > ROWS:
        centres = centres[torch.randperm(len(centres), generator=generator)[:ROWS]]
    return kmeans_centres(centres / scale, count, generator) * scale


def _even(supports: Tensor, dimensions: int, count: int) -> Tensor:
    lower, upper = extent(supports, dimensions)
    extents = (upper - lower).clamp(min=1e-12)
    # Counts are proportional to extents in units of the centroids' deviation; product `count`.
    ratio = extents / centroids(supports, dimensions).std(0, correction=0).clamp(min=1e-12)
    counts = (ratio * (count / ratio.prod()) ** (1 / dimensions)).floor().clamp(min=1).long()
    axes = [
        torch.linspace(lo, hi, int(k) + 2, dtype=extents.dtype)[1:-1]
        if k < 2
        else torch.linspace(lo, hi, int(k), dtype=extents.dtype)
        for lo, hi, k in zip(lower.tolist(), upper.tolist(), counts)
    ]
    return torch.cartesian_prod(*axes).reshape(-1, dimensions).to(supports)


def extent(
    supports: Float[Tensor, "n c"], dimensions: int
) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"]]:
    """Lower and upper corner of the bounding box of all supports."""
    parts = pieces(supports, dimensions)
    return parts.lower.amin((0, 1)), parts.upper.amax((0, 1))


def spacing(
    supports: Float[Tensor, "n c"], dimensions: int, count: int | None = None
) -> Float[Tensor, " d"]:
    """Grid spacing of `count` points (default: as many as supports) in each dimension."""
    lower, upper = extent(supports, dimensions)
    sides = (count or len(supports)) ** (1 / dimensions)
    return torch.where(upper > lower, upper - lower, torch.ones_like(lower)) / sides


def signs(
    data: Data, dimensions: int, trends: Sequence[Float[Tensor, "_ _"]]
) -> list[Float[Tensor, " _"]]:
    """Signs of the correlations of each task's trends with the first one of the largest task.

    Training rarely recovers from a wrong initial sign of the mixing. Rows are compared with the
    nearest row of the largest task; without a clear correlation the sign is +1.

    Args:
        data: All observations.
        dimensions: Dimension of the input space.
        trends: `Likelihood.trends` of each task's rows.
    """
    largest = max(range(len(trends)), key=lambda d: trends[d].shape[1])
    scale = centroids(data.supports, dimensions).std(0, correction=0).clamp(min=1e-12)
    reference = _thinned(data.of_task(largest)._replace(y=trends[largest][0]))
    centers = centroids(reference.supports, dimensions) / scale
    result = []
    for d, values in enumerate(trends):
        result.append(data.y.new_ones(len(values)))
        for k, y in enumerate(values):
            own = _thinned(data.of_task(d)._replace(y=y))
            nearest = square_distances(centroids(own.supports, dimensions) / scale, centers)
            pair = torch.stack([own.y, reference.y[nearest.argmin(1)]])
            r = torch.corrcoef(pair)[0, 1] if len(own.y) > 2 else pair.new_zeros(())
            if r < -2 / len(own.y) ** 0.5:
                result[d][k] = -1
    return result


def check(data: Data, tasks: int) -> None:
    """Check that every row is valid and every task has a row.

    Raises:
        BadInput: A row is invalid or a task has no row; the message names the first.
    """
    exposure, valid_task = data.exposures(), (data.task >= 0) & (data.task < tasks)
    rules = [
        (data.y.isfinite(), "a value that is not a finite number", data.y),
        (data.supports.isfinite().all(1), "a support that is not finite", data.supports.sum(1)),
        (valid_task, f"a task that is not one of 0 to {tasks - 1}", data.task),
        (exposure.isfinite() & (exposure > 0), "an exposure that is not above zero", exposure),
    ]
    if (noise := data.known) is not None:
        rules.append(
            (noise.isfinite() & (noise >= 0), "known noise whose variance is below zero", noise)
        )
    for good, what, values in rules:
        if not bool(good.all()):
            row = int((~good).nonzero()[0])
            where = f"Row {row} of task {int(data.task[row])}"
            raise BadInput(f"{where} has {what}: {values[row].item():g}.")
    for d in range(tasks):
        if not bool((data.task == d).any()):
            raise BadInput(f"Task {d} has no observation; leave it out or give it one.")


def _thinned(data: Data, rows: int = 2000) -> Data:
    """Equally spaced subset of about `rows` rows if there are more."""
    return data.at(torch.arange(0, len(data.y), max(1, len(data.y) // rows), device=data.y.device))
