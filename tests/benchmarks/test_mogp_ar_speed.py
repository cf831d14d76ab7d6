"""Speed of MOGPs-AR: `pytest -m benchmark tests/benchmarks/test_mogp_ar_speed.py`."""

import resource

import pytest
import torch

from engine.models.mogp_baselines import build
from engine.models.mogp_kernels import RbfArd
from engine.models.mogp_training import Training

pytestmark = pytest.mark.benchmark


def _training(sizes, n, features, latent, name="mogp-ar", batch=200, device="cpu", **other):
    """Random rows of outputs with the given numbers of classes, M = 100."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, features, generator=g, dtype=torch.float64)
    output = torch.arange(n) % len(sizes)
    label = (torch.rand(n, generator=g) * torch.tensor(sizes)[output]).long()
    kernel = RbfArd(x, latent)
    model = build(name, kernel, kernel.prepare(x), output, sizes, 100, g).to(device)
    data = [v.to(device) for v in (kernel.prepare(x.to(device)), output, label)]
    return Training(model, *data, g, batch=batch, **other)


def _time(benchmark, training, threads=1, rounds=60):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    benchmark.pedantic(training.step, rounds=rounds, warmup_rounds=5)
    torch.set_num_threads(before)


PROBLEMS = {"balance": ([3], 500, 4, 3), "s20": ([20], 1600, 5, 5)}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["sampled", "all", "mg-m"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_step_beside_the_peers(benchmark, problem, name, threads):
    model = "mg-m" if name == "mg-m" else "mogp-ar"
    sampled = 1 if name == "sampled" else 0
    training = _training(*PROBLEMS[problem], name=model, sampled=sampled)
    _time(benchmark, training, threads)


@pytest.mark.parametrize("name", ["sampled", "all", "mg-m"])
@pytest.mark.parametrize("classes", [20, 100, 400, 1623])
def test_step_against_classes_of_one_output(benchmark, classes, name):
    model = "mg-m" if name == "mg-m" else "mogp-ar"
    sampled = 1 if name == "sampled" else 0
    _time(benchmark, _training([classes], 4000, 5, 10, name=model, sampled=sampled), rounds=20)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux, so far
    benchmark.extra_info["peak_MB"] = round(peak)


@pytest.mark.parametrize("sampled", [1, 0])
def test_step_of_fifty_outputs(benchmark, sampled):
    """As many classes as Omniglot's 50 alphabets have, 9 rows of each."""
    sizes = [32] * 27 + [33] * 23
    _time(benchmark, _training(sizes, 20_000, 5, 10, batch=9, sampled=sampled), rounds=20)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("sampled", [1, 0])
def test_step_of_all_classes_on_a_gpu(benchmark, sampled):
    sizes = [32] * 27 + [33] * 23
    training = _training(sizes, 20_000, 400, 10, batch=50, device="cuda", sampled=sampled)

    def step():
        training.step()
        torch.cuda.synchronize()

    benchmark.pedantic(step, rounds=20, warmup_rounds=5)
    benchmark.extra_info["peak_MB"] = round(torch.cuda.max_memory_allocated() / 2**20)
