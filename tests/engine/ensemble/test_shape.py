"""Corrections of a mixture's shape: tails."""

from __future__ import annotations

import numpy as np

from scant.ensemble import Rescaled
from scant.ensemble.shape import SCALES
from scant.predictive import MixturePredictive


def _fitted(error: np.ndarray) -> Rescaled:
    told = MixturePredictive.gaussian(np.zeros(len(error)), np.ones(len(error)))
    shape = Rescaled.fit([told, told], np.array([0.6, 0.4]), error, None, None)
    np.testing.assert_allclose(sum(shape.scales), 1)
    return shape


def test_heavy_tails_are_found_and_a_few_rows_stay_gaussian() -> None:
    rng = np.random.default_rng(0)
    heavy = rng.standard_t(4, size=4000)
    unseen = heavy[2000:]
    told = MixturePredictive.gaussian(np.zeros(2000), np.ones(2000))
    mixed = _fitted(heavy[:2000]).combine([told], np.ones(1))
    assert mixed.log_prob(unseen).mean() > told.log_prob(unseen).mean() + 0.1
    assert _fitted(rng.normal(size=20)).scales[SCALES.index(1.0)] > 0.5
