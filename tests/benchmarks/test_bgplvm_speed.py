"""Speed of BGPLVM and SCLVM: `pytest -m benchmark tests/benchmarks/test_bgplvm_speed.py`."""

import resource

import pytest
import torch

from engine.bench import builders, rows

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "d", "m"), [(500, 100, 50), (500, 1000, 50), (2000, 100, 50)])
def test_objective_and_gradient(benchmark, n, d, m, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    step = builders.gradient_of(builders.bgplvm(n, d, m))
    benchmark.pedantic(step, rounds=60, warmup_rounds=5)
    torch.set_num_threads(before)


def test_a_step_of_sclvm_on_5440_rows_of_900_pixels(benchmark):
    """As in Yousefi (2021): an eleventh of the rows is rare; five dimensions each, 100 inputs."""
    training = builders.latent_training(builders.sclvm(5440, 900, 10, 50))
    benchmark.pedantic(training.step, rounds=10, warmup_rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux
    benchmark.extra_info["peak_MB"] = round(peak)


SIZES = [
    *[(n, 900, 10, 30) for n in (500, 1000, 2000, 5440)],
    *[(2000, 900, 10, m) for m in (10, 20, 50, 100)],
    *[(2000, 900, q, 30) for q in (4, 20)],
    *[(2000, d, 10, 30) for d in (100, 400, 1600)],
]


@pytest.mark.parametrize(("n", "d", "q", "m"), SIZES)
def test_a_step_of_sclvm_by_size(benchmark, n, d, q, m):
    """Against rows, pixels (images of side 10 to 40), latent dimensions, inducing inputs."""
    step = builders.gradient_of(builders.sclvm(n, d, q, m))
    benchmark.pedantic(step, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("count", [1, 500])
def test_placing_new_rows_under_two_classes(benchmark, count):
    """40 components, 50 inducing inputs of each class."""
    model = builders.sclvm(1640, 40, 10, 50)
    training = builders.latent_training(model)
    for _ in range(40):
        training.step()
    Y = rows.outputs(500, 40)[:count]
    benchmark.pedantic(model.class_log_evidence, (Y,), rounds=3, warmup_rounds=1)
