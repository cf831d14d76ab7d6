"""Speed and memory of MTGPA: `pytest -m benchmark tests/benchmarks/test_mtgpa_speed.py`."""

import resource

import pytest
import torch

from engine.bench.builders import mtgpa
from engine.bench.rows import fertility, grid
from engine.kernels.interval import IntervalKernel
from engine.models.mtgpa_prior import Data

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [None, 50])
@pytest.mark.parametrize("scheme", ["adam", "natural"])
def test_step_on_the_fertility_grid(benchmark, scheme, batch, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    training = mtgpa(fertility(), scheme, batch=batch)
    benchmark.pedantic(training.step, rounds=40, warmup_rounds=5)
    torch.set_num_threads(before)


@pytest.mark.parametrize("n", [100, 400, 1600])
def test_all_covariances_of_boxes(benchmark, n):
    supports = grid(80, 20, 1)[0][:n]
    kernel = IntervalKernel(2).double()
    kernel.lengthscale = 4.0

    def once():
        kernel.zero_grad()
        kernel(supports).to_dense().sum().backward()

    benchmark.pedantic(once, rounds=3, warmup_rounds=1)


def test_a_hundred_thousand_boxes(benchmark):
    """Minibatches keep the memory of the whole process below 1 GB, predictions of all included."""
    supports, y = grid(400, 250, 1)
    training = mtgpa(Data(supports, y, torch.zeros(len(y)).long()), "natural", batch=500)

    def run():
        for _ in range(100):
            training.step()
        return training.model.predict(supports, 0)

    benchmark.pedantic(run, rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux
    benchmark.extra_info["peak_MB"] = round(peak)
