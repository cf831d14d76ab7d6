"""Speed of MOCGPs-AR: `pytest -m benchmark tests/benchmarks/test_patch_speed.py`."""

import resource

import pytest
import torch

from engine.bench.builders import FIFTY_ALPHABETS, TWO_ALPHABETS, patches

pytestmark = pytest.mark.benchmark


def _time(benchmark, training, rounds, threads=1):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    benchmark.pedantic(training.step, rounds=rounds, warmup_rounds=2)
    torch.set_num_threads(before)
    # Of the whole process so far: run one alone to know its own.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux
    benchmark.extra_info["peak_MB"] = round(peak)


@pytest.mark.parametrize("threads", [1, 2])
def test_step_of_two_alphabets(benchmark, threads):
    """The authors' program takes 1,070 ms on two cores (Q 10, M 100, 50 rows of each)."""
    _time(benchmark, patches(TWO_ALPHABETS, inducing=100, sampled=1), 20, threads)


@pytest.mark.parametrize(("grey", "patch"), [(True, 3), (False, 5), (True, 5)])
def test_step_where_few_patches_are_alike(benchmark, grey, patch):
    _time(benchmark, patches(TWO_ALPHABETS, grey, patch), 3)


@pytest.mark.parametrize("sampled", [1, 0])
def test_step_of_all_alphabets(benchmark, sampled):
    """1,623 classes, 9 rows of each of 50 outputs, as published."""
    _time(benchmark, patches(FIFTY_ALPHABETS, batch=9, sampled=sampled), 5)


@pytest.mark.parametrize("name", ["sampled", "all", "mg-m"])
@pytest.mark.parametrize("classes", [20, 100, 400, 1623])
def test_step_against_classes_of_one_output(benchmark, classes, name):
    model = "mg-m" if name == "mg-m" else "mogp-ar"
    training = patches([classes], batch=100, sampled=int(name == "sampled"), name=model)
    _time(benchmark, training, 5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("grey", [False, True])
def test_step_of_all_alphabets_on_a_gpu(benchmark, grey):
    training = patches(FIFTY_ALPHABETS, grey, inducing=200, batch=9, device=torch.device("cuda"))

    def step():
        training.step()
        torch.cuda.synchronize()

    benchmark.pedantic(step, rounds=20, warmup_rounds=3)
    benchmark.extra_info["peak_MB"] = round(torch.cuda.max_memory_allocated() / 2**20)
