"""Stopping criteria of active learning, based on the observed and expected change of F1.

Yousefi (2021, section 4.4) stops when the F1 on validation rows no longer increases; with few rows
of a rare class that F1 is mostly noise. The advice here uses the change of F1 estimated from two
successive predictions without labels (Altschuler & Bloodgood 2019): if a rows are predicted to be
of the class of interest by both, and b and c rows by one only, the F1 between them is
2 a / (2 a + b + c), and the change is 1 - F1. The advice also reports the number of predictions
changed by the last batch, and the number that the next batch is expected to change.
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

HALVINGS = 30  # bisection steps for f of one row
# The best of about 70 rules on 18 sessions of trenches (1 : 20, 1 : 4), mitoses (1 : 20), screws.
# On 73 other sessions (ten pools of photographs, cells, characters, digits, texts and signals; 190
# to 430 labels) 47 stopped, after 72 % of the labels on average, with an F1 lower by 0.001 than at
# the end; 8 of them lost more than 0.02, none more than 0.05.
SETTLED = 0.002  # mean change of F1 per batch at which to stop
WINDOW = 8  # batches of the mean
ENOUGH = 20  # labels of each class before a stop is advised
ALL_FOUND = 30  # labels of the class of interest after which none need be predicted
LATEST = 10  # moving averages used to extrapolate the number of labels
MAX_FACTOR = 10  # extrapolations beyond this multiple of the current labels are discarded


@dataclass(frozen=True)
class Advice:
    """Recommendation whether to stop labeling, with its reasons.

    Attributes:
        stop: True if each class has enough labels, the class of interest is predicted, and
            predictions have converged.
        flips: Share of the pool with a predicted class changed by the last batch; NaN before one.
        expected: Number of rows whose predicted class the next batch is expected to change.
        change: Mean change of F1 over the last `window` batches; NaN before.
        remaining: Expected number of labels until the stop; 0 at the stop, NaN if unknown.
        text: Explanation for the user.
    """

    stop: bool
    flips: float
    expected: float
    change: float
    remaining: float
    text: str


def flips(before: Float[Tensor, "n k"], after: Float[Tensor, "n k"]) -> float:
    """Share of rows with a changed predicted class."""
    if not len(after):
        return 0.0
    return float((before.argmax(1) != after.argmax(1)).double().mean())


def change(before: Bool[np.ndarray, " n"], after: Bool[np.ndarray, " n"]) -> float:
    """1 - F1 between two predictions of the class of interest; 1 if neither predicts any row."""
    total = int(before.sum()) + int(after.sum())
    return 1 - 2 * int((before & after).sum()) / total if total else 1.0


def remaining(changes: Sequence[float], labels: int, batch: int, window: int = WINDOW) -> float:
    """Expected number of labels until the changes of F1 converge; NaN if they have no trend.

    The changes are extrapolated by a power law in the number of labels.

    Args:
        changes: Change of F1 by each batch, the last one at `labels`.
        labels: Current number of labels.
        batch: Labels per batch.
        window: Number of batches averaged for a stop.
    """
    observed = np.array(changes, dtype=float)
    if len(observed) < window + 2 or labels <= 0:
        return math.nan
    if observed[-window:].mean() <= SETTLED:
        return 0.0
    smooth = np.convolve(observed, np.full(window, 1 / window), "valid")[-LATEST:]
    count = labels - batch * (np.arange(len(smooth))[::-1] + (window - 1) / 2)
    x, y = np.log(np.maximum(count, 1.0)), np.log(np.maximum(smooth, SETTLED / 2))
    slope = float(np.polyfit(x, y, 1)[0]) if np.ptp(x) > 0 else 0.0
    if slope > -0.5:  # no decrease, or one that is too slow
        return math.nan
    level = float(np.exp(np.mean(y) - slope * np.mean(x)))
    needed = (SETTLED / level) ** (1 / slope)
    if needed > MAX_FACTOR * labels:
        return math.nan
    return float(max(batch, needed + batch * (window - 1) / 2 - labels))


@torch.no_grad()
def expected_flips(
    model: LaplaceGPC,
    mean: Float[Tensor, " n"],
    covariance: Float[Tensor, "n k"],
    query_mean: Float[Tensor, " k"],
    query_variance: Float[Tensor, " k"],
) -> Float[Tensor, " k"]:
    """Expected number of pool rows that change class with the label of each query row.

    The expectation is over both labels. A label moves f at its row to the new posterior mode and
    shifts the pool accordingly; the other rows' contributions and the kernel are kept fixed. A row
    changes class if the mean of f changes sign.

    Args:
        model: Classifier, for its link.
        mean: Means of f at the pool.
        covariance: Posterior covariance of pool and query rows.
        query_mean: Means of f at the query rows.
        query_variance: Variances of f at the query rows.
    """
    p = probability(model.link_name, query_mean, query_variance)
    total = torch.zeros_like(query_mean)
    for sign, weight in ((1.0, p), (-1.0, 1 - p)):
        y = torch.full_like(query_mean, sign)
        low, high = query_mean, query_mean + query_variance * model.link(query_mean, y).slope
        for _ in range(HALVINGS):  # bisection for f = mean + variance x slope(f)
            f = (low + high) / 2
            too_high = sign * (f - query_mean - query_variance * model.link(f, y).slope) > 0
            low, high = torch.where(too_high, low, f), torch.where(too_high, f, high)
        shifted = mean[:, None] + covariance * model.link(low, y).slope
        total += weight * ((shifted > 0) != (mean[:, None] > 0)).to(mean).sum(0)
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
    """Recommend whether to stop labeling.

    Args:
        changes: Change of F1 by each batch (`change`).
        counts: Number of labels of each class, that of the class of interest last.
        predicted: Number of unlabeled rows predicted to be of the class of interest.
        flipped: Share of the pool changed by the last batch; NaN for the first one.
        expected: Number of rows that the next batch is expected to change.
        rows: Size of the pool.
        labels: Current number of labels.
        batch: Labels per batch.
        window: Number of batches over which changes are averaged.
        sought: Name of the class of interest.
    """
    mean = float(np.mean(changes[-window:])) if len(changes) >= window else math.nan
    too_few = min(counts) < ENOUGH
    none = predicted == 0 and counts[-1] < ALL_FOUND
    stop = not too_few and not none and mean <= SETTLED
    still_needed = 0.0 if stop else math.nan
    if not too_few and not none and not stop:
        still_needed = remaining(changes, labels, batch, window)
    if sum(count > 0 for count in counts) < 2:
        text = "Go on: all labels are of one class, so the classes cannot be told apart yet."
        return Advice(False, flipped, expected, mean, math.nan, text)
    parts = []
    if too_few:
        rare = min(counts)
        parts.append(
            f"the rarest class has {rare} label{'s' if rare != 1 else ''}, and {ENOUGH} are needed "
            "to decide"
        )
    elif none:
        parts.append(f"no unlabeled row is predicted to be {sought} yet")
    elif not math.isnan(mean):
        parts.append(f"a batch changed F1 by about {mean:.3f} in the last {window:,}")
    if not math.isnan(flipped):
        parts.append(f"the last batch changed {flipped:.1%} of the pool's predictions")
    if expected >= 0.5:
        parts.append(f"the next is expected to change {expected:.0f} of {rows:,}")
    elif not math.isnan(expected):
        parts.append(f"the next is expected to change none of {rows:,}")
    if still_needed > 0:
        parts.append(f"about {still_needed:,.0f} more labels may be needed")
    text = f"{'You may stop' if stop else 'Go on'}: {', '.join(parts)}."
    return Advice(stop, flipped, expected, mean, still_needed, text)
