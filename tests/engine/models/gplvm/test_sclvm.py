"""SCLVM: its limits, its class posterior, and a rare class that it does not lose."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from scant.errors import BadInput
from scant.models.gplvm.bgplvm import BGPLVM
from scant.models.gplvm.sclvm import SCLVM
from scant.models.gplvm.training import GPLVMTrainer


def rare(n=300, share=0.1, d=12, seed=0, noise=0.35):
    """Rows of two classes with a common factor and one of their own each; class 1 is rare."""
    g = np.random.default_rng(seed)
    weights = np.random.default_rng(99)
    common, own = weights.normal(size=(2, d)), weights.normal(size=(2, 2, d))
    label = (np.arange(n) < share * n).astype(int)
    x, p = g.normal(size=(n, 2)), g.normal(size=(n, 2))
    Y = np.sin(x @ common) + 0.7 * np.einsum("nq,nqd->nd", p, own[label])
    return torch.tensor(Y + noise * g.normal(size=Y.shape)), torch.tensor(label)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def train(model, steps):
    training = GPLVMTrainer(model, adam=steps // 2)
    for _ in range(steps):
        training.step()
    return model


@pytest.fixture(scope="module")
def model():
    return train(SCLVM.build(*rare(), 2, 2, 2, 12, generator()), 200)


@pytest.mark.parametrize(("shared", "private"), [(3, 0), (0, 3)])
def test_with_one_class_it_is_bgplvm(shared, private):
    Y, label = rare(n=40)
    one = SCLVM.build(Y, torch.zeros_like(label), 1, shared, private, 10, generator())
    plain = BGPLVM.build(Y, 3, 10, generator())
    torch.testing.assert_close(one.bound(), plain.bound())
    train(one, 8), train(plain, 8)
    torch.testing.assert_close(one.bound(), plain.bound())
    for a, b in zip(one.infer(Y[:4]), plain.infer(Y[:4])):
        torch.testing.assert_close(a, b)


def test_classes_without_a_shared_space_are_models_of_their_own():
    """K_uu and psi2 fall apart by class, but the noise and the kernel are common."""
    Y, label = rare(n=60, share=0.5)
    both = SCLVM.build(Y - Y.mean(0), label, 2, 0, 2, 6, generator())
    total = torch.zeros(())
    for c in (0, 1):
        rows, centres = label == c, both.inducing_label == c
        part = BGPLVM.build(Y[rows], 2, 6, generator())
        part.targets_y = both.targets.y[rows]
        part.targets_rotation = both.targets.rotation
        part.targets_squares = both.targets.y[rows].square().sum()
        part.targets_masks = both.targets.masks[rows]
        part.targets_scale = both.targets.scale
        part.mean.data, part.log_std.data = both.mean.data[rows], both.log_std.data[rows]
        part.inducing.data, part.log_noise.data = both.inducing.data[centres], both.log_noise.data
        part.kernel.shared = both.kernel.private
        total = total + part.bound()
    torch.testing.assert_close(both.bound(), total)


@pytest.mark.slow
def test_rare_rows_are_found_and_probabilities_mean_it(model):
    evidence = model.class_log_evidence(rare(seed=1)[0])
    label = rare(seed=1)[1]
    model.calibrate(evidence, label)
    Y, label = rare(n=400, seed=2)
    p = model.probabilities(Y)
    torch.testing.assert_close(p.sum(1), torch.ones(400).double())
    assert roc_auc_score(label, p[:, 1]) > 0.85
    assert average_precision_score(label, p[:, 1]) > 0.5  # 0.1 by chance
    # As many as announced, within what chance allows, and better than saying the share each time.
    spread = float((p[:, 1] * p[:, 0]).sum().sqrt())
    assert abs(float(p[:, 1].sum()) - int(label.sum())) < 4 * spread + 2
    log_loss = -float(p[torch.arange(400), label].log().mean())
    assert log_loss < -(0.1 * math.log(0.1) + 0.9 * math.log(0.9)) * 0.75


def test_a_prior_moves_the_posterior(model):
    evidence = torch.tensor([[-3.0, -3.0]]).double()
    model.temperature.fill_(1.0)
    half = model.class_posterior(evidence, torch.tensor([1.0, 1.0]))
    torch.testing.assert_close(half, torch.full((1, 2), 0.5).double())
    own = model.class_posterior(evidence)
    torch.testing.assert_close(own[0], model.prior().double())


def test_calibration_finds_the_temperature_of_the_labels(model):
    g = generator(3)
    odds = torch.randn(4000, 1, generator=g, dtype=torch.float64)
    label = (torch.rand(4000, generator=g, dtype=torch.float64) < odds[:, 0].sigmoid()).long()
    evidence = torch.cat([torch.zeros_like(odds), 20 * odds], 1)
    assert float(model.calibrate(evidence, label)) == pytest.approx(20, rel=0.15)
    model.temperature.fill_(1.0)


def test_generated_rows_are_of_their_class(model):
    for c in (0, 1):
        rows = model.generate(c, 30, generator(4))
        assert rows.shape == (30, 12)
        evidence = model.class_log_evidence(rows)
        assert float((evidence.argmax(1) == c).double().mean()) > 0.8
    again = model.generate(1, 30, generator(4))
    assert torch.equal(rows, again)


def test_covariances_are_the_shared_the_private_and_their_sum(model):
    shared, private, both = model.covariances(torch.tensor([0, 1, 200]))
    torch.testing.assert_close(shared + private, both)
    assert float(private[0, 2]) == 0
    assert float(private[0, 0]) > 0
    assert float(shared[0, 2]) > 0
    torch.testing.assert_close(both.diagonal(), model.kernel.psi0().detach().expand(3))


def test_missing_outputs_and_three_classes():
    Y, label = rare(n=60, share=0.5)
    label[40:] = 2
    Y[::7, 3] = math.nan
    model = train(SCLVM.build(Y, label, 3, 2, 1, 5, generator()), 5)
    Y[0, :4] = math.nan
    p = model.probabilities(Y[:6])
    assert p.shape == (6, 3)
    assert bool(torch.isfinite(p).all())


@pytest.mark.parametrize(
    ("label", "said"),
    [([0, 0, 0, 0], "Class 1 has no rows"), ([0, 1, 2, 0], "from 0 to 1")],
)
def test_bad_labels_are_said(label, said):
    with pytest.raises(BadInput, match=said):
        SCLVM.build(rare(n=4)[0], torch.tensor(label), 2)


def test_bad_priors_are_said(model):
    with pytest.raises(BadInput, match="prior"):
        model.class_posterior(torch.zeros(1, 2).double(), torch.tensor([1.0, -1.0]))
