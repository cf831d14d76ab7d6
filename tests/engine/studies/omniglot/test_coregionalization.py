"""What classes share, against matrices that are written out whole."""

from __future__ import annotations

import numpy as np
import pytest

from scant import metrics
from scant.studies.omniglot import coregionalization as matrices

SIZES = np.array([3, 2, 4])


@pytest.mark.parametrize("rank", [1, 3])
def test_blocks_and_means_are_those_of_whole_matrices(rank: int) -> None:
    factors = np.random.default_rng(0).normal(size=(5, 9, rank))
    B = np.einsum("qcr,qdr->qcd", factors, factors)
    latent = matrices.largest(factors, 3)
    traces = np.trace(B, axis1=1, axis2=2)
    assert traces[latent].tolist() == sorted(traces, reverse=True)[:3]
    np.testing.assert_allclose(matrices.blocks(factors, latent), B[latent])
    total = B.sum(0)
    scale = np.sqrt(np.diag(total))
    np.testing.assert_allclose(matrices.correlation(factors), total / np.outer(scale, scale))
    owner = np.repeat(np.arange(3), SIZES)
    mean = np.abs(B).mean(0)
    expected = [[mean[np.ix_(owner == i, owner == j)].mean() for j in range(3)] for i in range(3)]
    np.testing.assert_allclose(matrices.between_outputs(factors, SIZES), expected)
    one = matrices.between_outputs(factors, SIZES, np.array([2]))
    assert one[0, 2] == pytest.approx(np.abs(B[2])[:3, 5:].mean())


def test_classes_that_are_alike_stand_together() -> None:
    rng = np.random.default_rng(1)
    family = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    factors = (np.eye(3)[:, family] + 0.05 * rng.normal(size=(3, 9)))[:, :, None]
    order = matrices.alike(matrices.correlation(factors))
    assert sorted(order.tolist()) == list(range(9))
    assert (np.diff(family[order]) != 0).sum() == 2
    assert matrices.alike(np.eye(2)).tolist() == [0, 1]
    assert sorted(matrices.alike(np.ones((4, 4))).tolist()) == [0, 1, 2, 3]


def test_calibration_of_classes() -> None:
    rng = np.random.default_rng(2)
    sure = rng.uniform(0.3, 1.0, 20_000)
    right = (rng.uniform(size=20_000) < sure).astype(float)
    assert metrics.expected_calibration_error(sure, right) < 0.02
    assert metrics.expected_calibration_error(sure, right * 0) == pytest.approx(sure.mean())
    told = metrics.reliability(sure, right)
    assert told.shape == (3, 7)  # nothing below 0.3
    assert told[2].sum() == 20_000
    assert np.abs(told[0] - told[1]).max() < 0.05
    assert metrics.reliability(np.ones(2), np.array([1.0, 0.0])).tolist() == [[1.0], [0.5], [2.0]]
    assert metrics.reliability(np.empty(0), np.empty(0)).shape == (3, 0)
