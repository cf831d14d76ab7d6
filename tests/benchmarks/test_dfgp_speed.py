"""Speed of DFGP and others: `pytest -m benchmark tests/benchmarks/test_dfgp_speed.py`."""

import pytest
import torch

from engine.bench import builders, rows

pytestmark = pytest.mark.benchmark
ROUNDS = {"rounds": 40, "warmup_rounds": 5}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("bound", ["published", "closed", "stochastic"])
@pytest.mark.parametrize(("n", "m"), [(1000, 10), (1000, 50), (4000, 10)])
def test_a_step_of_seven_neurons(benchmark, n, m, bound):
    x, y = rows.features(n)
    training = builders.dfgp([x], y, inducing=m, neurons=7, bound=bound)
    benchmark.pedantic(training.step, **ROUNDS)


@pytest.mark.parametrize("bound", ["published", "stochastic"])
def test_a_step_of_eight_views_of_classes(benchmark, bound):
    """The widths of Kandemir and Hamprecht's cell events."""
    views = [rows.features(420, d)[0] for d in (26, 58, 58, 128) for _ in range(2)]
    label = (rows.features(420)[1] > 0).double()
    training = builders.dfgp(views, label, likelihood="bernoulli", bound=bound)
    benchmark.pedantic(training.step, **ROUNDS)


@pytest.mark.parametrize(("n", "m"), [(1000, 10), (1000, 50), (4000, 10)])
def test_a_step_of_gpytorchs_sparse_gp(benchmark, n, m):
    model = builders.svgp(n, m)
    benchmark.pedantic(lambda: model.fit(1), **ROUNDS)


def test_a_step_of_the_student_t_process(benchmark):
    step = builders.gradient_of(builders.student_t(1000))
    benchmark.pedantic(step, rounds=5, warmup_rounds=1)
