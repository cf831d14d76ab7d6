"""Predictive distributions of table rows, as plain arrays.

Every model, baseline and general tool returns one of these forms; scores, intervals, tables and
figures are computed from them.

Example:
    >>> import numpy as np
    >>> from scant.predictive import MixturePredictive
    >>> predictive = MixturePredictive.gaussian(np.zeros(3), np.ones(3))
    >>> low, high = predictive.interval(0.95)
"""

from scant.predictive.base import Predictive, ValuePredictive
from scant.predictive.categorical import BernoulliPredictive, CategoricalPredictive
from scant.predictive.counts import CountsPredictive
from scant.predictive.joined import JoinedPredictive
from scant.predictive.mixture import MixturePredictive

__all__ = [
    "BernoulliPredictive",
    "CategoricalPredictive",
    "CountsPredictive",
    "JoinedPredictive",
    "MixturePredictive",
    "Predictive",
    "ValuePredictive",
]
