"""One ensemble for all studies: predictive distributions averaged by rows that were left out.

Example:
    >>> import numpy as np
    >>> from scant.ensemble import Ensemble, Sharpened
    >>> from scant.predictive import CategoricalPredictive
    >>> y = np.array([0, 1, 0, 1])
    >>> sure = CategoricalPredictive(np.eye(2)[y] * 0.8 + 0.1)
    >>> shares = CategoricalPredictive(np.full((4, 2), 0.5))
    >>> left_out = {"sure": sure, "shares": shares}
    >>> ensemble = Ensemble.fit(left_out, y, Sharpened)
    >>> answer = ensemble.combine(left_out)
"""

from scant.ensemble.ensemble import LEFT_OUT, Ensemble, describe, sentence
from scant.ensemble.shape import Contracted, Rescaled, Shape, Sharpened, Widened

__all__ = [
    "LEFT_OUT",
    "Contracted",
    "Ensemble",
    "Rescaled",
    "Shape",
    "Sharpened",
    "Widened",
    "describe",
    "sentence",
]
