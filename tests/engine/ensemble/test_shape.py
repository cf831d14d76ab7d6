"""Corrections of a mixture's shape: tails, and the width of a pool."""

from __future__ import annotations

import numpy as np
import pytest

from scant.ensemble import Contracted, Rescaled
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
    shape = Contracted.fit(halves[0], weights, y[:2000], None, None)
    plain = MixturePredictive.mixed(halves[1], weights)
    told, unseen = shape.combine(halves[1], weights), y[2000:]
    assert np.median(told.variance / plain.variance) < 0.85
    assert told.log_prob(unseen).mean() > plain.log_prob(unseen).mean() + 0.01
    assert told.location == pytest.approx(plain.location)
    assert Contracted.from_meta(shape.meta()) == shape


def test_spreads_that_vary_too_little_vary_more() -> None:
    rng = np.random.default_rng(2)
    spread = np.exp(rng.normal(scale=0.6, size=4000))
    y = spread * rng.normal(size=4000)
    told = MixturePredictive.gaussian(np.zeros(4000), spread)  # standard deviation: its root
    shape = Contracted.fit([told.rows(slice(2000))], np.ones(1), y[:2000], None, None)
    new, unseen = told.rows(slice(2000, None)), y[2000:]
    corrected = shape.combine([new], np.ones(1))
    assert corrected.log_prob(unseen).mean() > new.log_prob(unseen).mean() + 0.05
    log_std = np.log(corrected.variance) / 2
    assert np.std(log_std) == pytest.approx(0.6, rel=0.2)


def test_the_factor_of_older_runs_is_a_constant() -> None:
    told = MixturePredictive.gaussian(np.zeros(2), np.array([1.0, 9.0]))
    old = Contracted.from_meta({"spread_factor": 0.5})
    assert old.combine([told], np.ones(1)).variance == pytest.approx([0.25, 2.25])


def test_equal_spreads_have_no_slope() -> None:
    rng = np.random.default_rng(3)
    spread = 1 + 1e-15 * rng.normal(size=1000)
    told = MixturePredictive.gaussian(np.zeros(1000), spread)
    shape = Contracted.fit([told], np.ones(1), 0.5 * rng.normal(size=1000), None, None)
    new = MixturePredictive.gaussian(np.zeros(2), np.array([1.0, 1 + 1e-14]))
    first, second = shape.combine([new], np.ones(1)).variance
    assert first == pytest.approx(second)
    assert first < 0.5


def test_few_rows_contract_nothing() -> None:
    told = MixturePredictive.gaussian(np.zeros(10), np.ones(10))
    shape = Contracted.fit([told], np.ones(1), np.zeros(10), None, None)
    assert shape.combine([told], np.ones(1)).variance == pytest.approx(np.ones(10))


def test_rows_without_a_member_keep_their_width() -> None:
    told = MixturePredictive.gaussian(np.zeros(2), np.ones(2))
    partly = told.answering(np.array([True, False]))
    shape = Rescaled(contraction=Contracted.from_meta({"spread_factor": 0.5}))
    variance = shape.combine([told, partly], np.array([0.5, 0.5])).variance
    assert variance == pytest.approx([0.25, 1.0])
