"""Speed of BGPLVM and SCLVM: `pytest -m benchmark tests/benchmarks/test_bgplvm_speed.py`."""

import resource

import pytest
import torch

from engine.models.bgplvm import BGPLVM
from engine.models.bgplvm_training import Training
from engine.models.sclvm import SCLVM

pytestmark = pytest.mark.benchmark


def _outputs(n, d):
    g = torch.Generator().manual_seed(0)
    x, w = torch.randn(n, 5, generator=g).double(), torch.randn(5, d, generator=g).double()
    return torch.sin(x @ w) + 0.1 * torch.randn(n, d, generator=g).double()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "d", "m"), [(500, 100, 50), (500, 1000, 50), (2000, 100, 50)])
def test_objective_and_gradient(benchmark, n, d, m, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    model = BGPLVM.build(_outputs(n, d), 5, m, torch.Generator().manual_seed(0))

    def once():
        model.zero_grad()
        model.objective().backward()

    benchmark.pedantic(once, rounds=60, warmup_rounds=5)
    torch.set_num_threads(before)


def test_a_step_of_sclvm_on_5440_rows_of_900_pixels(benchmark):
    """As in Yousefi (2021): 440 and 5,000 rows, five dimensions each, 100 inducing inputs."""
    Y = _outputs(5440, 900)
    label = (torch.arange(len(Y)) < 440).long()
    training = Training(SCLVM.build(Y, label, 2, 5, 5, 50, torch.Generator().manual_seed(0)))
    benchmark.pedantic(training.step, rounds=10, warmup_rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux
    benchmark.extra_info["peak_MB"] = round(peak)


SIZES = [
    *[(n, 900, 10, 30) for n in (500, 1000, 2000, 5440)],
    *[(2000, 900, 10, m) for m in (10, 20, 50, 100)],
    *[(2000, 900, q, 30) for q in (4, 20)],
    *[(2000, d, 10, 30) for d in (100, 400, 1600)],
]


def _sclvm(n, d, q, m):
    label = (torch.arange(n) < n // 11).long()
    generator = torch.Generator().manual_seed(0)
    return SCLVM.build(_outputs(n, d), label, 2, q // 2, q - q // 2, m, generator)


@pytest.mark.parametrize(("n", "d", "q", "m"), SIZES)
def test_a_step_of_sclvm_by_size(benchmark, n, d, q, m):
    """Against rows, pixels (images of side 10 to 40), latent dimensions, inducing inputs."""
    model = _sclvm(n, d, q, m)

    def once():
        model.zero_grad()
        model.objective().backward()

    benchmark.pedantic(once, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("rows", [1, 500])
def test_placing_new_rows_under_two_classes(benchmark, rows):
    """40 components, 50 inducing inputs of each class."""
    model = _sclvm(1640, 40, 10, 50)
    training = Training(model, adam=40)
    for _ in range(40):
        training.step()
    Y = _outputs(500, 40)[:rows]
    benchmark.pedantic(model.class_log_evidence, (Y,), rounds=3, warmup_rounds=1)
