"""Temperature scaling of class probabilities on held-out rows.

The bound is trained on few examples of each class, and its softmax is over- or underconfident.
Functions are divided by a temperature before the softmax (Guo et al. 2017). It maximizes the
probability of one row in five of each class under a model trained without these rows. Rows held out
for the report take no part, and the model of the run keeps all its rows.
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

ONE_IN = 5  # one row in so many of each class is left out
MOST_ROWS = 4000  # maximum training rows, for a fit in seconds
FEWEST = 20  # least number of left-out rows
FEWEST_OF_SOME = 8  # the same if they weigh the average as well
MOST_STEPS = 400
COLDEST, HOTTEST = 0.2, 10.0
COLDEST_OF_SOME = 0.05  # if the model is one of several in an average
DRAWS = 64  # samples of the latent functions


def find(
    data: Prepared, model: models.Model, deadline: Deadline = NEVER
) -> tuple[float, str, Average | None]:
    """Return the temperature and a note on it; 1 if there are too few or too many rows.

    The left-out rows also weigh the average with other classifiers, if it is in the settings.

    Args:
        data: Rows of the run.
        model: Its model.
        deadline: Deadline of the whole function.
    """
    s, fewest, one_in = data.settings, FEWEST, ONE_IN
    if s.stack:  # also for small tables, with a larger share of left-out rows
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
    steps = min(s.max_steps, MOST_STEPS)  # as many as in the run, for the same confidence
    rows = prepared, output, label, first
    training = deadline.share(TRAINING_SHARE)
    retrained = list(models.anew(model, s, *rows, steps, s.learning_rate, training))

    def probabilities(log_temperature: float) -> torch.Tensor:
        """Class probabilities of the left-out rows."""
        result = data.x.new_zeros(len(left), int(data.sizes.max()))
        for rows, piece, output_in_piece in retrained:
            left_out_rows = (rows >= first).nonzero().squeeze(1)
            p = piece.predict(
                left_out_rows,
                output_in_piece[left_out_rows],
                DRAWS,
                temperature=math.exp(log_temperature),
            ).probability
            result[rows[left_out_rows] - first, : p.shape[1]] = p
        return result

    def cost(log_temperature: float) -> float:
        true = probabilities(log_temperature).gather(1, label[first:, None])
        return -float(true.clamp(min=1e-300).log().sum()) / len(left)

    coldest = COLDEST_OF_SOME if s.stack else COLDEST
    bounds = (math.log(coldest), math.log(HOTTEST))
    result = minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 0.01})
    value = float(math.exp(result.x))
    average: Average | None = None
    if s.stack:
        p = probabilities(float(result.x)).cpu().numpy()
        offset = data.observed.offset[data.observed.output[data.train[left]]]
        prediction = CategoricalPredictive(p, first=offset)
        average = Average.fit(data, data.train[order], first, prediction, deadline)
    return (
        value,
        (
            f"Functions are divided by a temperature of {value:.2f} before the softmax, chosen on "
            f"{len(left):,} training rows that were held out from a second model."
        ),
        average,
    )


def left_out(number: Int[np.ndarray, " n"], one_in: int = ONE_IN) -> Int[np.ndarray, " k"]:
    """One row in `one_in` of each class, at least one, and none of a class with a single row."""
    results = []
    for c in np.unique(number):
        rows = np.flatnonzero(number == c)
        if len(rows) > 1:
            results.append(rows[-max(1, len(rows) // one_in) :])
    return np.concatenate(results) if results else np.empty(0, int)
