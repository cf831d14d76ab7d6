"""Speed of MOGPs-AR: `pytest -m benchmark tests/benchmarks/test_mogp_ar_speed.py`."""

import resource

import pytest
import torch

from engine.bench.builders import FIFTY_ALPHABETS, mogp_ar

pytestmark = pytest.mark.benchmark


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
    training = mogp_ar(*PROBLEMS[problem], name=model, sampled=sampled)
    _time(benchmark, training, threads)


@pytest.mark.parametrize("name", ["sampled", "all", "mg-m"])
@pytest.mark.parametrize("classes", [20, 100, 400, 1623])
def test_step_against_classes_of_one_output(benchmark, classes, name):
    model = "mg-m" if name == "mg-m" else "mogp-ar"
    sampled = 1 if name == "sampled" else 0
    _time(benchmark, mogp_ar([classes], 4000, 5, 10, name=model, sampled=sampled), rounds=20)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux, so far
    benchmark.extra_info["peak_MB"] = round(peak)


@pytest.mark.parametrize("sampled", [1, 0])
def test_step_of_fifty_outputs(benchmark, sampled):
    """As many classes as Omniglot's 50 alphabets have, 9 rows of each."""
    _time(benchmark, mogp_ar(FIFTY_ALPHABETS, 20_000, 5, 10, batch=9, sampled=sampled), rounds=20)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("sampled", [1, 0])
def test_step_of_all_classes_on_a_gpu(benchmark, sampled):
    training = mogp_ar(
        FIFTY_ALPHABETS, 20_000, 400, 10, batch=50, device=torch.device("cuda"), sampled=sampled
    )

    def step():
        training.step()
        torch.cuda.synchronize()

    benchmark.pedantic(step, rounds=20, warmup_rounds=5)
    benchmark.extra_info["peak_MB"] = round(torch.cuda.max_memory_allocated() / 2**20)
