"""Speed and memory of MTGPA: `pytest -m benchmark tests/benchmarks/test_mtgpa_speed.py`."""

import resource

import pytest
import torch

from engine.kernels.interval import IntervalKernel
from engine.kernels.support import boxes
from engine.models.mtgpa import MTGPA
from engine.models.mtgpa_prior import Data
from engine.models.mtgpa_training import Training

pytestmark = pytest.mark.benchmark


def _grid(height, width, side):
    """Cells of side x side over a surface, and its averages at their centres."""
    axes = torch.arange(0, height, side).double(), torch.arange(0, width, side).double()
    lower = torch.cartesian_prod(*axes)
    centre = lower + side / 2
    return boxes(lower, lower + side), torch.sin(centre[:, 0] / 9) * torch.cos(centre[:, 1] / 5)


def _fertility():
    """The 2 x 2 grid of the Canadian data, 660 cells, with 80 fine ones."""
    fine, y = _grid(66, 40, 1)
    pick = torch.randperm(len(fine), generator=torch.Generator().manual_seed(0))[:80]
    coarse, averages = _grid(66, 40, 2)
    task = torch.tensor([0] * 80 + [1] * len(coarse))
    return Data(torch.cat([fine[pick], coarse]), torch.cat([y[pick], averages]), task)


def _training(data, scheme, **other):
    g = torch.Generator().manual_seed(0)
    tasks = int(data.task.max()) + 1
    model = MTGPA.build(data, ["gaussian"] * tasks, 2, g, natural=scheme == "natural")
    return Training(model, data, g, scheme, **other)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [None, 50])
@pytest.mark.parametrize("scheme", ["adam", "natural"])
def test_step_on_the_fertility_grid(benchmark, scheme, batch, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    training = _training(_fertility(), scheme, batch=batch)
    benchmark.pedantic(training.step, rounds=40, warmup_rounds=5)
    torch.set_num_threads(before)


@pytest.mark.parametrize("n", [100, 400, 1600])
def test_all_covariances_of_boxes(benchmark, n):
    supports = _grid(80, 20, 1)[0][:n]
    kernel = IntervalKernel(2).double()
    kernel.lengthscale = 4.0

    def once():
        kernel.zero_grad()
        kernel(supports).to_dense().sum().backward()

    benchmark.pedantic(once, rounds=3, warmup_rounds=1)


def test_a_hundred_thousand_boxes(benchmark):
    """Minibatches keep the memory of the whole process below 1 GB, predictions of all included."""
    supports, y = _grid(400, 250, 1)
    training = _training(Data(supports, y, torch.zeros(len(y)).long()), "natural", batch=500)

    def run():
        for _ in range(100):
            training.step()
        return training.model.predict(supports, 0)

    benchmark.pedantic(run, rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux
    benchmark.extra_info["peak_MB"] = round(peak)
