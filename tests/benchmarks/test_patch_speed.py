"""Speed of MOCGPs-AR: `pytest -m benchmark tests/benchmarks/test_patch_speed.py`."""

import resource

import pytest
import torch

from engine.kernels.patch import PatchKernel
from engine.models.mogp_baselines import build
from engine.models.mogp_training import Training

pytestmark = pytest.mark.benchmark

TWO = [14, 14]  # characters of Ojibwe and Blackfoot
FIFTY = [32] * 27 + [33] * 23  # as many as Omniglot's alphabets have


def _images(n, grey, seed=0):
    """Random arcs of 20 x 20 pixels: as much ink as Omniglot has, in as many patches."""
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, 30).double()
    centre, radius, phase, turn = (torch.rand(n, 1, generator=g).double() for _ in range(4))
    angle = 6.3 * (phase + turn * t)
    x, y = (10 + 3 * (centre - 0.5) + (4 + 4 * radius) * f(angle) for f in (torch.cos, torch.sin))
    grid = torch.arange(20).double()
    images = torch.empty(n, 20, 20).double()
    for part in torch.arange(n).split(200):
        across, down = ((p[part, :, None] - grid).square() for p in (x, y))
        images[part] = torch.exp(-(down[..., None] + across[:, :, None])).amax(1)
    images = torch.where(images > 0.05, images, 0.0).flatten(1)
    return images if grey else (images > 0.5).double()


def _training(sizes, grey=False, patch=3, latent=10, inducing=50, batch=50, sampled=0, **other):
    """20 drawings of each class; `device` is the processor unless another is given."""
    device = other.pop("device", "cpu")
    n = 20 * sum(sizes)
    number = torch.arange(n) // 20
    output = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes) * 20)
    first = torch.tensor([0, *sizes]).cumsum(0)[:-1]
    kernel = PatchKernel(20, 20, patch, n_latent=latent)
    g = torch.Generator().manual_seed(0)
    rows = kernel.prepare(_images(n, grey))
    name = other.pop("name", "mogp-ar")
    model = build(name, kernel, rows, output, sizes, inducing, g, **other).to(device)
    data = (v.to(device) for v in (rows, output, number - first[output]))
    return Training(model, *data, g, batch=batch, sampled=sampled)


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
    _time(benchmark, _training(TWO, inducing=100, sampled=1), 20, threads)


@pytest.mark.parametrize(("grey", "patch"), [(True, 3), (False, 5), (True, 5)])
def test_step_where_few_patches_are_alike(benchmark, grey, patch):
    _time(benchmark, _training(TWO, grey, patch), 3)


@pytest.mark.parametrize("sampled", [1, 0])
def test_step_of_all_alphabets(benchmark, sampled):
    """1,623 classes, 9 rows of each of 50 outputs, as published."""
    _time(benchmark, _training(FIFTY, batch=9, sampled=sampled), 5)


@pytest.mark.parametrize("name", ["sampled", "all", "mg-m"])
@pytest.mark.parametrize("classes", [20, 100, 400, 1623])
def test_step_against_classes_of_one_output(benchmark, classes, name):
    model = "mg-m" if name == "mg-m" else "mogp-ar"
    training = _training([classes], batch=100, sampled=int(name == "sampled"), name=model)
    _time(benchmark, training, 5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("grey", [False, True])
def test_step_of_all_alphabets_on_a_gpu(benchmark, grey):
    training = _training(FIFTY, grey, inducing=200, batch=9, device="cuda")

    def step():
        training.step()
        torch.cuda.synchronize()

    benchmark.pedantic(step, rounds=20, warmup_rounds=3)
    benchmark.extra_info["peak_MB"] = round(torch.cuda.max_memory_allocated() / 2**20)
