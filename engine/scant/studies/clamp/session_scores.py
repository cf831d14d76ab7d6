"""F1 of a person's session, from held-out rows and checks, or by cross-validation."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Bool, Int
from scipy import stats

from scant.models.laplace.one_vs_rest import parts_of, probabilities
from scant.studies.clamp import splits as rows_of
from scant.studies.clamp.active_learner import ActiveLearner
from scant.studies.clamp.fitted import FittedClamp

FOLDS = 4  # of the cross-validation
MIN_LABELS = 12  # for cross-validation


def measured(
    fitted: FittedClamp,
) -> tuple[tuple[float, float, float], tuple[float, float], bool]:
    """F1, precision and recall; an interval of F1; and whether they are of held-out rows.

    Held-out rows are those of the table and the person's checks. If none of them is, or is
    predicted as, the class of interest, the labels are predicted by cross-validation at the present
    hyperparameters; queried rows are harder than average.
    """
    data, session = fitted.data, fitted.active
    nothing = (math.nan, math.nan)
    if not session.rows:
        return (math.nan,) * 3, nothing, False
    test = data.rows.scored
    truth = {int(row): int(data.rows.pool.label[row]) for row in test}
    truth |= fitted.checked
    sought = data.rows.sought
    if truth and (len(test) or session.model is not None):
        at, label = np.array(list(truth)), np.array(list(truth.values()))
        predicted = session.predicted[at]
        interval = f1_interval(label == sought, predicted == sought)
        if not math.isnan(interval[0]):
            return rows_of.scores(label, predicted, sought), interval, True
    label = np.array(session.labels)
    counts = [count for count in session.counts if count]
    if len(label) < MIN_LABELS or len(counts) < 2 or min(counts) < 2 or session.model is None:
        return (math.nan,) * 3, nothing, False
    return rows_of.scores(label, by_folds(session), sought), nothing, False


def f1_interval(
    truth: Bool[np.ndarray, " n"], predicted: Bool[np.ndarray, " n"], level: float = 0.95
) -> tuple[float, float]:
    """An interval of F1 from rows drawn at random.

    F1 = 2 q / (1 + q), with q the share of true positives among all rows that are, or are predicted
    as, the class of interest; q has Jeffreys' interval. NaN where there is no such row.
    """
    hits = int((truth & predicted).sum())
    misses = int((truth | predicted).sum()) - hits
    if not hits + misses:
        return math.nan, math.nan
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    low, high = stats.beta.ppf(tails, hits + 0.5, misses + 0.5)
    low, high = (0.0 if not hits else low), (1.0 if not misses else high)
    return float(2 * low / (1 + low)), float(2 * high / (1 + high))


def by_folds(session: ActiveLearner) -> Int[np.ndarray, " n"]:
    """Class of each labeled row, predicted from the labels of the other folds."""
    assert session.model is not None
    label = torch.tensor(session.labels, device=session.x.device)
    x = session.model.x
    fold = torch.arange(len(label), device=x.device) % FOLDS
    predicted = torch.zeros_like(label)
    for i in range(FOLDS):
        out = fold == i
        rest = session.model.refit(x[~out], label[~out])
        for part, full in zip(parts_of(rest), parts_of(session.model)):
            part.a = full.a[~out].clone()
        predicted[out] = probabilities(rest, x[out]).argmax(1)
    return np.asarray(predicted.cpu().numpy())
