"""Where a rival is ahead of this run, and where it is not: part by part of the held-out rows.

A difference counts where it is beyond two standard errors, of the same rows' paired differences.
In each part this run meets whichever rival is best there, so that of twenty parts in which there is
no difference about one will count for the rivals.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from scant.predictive.scored import Scored
from scant.verdict import Contest, Part

ERRORS = 2.0  # standard errors beyond which a difference counts
LEAST = 30  # rows of a part: of fewer, a standard error says little
BINS = 4  # of the truth, with as many rows each

Rows = Float[ndarray, " t"]


def everywhere(own: Scored, others: Mapping[str, Scored], of: str) -> list[Part]:
    """All rows, then those in bins of the truth.

    Args:
        own: What this run says.
        others: What rivals say.
        of: What the truth is called.
    """
    y = own.y
    found = part(Part("all", rows=len(y)), own, others)
    edges = bins(y)
    for start, stop in pairwise(edges):
        rows = (y >= start) & ((y < stop) | (stop == edges[-1]))
        at = Part("truth", of, float(start), float(stop), int(rows.sum()))
        found += part(at, own.rows(rows), {n: p.rows(rows) for n, p in others.items()})
    return found


def part(at: Part, own: Scored, others: Mapping[str, Scored]) -> list[Part]:
    """This run and the best rival by each score that both have; nothing of too few rows."""
    found: list[Part] = []
    if len(own) < LEAST:
        return found
    for score in ("RMSE", "mean log-likelihood", "CRPS"):
        ours, losses = loss(score, own), {n: loss(score, p) for n, p in others.items()}
        known = {n: each for n, each in losses.items() if each is not None}
        if ours is None or not known:
            continue
        best = min(known, key=lambda n: known[n].mean())
        found.append(at.told(_contest(score, ours, best, known[best])))
    return found


def loss(score: str, told: Scored) -> Rows | None:
    """Of each row; the mean is the score, its negative, or its square. None: it has no such."""
    if score == "RMSE":
        return (told.y - told.value) ** 2
    if not told.dense:
        return None
    return told.crps if score == "CRPS" else -told.log_density


def _contest(score: str, ours: Rows, name: str, theirs: Rows) -> Contest:
    a, b = float(ours.mean()), float(theirs.mean())
    if score == "RMSE":  # to first order, the error of a root is that of the mean over twice it
        a, b = a**0.5, b**0.5
        ours, theirs = ours / max(2 * a, 1e-300), theirs / max(2 * b, 1e-300)
    half = ERRORS * float(np.std(theirs - ours, ddof=1)) / len(ours) ** 0.5
    a, b = (-a, -b) if score == "mean log-likelihood" else (a, b)
    made = Contest(score, a, name, b)
    return Contest(score, a, name, b, made.gain - half, made.gain + half)


def bins(y: Rows) -> Float[ndarray, " e"]:
    """Edges of bins with about as many rows each, in round figures; fewer bins of few rows."""
    count = min(BINS, len(y) // LEAST)
    spread = float(np.ptp(y))
    if count < 2 or spread == 0:
        return np.zeros(0)
    inner = np.quantile(y, np.arange(1, count) / count)
    digits = int(np.ceil(-np.log10(spread))) + 1
    return np.unique([y.min(), *np.clip(np.round(inner, digits), y.min(), y.max()), y.max()])
