"""Speed of DFGP and others: `pytest -m benchmark tests/benchmarks/test_dfgp_speed.py`."""

import pytest
import torch

from engine.models.dfgp import DFGP
from engine.models.dfgp_training import Training
from engine.models.student_t import StudentT
from engine.models.svgp import SVGP

pytestmark = pytest.mark.benchmark
ROUNDS = {"rounds": 40, "warmup_rounds": 5}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _rows(n, d=27, classes=False):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=g, dtype=torch.float64)
    y = torch.sin(x[:, 0]) + x[:, 1] + 0.5 * torch.randn(n, generator=g, dtype=torch.float64)
    return x, (y > 0).double() if classes else y


@pytest.mark.parametrize("bound", ["published", "closed", "stochastic"])
@pytest.mark.parametrize(("n", "m"), [(1000, 10), (1000, 50), (4000, 10)])
def test_a_step_of_seven_neurons(benchmark, n, m, bound):
    x, y = _rows(n)
    training = Training(DFGP.build([x], y, inducing=m, neurons=7, bound=bound), adam=10**6)
    benchmark.pedantic(training.step, **ROUNDS)


@pytest.mark.parametrize("bound", ["published", "stochastic"])
def test_a_step_of_eight_views_of_classes(benchmark, bound):
    """The widths of Kandemir and Hamprecht's cell events."""
    views = [_rows(420, d)[0] for d in (26, 58, 58, 128) for _ in range(2)]
    model = DFGP.build(views, _rows(420, classes=True)[1], "bernoulli", bound=bound)
    benchmark.pedantic(Training(model, adam=10**6).step, **ROUNDS)


@pytest.mark.parametrize(("n", "m"), [(1000, 10), (1000, 50), (4000, 10)])
def test_a_step_of_gpytorchs_sparse_gp(benchmark, n, m):
    x, y = _rows(n)
    model = SVGP.build(x, y, inducing=m)
    benchmark.pedantic(lambda: model.fit(1), **ROUNDS)


def test_a_step_of_the_student_t_process(benchmark):
    model = StudentT.build(*_rows(1000), df=5)
    benchmark.pedantic(lambda: model.objective().backward(), rounds=5, warmup_rounds=1)
