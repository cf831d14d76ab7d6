"""Stopping criteria of active learning: observed and expected changes of predictions.

Yousefi (2021, section 4.4) stops when F1 of validation rows no longer rises. Beside it stand how
many predictions the last batch flipped, and how many the next is expected to flip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from scant.models.laplace.classifier import LaplaceGPC
from scant.models.laplace.links import probability
from torch import Tensor

HALVINGS = 30  # in the search for one row's own f
FLIPS = 0.02  # of the pool, by one batch: more, and the predictions have not settled


@dataclass(frozen=True)
class Advice:
    """Whether to stop, and why.

    Attributes:
        stop: Predictions have settled, and F1 has come to rest; where F1 is not known, the next
            batch is not expected to change more than a few.
        flips: Share of the pool whose predicted class the last batch changed; NaN before one.
        expected: Rows whose predicted class the next batch is expected to change.
        plateau: Batches since F1 last rose by more than the tolerance.
        text: A sentence or two.
    """

    stop: bool
    flips: float
    expected: float
    plateau: int
    text: str


def plateau(f1: Sequence[float], tolerance: float = 0.005) -> int:
    """Batches since the score last rose by more than the tolerance; NaN does not count as a rise.

    Steps count as in `scant.training.loop`: small gains add up until together they pass it.
    """
    anchor, since = -math.inf, 0
    for value in f1:
        since += 1
        if value > anchor + tolerance:
            anchor, since = value, 0
    return since


def flips(before: Float[Tensor, " n"], after: Float[Tensor, " n"]) -> float:
    """Share of rows whose predicted class changed."""
    if not len(after):
        return 0.0
    return float(((before > 0.5) != (after > 0.5)).double().mean())


@torch.no_grad()
def expected_flips(
    model: LaplaceGPC,
    mean: Float[Tensor, " n"],
    covariance: Float[Tensor, "n k"],
    asked_mean: Float[Tensor, " k"],
    asked_variance: Float[Tensor, " k"],
) -> Float[Tensor, " k"]:
    """Rows of the pool whose class would change with the label of each row asked about.

    Both labels count with their probabilities. A label moves f at its row to where the posterior is
    then highest, and with it the rest of the pool; the classifier's other rows, and what it knows
    of its kernel, stay. A class changes where the mean of f changes its sign.

    Args:
        model: The classifier, for its link.
        mean: Of f at the pool.
        covariance: Posterior covariance of the pool and the rows asked about.
        asked_mean: Of f at the rows asked about.
        asked_variance: Likewise.
    """
    p = probability(model.link_name, asked_mean, asked_variance)
    total = torch.zeros_like(asked_mean)
    for sign, weight in ((1.0, p), (-1.0, 1 - p)):
        y = torch.full_like(asked_mean, sign)
        near, far = asked_mean, asked_mean + asked_variance * model.link(asked_mean, y).slope
        for _ in range(HALVINGS):  # of the way to where f = mean + variance x slope(f)
            f = (near + far) / 2
            beyond = sign * (f - asked_mean - asked_variance * model.link(f, y).slope) > 0
            near, far = torch.where(beyond, near, f), torch.where(beyond, f, far)
        moved = mean[:, None] + covariance * model.link(near, y).slope
        total += weight * ((moved > 0) != (mean[:, None] > 0)).to(mean).sum(0)
    return total


def advise(
    f1: Sequence[float],
    flipped: float,
    expected: float,
    rows: int,
    *,
    patience: int = 5,
    tolerance: float = 0.005,
    both: bool = True,
) -> Advice:
    """Whether to go on, in words.

    Args:
        f1: Of the validation rows after every batch; empty where there are none.
        flipped: Share of the pool that the last batch changed; NaN where nothing was before it.
        expected: Rows that the next batch is expected to change.
        rows: Of the pool.
        patience: Batches without a rise that count as rest.
        tolerance: Of a rise.
        both: Whether both classes have been seen.
    """
    if not both:
        text = "Go on: only one class has been seen, and nothing is told apart yet."
        return Advice(False, flipped, expected, 0, text)
    rest = plateau(f1, tolerance) if f1 else 0
    # What is expected counts surprises that hardly ever come; F1, where it is known, does not.
    calm = flipped <= FLIPS and (bool(f1) or expected <= max(1.0, FLIPS * rows))
    stop = calm and (rest >= patience or not f1)
    said = []
    if f1 and rest >= patience:
        said.append(f"F1 has not risen by more than {tolerance:g} in {rest} batches")
    elif f1 and rest:
        said.append(f"F1 last rose {rest} batch{'es' if rest > 1 else ''} ago")
    elif len(f1) > 1:
        said.append("F1 still rises")
    if not math.isnan(flipped):
        said.append(f"the last batch changed {flipped:.1%} of the pool's predictions")
    count = f"{expected:.0f} of {rows:,}" if expected >= 0.5 else f"none of {rows:,}"
    said.append(f"the next is expected to change {count}")
    lead = "You may stop" if stop else "Go on"
    return Advice(stop, flipped, expected, rest, f"{lead}: {', '.join(said)}.")
