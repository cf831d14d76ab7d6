"""Speed and memory of HMOGP-LV: `pytest -m benchmark tests/benchmarks/test_hmogp_lv_speed.py`."""

import resource

import pytest

from engine.bench.builders import hmogp_lv
from engine.bench.rows import curves

pytestmark = pytest.mark.benchmark


def _time(benchmark, training, rounds=30):
    benchmark.pedantic(training.step, rounds=rounds, warmup_rounds=3)


@pytest.mark.parametrize("scheme", ["lbfgs", "natural", "adam"])
def test_step_on_the_gene_demo(benchmark, scheme):
    _time(benchmark, hmogp_lv(curves(4, 8, 4), scheme, outputs=4, inputs=28))


@pytest.mark.parametrize("scheme", ["lbfgs", "natural"])
@pytest.mark.parametrize("outputs", [10, 50, 250, 1000])
def test_step_against_outputs(benchmark, outputs, scheme):
    _time(benchmark, hmogp_lv(curves(outputs, 4, 10), scheme), 10)


@pytest.mark.parametrize("replicas", [2, 4, 8, 16])
def test_step_against_replicas(benchmark, replicas):
    _time(benchmark, hmogp_lv(curves(50, replicas, 10)))


@pytest.mark.parametrize("n", [5, 10, 40, 160])
def test_step_against_points(benchmark, n):
    _time(benchmark, hmogp_lv(curves(50, 4, n)), 10)


@pytest.mark.parametrize("same", [True, False])
def test_step_where_outputs_have_the_same_inputs(benchmark, same):
    _time(benchmark, hmogp_lv(curves(250, 4, 20, same)), 10)


def test_fifty_outputs_until_the_bound_settles(benchmark):
    """The goal is a minute; the settling is that of a run's default: 20 steps below 1e-4."""
    training = hmogp_lv(curves(50, 4, 10), inputs=60)

    def run():
        best, idle = -float("inf"), 0
        while idle < 20 and training.steps < 300:
            bound = training.step()
            idle = 0 if bound > best + 1e-4 * abs(bound) else idle + 1
            best = max(best, bound)

    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["steps"] = training.steps


def test_a_thousand_outputs_by_minibatch(benchmark):
    """The goal is 2 GB; what counts is the peak of the whole process, so run it by itself."""
    training = hmogp_lv(curves(1000, 8, 7), "natural", batch=50, outputs=8)

    def run():
        for _ in range(200):
            training.step()
        return training.model.elbo()

    benchmark.pedantic(run, rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux
    benchmark.extra_info["peak_MB"] = round(peak)
