"""Simulated replicas: the publication's sets have its sizes and covariances, the demo its gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.studies.genes import simulate
from scant.studies.genes.settings import GenesSettings
from scant.studies.genes.table import TABLE, of
from scant.tables.read import read_frame


@pytest.mark.parametrize(
    ("generator", "replicas", "held"),
    [(simulate.first, 3, 750), (simulate.second, 4, 500)],
)
def test_the_published_sizes(generator: object, replicas: int, held: int) -> None:
    frame = generator(GenesSettings())  # type: ignore[operator]
    data = of(read_frame(frame, TABLE).frame)
    assert len(data.outputs) == 50
    assert {len(names) for names in data.replicas} == {replicas}
    assert len(data) == 50 * replicas * 10
    assert data.test.sum() == held
    pd.testing.assert_frame_equal(frame, generator(GenesSettings()))  # type: ignore[operator]
    other = generator(GenesSettings(data_seed=1))  # type: ignore[operator]
    assert not np.allclose(frame["y"], other["y"])


@pytest.mark.slow
def test_the_published_covariance() -> None:
    """Moments over many draws: at one point of one output, over replicas, over outputs."""
    draws = np.array(
        [
            simulate.synthetic(seed, outputs=2, replicas=2, points=1)["y"].to_numpy()
            for seed in range(3000)
        ]
    )  # columns: output 1 replica 1, 1 2, 2 1, 2 2; inputs are drawn anew with every seed
    inputs = np.array(
        [
            simulate.synthetic(seed, outputs=2, replicas=2, points=1)["x"].to_numpy()
            for seed in range(3000)
        ]
    )
    covariance = draws.T @ draws / len(draws)
    assert covariance[0, 0] == pytest.approx(1.12, abs=0.1)  # k_g + k_f + noise
    assert covariance[0, 1] == pytest.approx(0.1, abs=0.07)  # only g is shared by replicas
    lag = np.sqrt(3) * np.abs(inputs[:, 0] - inputs[:, 2])
    kernel = np.exp(-1.0) * np.mean((1 + lag) * np.exp(-lag))  # k_H between (0, 0) and (1, 1)
    assert covariance[0, 2] == pytest.approx(1.1 * kernel, abs=0.07)
    assert covariance[0, 3] == pytest.approx(0.1 * kernel, abs=0.07)


def test_the_demonstration_lacks_replicas_and_lengths_differ() -> None:
    frame = simulate.demo(GenesSettings())
    data = of(read_frame(frame, TABLE).frame)
    assert data.outputs == list(simulate.GENES)
    assert data.samples == list(simulate.EMBRYOS)
    held = set(zip(frame["output"][data.test], frame["replica"][data.test]))
    assert held == set(simulate.MISSING)
    lengths = frame.groupby("replica").size() // len(simulate.GENES)
    assert sorted(lengths) == [5, 5, 6, 8, 8, 10]
    assert len(simulate.demo(GenesSettings(), 100)) == 100
