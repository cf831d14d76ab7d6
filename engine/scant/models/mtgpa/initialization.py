"""Where MTGPA starts: inducing points, their spacing, and which tasks go against each other."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from scant.errors import BadInput
from scant.inference.kmeans import kmeans_centres, square_distances
from scant.kernels.box_average.support import centroids, pieces
from scant.models.mtgpa.prior import Data

ROWS = 20_000  # more centres than that do not move their clusters' means


def inducing_points(
    supports: Float[Tensor, "n c"],
    dimensions: int,
    count: int,
    place: str,
    generator: torch.Generator,
) -> Float[Tensor, "m d"]:
    """Inducing points for supports.

    Args:
        place: `"kmeans"`: over the centres of the supports, each dimension scaled to unit variance
            (Yousefi 2021, section 5.3). `"even"`: the largest grid of at most `count` points, the
            same spacing in the same scale, over the box that holds all supports. `"inside"`: over
            the pieces of all supports, or all of them, where they are no more than `count`.
        generator: A CPU generator.

    Raises:
        BadInput: A count below one, or an unknown place.
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
        centres = torch.unique(middles.flatten(0, 1), dim=0)  # padding lies where others do
        if len(centres) <= count:
            return centres
    scale = centres.std(0, correction=0).clamp(min=1e-12)
    if len(centres) > ROWS:
        centres = centres[torch.randperm(len(centres), generator=generator)[:ROWS]]
    return kmeans_centres(centres / scale, count, generator) * scale


def _even(supports: Tensor, dimensions: int, count: int) -> Tensor:
    lower, upper = extent(supports, dimensions)
    wide = (upper - lower).clamp(min=1e-12)
    # Counts in proportion to the extents in units of the centres' deviation, their product `count`.
    ratio = wide / centroids(supports, dimensions).std(0, correction=0).clamp(min=1e-12)
    counts = (ratio * (count / ratio.prod()) ** (1 / dimensions)).floor().clamp(min=1).long()
    axes = [
        torch.linspace(lo, hi, int(k) + 2, dtype=wide.dtype)[1:-1]
        if k < 2
        else torch.linspace(lo, hi, int(k), dtype=wide.dtype)
        for lo, hi, k in zip(lower.tolist(), upper.tolist(), counts)
    ]
    return torch.cartesian_prod(*axes).reshape(-1, dimensions).to(supports)


def extent(
    supports: Float[Tensor, "n c"], dimensions: int
) -> tuple[Float[Tensor, " d"], Float[Tensor, " d"]]:
    """Corners of the box that holds all supports."""
    parts = pieces(supports, dimensions)
    return parts.lower.amin((0, 1)), parts.upper.amax((0, 1))


def spacing(
    supports: Float[Tensor, "n c"], dimensions: int, count: int | None = None
) -> Float[Tensor, " d"]:
    """How far these, or `count` points, would lie apart in each dimension on a grid."""
    lower, upper = extent(supports, dimensions)
    sides = (count or len(supports)) ** (1 / dimensions)
    return torch.where(upper > lower, upper - lower, torch.ones_like(lower)) / sides


def signs(data: Data, dimensions: int, tasks: int) -> Float[Tensor, " t"]:
    """+1 for tasks that go with the largest one where they meet, -1 for those that go against it.

    Started with the wrong sign, a mixture of one latent function seldom finds the other. Rows are
    compared with the nearest row of the largest task; without a clear correlation the sign is +1.
    """
    largest = max(range(tasks), key=lambda d: int((data.task == d).sum()))
    scale = centroids(data.supports, dimensions).std(0, correction=0).clamp(min=1e-12)
    reference = _few(data.of_task(largest))
    places = centroids(reference.supports, dimensions) / scale
    found = data.y.new_ones(tasks)
    for d in range(tasks):
        own = _few(data.of_task(d))
        nearest = square_distances(centroids(own.supports, dimensions) / scale, places).argmin(1)
        pair = torch.stack([own.y, reference.y[nearest]])
        r = torch.corrcoef(pair)[0, 1] if len(own.y) > 2 else pair.new_zeros(())
        if r < -2 / len(own.y) ** 0.5:
            found[d] = -1
    return found


def check(data: Data, tasks: int) -> None:
    """See that every row can be used and every task has one.

    Raises:
        BadInput: Naming the first row or task that is not so.
    """
    exposure, known = data.exposures(), (data.task >= 0) & (data.task < tasks)
    rules = [
        (data.y.isfinite(), "a value that is not a finite number", data.y),
        (data.supports.isfinite().all(1), "a support that is not finite", data.supports.sum(1)),
        (known, f"a task that is not one of 0 to {tasks - 1}", data.task),
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


def _few(data: Data, rows: int = 2000) -> Data:
    """Evenly chosen rows, where there are more than that."""
    return data.at(torch.arange(0, len(data.y), max(1, len(data.y) // rows), device=data.y.device))
