"""Corrections of a mixture's shape: tails, and the width of a pool."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_a_pool_of_calibrated_members_is_contracted() -> None:
    """Each member knows one of two parts of y exactly; together they know more than each tells."""
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(2, 4000))
    y = parts.sum(0) + rng.normal(scale=0.1, size=4000)
    members = [MixturePredictive.gaussian(part, np.full(4000, 1.01)) for part in parts]
    halves = [[m.rows(at) for m in members] for at in (slice(2000), slice(2000, None))]
    weights = np.full(2, 0.5)
    shape = Rescaled.fit(halves[0], weights, y[:2000], None, None)
    plain = MixturePredictive.mixed(halves[1], weights)
    told, unseen = shape.combine(halves[1], weights), y[2000:]
    assert shape.spread_factor < 0.9
    assert told.log_prob(unseen).mean() > plain.log_prob(unseen).mean() + 0.01
    assert told.location == pytest.approx(plain.location)
    assert Rescaled.from_meta(shape.meta()) == shape
    assert Rescaled.from_meta({"shape": list(shape.scales)}).spread_factor == 1.0  # of before


def test_rows_without_a_member_keep_their_width() -> None:
    told = MixturePredictive.gaussian(np.zeros(2), np.ones(2))
    partly = told.answering(np.array([True, False]))
    shape = Rescaled(tuple(np.equal(SCALES, 1.0) * 1.0), spread_factor=0.5)
    variance = shape.combine([told, partly], np.array([0.5, 0.5])).variance
    assert variance == pytest.approx([0.25, 1.0])
