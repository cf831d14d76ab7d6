"""Temperature scaling of class probabilities on held-out rows.

The bound is trained on few examples of each class, and its softmax comes out too sure or too
unsure. Functions are divided by a temperature before the softmax (Guo et al. 2017): the one under
which a model that was not shown one row in five of each class thinks these rows most probable. No
row that is held out for the figures takes part, and the run's own model keeps all its rows.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Int
from scipy.optimize import minimize_scalar

from scant.deadline import NEVER, Deadline
from scant.predictive import CategoricalPredictive
from scant.studies.auto import TRAINING_SHARE
from scant.studies.omniglot import models
from scant.studies.omniglot.partners import Average
from scant.studies.omniglot.prepared import Prepared

ONE_IN = 5  # rows of each class that are not shown
MOST_ROWS = 4000  # of a table, to be done in seconds
FEWEST = 20  # left out, to tell anything
FEWEST_OF_SOME = 8  # the same where they weigh what is averaged as well
MOST_STEPS = 400
COLDEST, HOTTEST = 0.2, 10.0
COLDEST_OF_SOME = 0.05  # where it is one of several that are averaged
DRAWS = 64  # of the latent functions


def find(
    data: Prepared, model: models.Model, deadline: Deadline = NEVER
) -> tuple[float, str, Average | None]:
    """The temperature, and a sentence about it; 1 where there are too few or too many rows.

    The same rows weigh what the probabilities are averaged with, where settings ask for it.

    Args:
        data: The run's rows.
        model: Its model.
        deadline: Of all of it.
    """
    s, fewest, one_in = data.settings, FEWEST, ONE_IN
    if s.stack:  # of small tables too, whose left-out rows are a larger part
        fewest, one_in = FEWEST_OF_SOME, min(ONE_IN, max(2, len(data.train) // FEWEST))
    left = left_out(data.observed.number[data.train], one_in)
    if len(left) < fewest:
        return (
            1.0,
            "Probabilities have no temperature: there are too few rows to estimate one.",
            None,
        )
    if len(data.train) > MOST_ROWS:
        text = f"finding one with {len(data.train):,} rows takes too long."
        return 1.0, f"Probabilities have no temperature: {text}", None
    order = np.concatenate([np.setdiff1d(np.arange(len(data.train)), left), left])
    at = torch.as_tensor(data.train[order]).to(data.device)
    prepared = model.kernel.prepare(data.x[at])
    output, label = data.output[at], data.label[at]
    first = len(order) - len(left)
    steps = min(s.max_steps, MOST_STEPS)  # as long as the run, so that it is as sure as the run
    rows = prepared, output, label, first
    training = deadline.share(TRAINING_SHARE)
    fresh = list(models.anew(model, s, *rows, steps, s.learning_rate, training))

    def chances(log_temperature: float) -> torch.Tensor:
        """Probabilities of the left-out rows' classes."""
        result = data.x.new_zeros(len(left), int(data.sizes.max()))
        for rows, other, own in fresh:
            late = (rows >= first).nonzero().squeeze(1)
            p = other.predict(
                late, own[late], DRAWS, temperature=math.exp(log_temperature)
            ).probability
            result[rows[late] - first, : p.shape[1]] = p
        return result

    def cost(log_temperature: float) -> float:
        true = chances(log_temperature).gather(1, label[first:, None])
        return -float(true.clamp(min=1e-300).log().sum()) / len(left)

    coldest = COLDEST_OF_SOME if s.stack else COLDEST
    bounds = (math.log(coldest), math.log(HOTTEST))
    result = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 0.01})
    value = float(math.exp(result.x))
    average: Average | None = None
    if s.stack:
        p = chances(float(result.x)).cpu().numpy()
        offset = data.observed.offset[data.observed.output[data.train[left]]]
        told = CategoricalPredictive(p, first=offset)
        average = Average.fit(data, data.train[order], first, told, deadline)
    return (
        value,
        (
            f"Functions are divided by a temperature of {value:.2f} before the softmax, chosen on "
            f"{len(left):,} training rows that were held out from a second model."
        ),
        average,
    )


def left_out(number: Int[np.ndarray, " n"], one_in: int = ONE_IN) -> Int[np.ndarray, " k"]:
    """One row in so many of each class, one at least, and none of a class with a single row."""
    results = []
    for c in np.unique(number):
        own = np.flatnonzero(number == c)
        if len(own) > 1:
            results.append(own[-max(1, len(own) // one_in) :])
    return np.concatenate(results) if results else np.empty(0, int)
