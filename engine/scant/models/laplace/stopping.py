"""Stopping criteria of active learning: how much F1 still changes, observed and expected.

Yousefi (2021, section 4.4) stops when F1 of validation rows no longer rises. With few of a rare
class among them that F1 is noise, and its rest is no sign. So the advice is by the change of F1
that two predictions of the same rows tell without any label (Altschuler & Bloodgood 2019): with a
rows that both take for the class of interest, and b and c that only one does, F1 of one by the
other is 2 a / (2 a + b + c), and what lacks to 1 is the change. Beside it stand how many
predictions the last batch flipped, and how many the next is expected to flip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scant.models.laplace.classifier import LaplaceGPC
from scant.models.laplace.links import probability

HALVINGS = 30  # in the search for one row's own f
# Of some 70 rules the best on 18 sessions of trenches (1 : 20, 1 : 4), mitoses (1 : 20) and screws
# with at most 200 to 400 labels; with none held out, its figures are optimistic: 10 came to a stop,
# after 71 % of the labels, and 9 of these had F1 within 0.02 of that at the end.
SETTLED = 0.002  # change of F1 by a batch, on average over the last ones
WINDOW = 8  # batches
ENOUGH = 20  # labels of each class before a stop is advised
ALL_FOUND = 30  # labels of the class of interest after which none need be predicted
LATEST = 10  # averages from which the labels still needed are extrapolated
MANY = 10  # times the labels so far, beyond which the trend tells nothing


@dataclass(frozen=True)
class Advice:
    """Whether to stop, and why.

    Attributes:
        stop: Enough of each class is labeled, the class of interest is predicted, and predictions
            have settled.
        flips: Share of the pool whose predicted class the last batch changed; NaN before one.
        expected: Rows whose predicted class the next batch is expected to change.
        change: Of F1 by a batch, mean of the last ones; NaN before `window` of them.
        remaining: Labels after which a stop is to be expected; 0 at the stop, NaN unknown.
        text: A sentence or two.
    """

    stop: bool
    flips: float
    expected: float
    change: float
    remaining: float
    text: str


def flips(before: Float[Tensor, "n k"], after: Float[Tensor, "n k"]) -> float:
    """Share of rows whose predicted class changed."""
    if not len(after):
        return 0.0
    return float((before.argmax(1) != after.argmax(1)).double().mean())


def change(before: Bool[np.ndarray, " n"], after: Bool[np.ndarray, " n"]) -> float:
    """1 less the F1 of one prediction of the class of interest by another; 1 where neither has it.

    Predictions without a row of the class have not settled: nothing is known of them.
    """
    total = int(before.sum()) + int(after.sum())
    return 1 - 2 * int((before & after).sum()) / total if total else 1.0


def remaining(changes: Sequence[float], labels: int, batch: int, window: int = WINDOW) -> float:
    """Labels until the changes come to rest, by their trend; NaN where they have none.

    The changes fall as a power of the number of labels, of which the last ones tell the exponent.

    Args:
        changes: Of F1, by batch, the last at `labels`.
        labels: So far.
        batch: Labels of a batch.
        window: Batches over which a stop averages.
    """
    known = np.array(changes, dtype=float)
    if len(known) < window + 2 or labels <= 0:
        return math.nan
    if known[-window:].mean() <= SETTLED:
        return 0.0
    smooth = np.convolve(known, np.full(window, 1 / window), "valid")[-LATEST:]
    count = labels - batch * (np.arange(len(smooth))[::-1] + (window - 1) / 2)
    x, y = np.log(np.maximum(count, 1.0)), np.log(np.maximum(smooth, SETTLED / 2))
    slope = float(np.polyfit(x, y, 1)[0]) if np.ptp(x) > 0 else 0.0
    if slope > -0.5:  # no fall, or one that comes to rest after more than many times the labels
        return math.nan
    level = float(np.exp(np.mean(y) - slope * np.mean(x)))
    needed = (SETTLED / level) ** (1 / slope)
    if needed > MANY * labels:
        return math.nan
    return float(max(batch, needed + batch * (window - 1) / 2 - labels))


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
    changes: Sequence[float],
    counts: Sequence[int],
    predicted: int,
    *,
    flipped: float,
    expected: float,
    rows: int,
    labels: int,
    batch: int,
    window: int = WINDOW,
    sought: str = "the class of interest",
) -> Advice:
    """Whether to go on, in words.

    Args:
        changes: Of F1 by batch (`change`), the last one last.
        counts: Labels of each class so far, those of the class of interest last.
        predicted: Rows without a label that are taken for the class of interest.
        flipped: Share of the pool that the last batch changed; NaN where nothing was before it.
        expected: Rows that the next batch is expected to change.
        rows: Of the pool.
        labels: So far.
        batch: Labels of a batch.
        window: Batches over which the changes are averaged.
        sought: The class of interest.
    """
    mean = float(np.mean(changes[-window:])) if len(changes) >= window else math.nan
    few = min(counts) < ENOUGH
    none = predicted == 0 and counts[-1] < ALL_FOUND
    stop = not few and not none and mean <= SETTLED
    left = 0.0 if stop else math.nan
    if not few and not none and not stop:
        left = remaining(changes, labels, batch, window)
    if sum(count > 0 for count in counts) < 2:
        text = "Go on: only one class has been seen, and nothing is told apart yet."
        return Advice(False, flipped, expected, mean, math.nan, text)
    said = []
    if few:
        rare = min(counts)
        said.append(
            f"of the rarest class {rare} label{'s are' if rare != 1 else ' is'} there, and "
            f"{ENOUGH} are needed to tell"
        )
    elif none:
        said.append(f"no patch without a label is taken for {sought} yet")
    elif not math.isnan(mean):
        said.append(f"a batch changed F1 by about {mean:.3f} in the last {window}")
    if not math.isnan(flipped):
        said.append(f"the last batch changed {flipped:.1%} of the pool's predictions")
    count = f"{expected:.0f} of {rows:,}" if expected >= 0.5 else f"none of {rows:,}"
    if not math.isnan(expected):
        said.append(f"the next is expected to change {count}")
    if left > 0:
        said.append(f"some {left:,.0f} more labels may be needed")
    lead = "You may stop" if stop else "Go on"
    return Advice(stop, flipped, expected, mean, left, f"{lead}: {', '.join(said)}.")
