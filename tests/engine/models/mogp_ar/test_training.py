"""Training of MOGPs-AR: what it learns, that it repeats and resumes, what a step leaves alone."""

import pytest
import torch

from scant.errors import BadInput
from scant.models.mogp_ar.kernels import Kernel, RbfArd
from scant.models.mogp_ar.model import MOGPAR
from scant.models.mogp_ar.training import MOGPARTrainer

SIZES = [4, 6]


def _clusters(n=120, seed=0):
    """Two outputs whose classes are clusters around points of two circles."""
    g = torch.Generator().manual_seed(seed)
    output = torch.arange(n) % 2
    sizes = torch.tensor(SIZES)[output]
    label = (torch.rand(n, generator=g) * sizes).long()
    angle = 6.2832 * label / sizes
    centre = 3 * torch.stack([angle.cos(), angle.sin()], 1).double()
    noise = torch.randn(n, 2, generator=g, dtype=torch.float64)
    return centre + 0.4 * noise, output, label


def _training(seed=0, **other):
    x, output, label = _clusters()
    g = torch.Generator().manual_seed(seed)
    kernel = RbfArd(x, 3)
    rows = kernel.prepare(x)
    model = MOGPAR(kernel, kernel.start(rows, 12, g), SIZES, g)
    return MOGPARTrainer(model, rows, output, label, g, **{"batch": 15} | other)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [0, 1, 3])
def test_it_learns_to_tell_classes_of_all_outputs_apart(sampled):
    training = _training(sampled=sampled)
    before = training.model.bound(training.data, training.output, training.label).item()
    for _ in range(150):
        training.step()
    after = training.model.bound(training.data, training.output, training.label).item()
    assert after > before + 80
    x, output, label = _clusters(seed=1)
    p = training.model.probabilities(training.model.kernel.prepare(x), output)
    assert (p.argmax(1) == label).double().mean().item() > 0.9


def test_a_step_leaves_rows_of_classes_that_were_not_drawn_as_they_were():
    training = _training(batch=1, sampled=1)
    weight, moved = training.model.mixing.weight, 0
    for _ in range(12):
        before, seen = weight.detach().clone(), {}
        likelihood = training.model.likelihood
        original = likelihood.mixing
        likelihood.mixing = lambda c, o=original, s=seen: (
            s.update(dict.fromkeys(c.flatten().tolist())),
            o(c),
        )[1]
        training.step()
        likelihood.mixing = original
        same = (weight == before).all(1)
        assert len(seen) <= 4  # of ten: two rows, each with its own class and one more
        assert {i for i in range(10) if not same[i]} == set(seen)
        moved += len(seen)
    assert moved > 12


def test_with_all_classes_outputs_have_no_gradient_from_rows_of_others():
    training = _training(sampled=0)
    for output, expected in ((1, [False] * 4 + [True] * 6), (0, [True] * 4 + [False] * 6)):
        training.draw = lambda o=output: (training.output == o).nonzero().squeeze(1)
        training.step()  # the shorter output's classes are padded
        assert training.model.mixing.weight.grad.any(1).tolist() == expected


@pytest.mark.parametrize(
    ("batch", "sampled", "sparse"), [(15, 1, True), (15, 0, False), (24, 1, False), (23, 1, True)]
)
def test_a_step_that_draws_every_class_does_without_sparse_gradients(batch, sampled, sparse):
    """Eight draws for each of six classes are 48: of 24 rows, their own and one more."""
    training = _training(batch=batch, sampled=sampled)
    training.step()
    assert training.model.mixing.weight.grad.is_sparse == sparse
    assert len(training.optimizers) == 1 + sparse


def test_a_batch_holds_rows_of_every_output_and_all_of_a_small_one():
    training = _training(batch=50)
    rows = training.draw()
    assert torch.bincount(training.output[rows]).tolist() == [50, 50]
    assert len(set(rows.tolist())) == 100
    training.batch = 70
    assert torch.bincount(training.output[training.draw()]).tolist() == [60, 60]
    training.batch = None
    assert training.draw().tolist() == list(range(120))


def test_a_model_that_cannot_be_factorized_says_nan_and_stays():
    training = _training()
    with torch.no_grad():
        training.model.inducing_points[0, 0, 0] = float("nan")
    before = training.model.q_mean.detach().clone()
    assert training.step() != training.step()  # NaN twice
    assert torch.equal(training.model.q_mean, before)
    assert training.steps == 0


def test_a_batch_below_one_is_refused():
    with pytest.raises(BadInput, match="at least one row"):
        _training(batch=0)


def test_kernels_have_the_protocol_and_do_not_mind_constant_columns():
    x = torch.cat([torch.randn(20, 2), torch.ones(20, 1)], 1).double()
    kernel = RbfArd(x, 2)
    assert isinstance(kernel, Kernel)
    rows = kernel.prepare(x)
    assert bool(rows.isfinite().all())
    z = kernel.start(rows, 5, torch.Generator().manual_seed(0))
    distance = ((z[1][:, None] - rows) / kernel.unit / kernel.rbf.lengthscale[1]).square().sum(-1)
    torch.testing.assert_close(kernel.covariances(z, rows)[1][1], torch.exp(-0.5 * distance))
    torch.testing.assert_close(
        kernel.inducing(z).diagonal(dim1=1, dim2=2), torch.ones(2, 5).double()
    )
    assert kernel.diagonal(rows).shape == (2, 20)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_learns_the_same():
    values = []
    for device in ("cpu", "cuda"):
        t = _training(sampled=2)
        where = (t.data.to(device), t.output.to(device), t.label.to(device))
        moved = MOGPARTrainer(t.model.to(device), *where, t.generator, batch=15, sampled=2)
        values.append([moved.step() for _ in range(10)])
    assert values[0] == pytest.approx(values[1], rel=1e-6)
