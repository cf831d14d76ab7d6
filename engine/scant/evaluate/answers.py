"""What general tools say of a problem's held-out rows, part by part, with gaps and bounds."""

from __future__ import annotations

import warnings

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from scant.deadline import NEVER, Deadline
from scant.errors import BadInput
from scant.evaluate.problem import Problem
from scant.inference.censored import uncensored
from scant.predictive import CategoricalPredictive, MixturePredictive, Predictive
from scant.rivals.cost import MOST_ROWS
from scant.rivals.knocked_out import knocked
from scant.rivals.rival import MeanVariance, Rival

USED = "the time for comparisons was used up."


def answer(rival: Rival, c: Problem, deadline: Deadline = NEVER) -> Predictive:
    """What a general tool says of the held-out rows.

    Raises:
        BadInput: It would take too long.
    """
    parts, begun = c.parts(), deadline.used
    values = np.zeros(len(c.y_test))
    variance: ndarray | None = np.zeros(len(c.y_test))
    chances = np.zeros((len(c.y_test), c.classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence and of constant columns, one a fit
        for k, (_, mine, asked) in enumerate(parts):
            if k == 1 and (len(parts) - 1) * (deadline.used - begun) > deadline.left:
                raise BadInput(USED)
            mine = _some(mine)
            x, y, new = c.x[mine], c.y[mine], c.x_test[asked]
            present = len(np.unique(y)) if c.classes else 0
            if not rival.takes(len(y), x.shape[1], present):
                raise BadInput("there are too many rows, columns or classes for it.")
            if c.classes == 0:
                unseen = 0.0
                if c.late is not None:
                    *_, y, rest = uncensored(y, c.late[mine])
                    unseen = float(rest.mean())
                values[asked], spread = _values(rival, c, x, y, new)
                spread = None if spread is None else spread + unseen
                variance = (
                    None if spread is None or variance is None else _set(variance, asked, spread)
                )
            elif present < 2:
                chances[asked, int(y[0]) if len(y) else 0] = 1.0
            else:
                chances[asked] = rival.ask(x, y.astype(int), new, c.classes)
    if c.classes and rival.certain:
        return CategoricalPredictive.named(chances.argmax(1), c.classes)
    if c.classes:
        return CategoricalPredictive(chances)
    return MixturePredictive.gaussian(values, variance)


def _values(
    rival: Rival,
    c: Problem,
    x: Float[ndarray, "m d"],
    y: Float[ndarray, " m"],
    new: Float[ndarray, "q d"],
) -> MeanVariance:
    """Mean and variance; of rows with gaps by a fit to rows of which each lacks something."""
    gaps = np.isnan(new).any(1)
    if c.blocks is None or not gaps.any():
        answer: MeanVariance = rival.ask(x, y, new)
        return answer
    lacking = knocked(np.random.default_rng(0), x, c.blocks)
    mean, variance = np.zeros(len(new)), np.zeros(len(new))
    for rows, learned in ((~gaps, x), (gaps, lacking)):
        if rows.any():
            mean[rows], spread = rival.ask(learned, y, new[rows])
            variance[rows] = np.nan if spread is None else spread
    return mean, None if np.isnan(variance).any() else variance


def _set(target: ndarray, at: Int[ndarray, " q"], values: ndarray) -> ndarray:
    target[at] = values
    return target


def _some(rows: Int[ndarray, " n"]) -> Int[ndarray, " m"]:
    if len(rows) <= MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).permutation(rows)[:MOST_ROWS])
