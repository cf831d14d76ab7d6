"""Laplace's approximation against scikit-learn, quadrature and finite differences."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from scant.errors import BadInput
from scant.models.laplace.approximation import Evidence, mode
from scant.models.laplace.classifier import LaplaceGPC
from scant.models.laplace.links import LINKS, probability

KINDS = pytest.mark.parametrize("link", list(LINKS))


def rows(n=80, d=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=g, dtype=torch.float64)
    f = 2 * torch.sin(2 * x[:, 0]) + x[:, 1]
    y = (torch.rand(n, generator=g, dtype=torch.float64) < torch.sigmoid(2 * f)).long()
    return x, y


def set_to(model, outputscale, lengthscale):
    model.kernel.outputscale = outputscale
    model.kernel.base_kernel.lengthscale = torch.as_tensor(lengthscale)
    return model


@pytest.mark.parametrize("ard", [False, True])
def test_evidence_gradient_and_probabilities_are_those_of_scikit_learn(ard):
    x, y = rows()
    scales = [0.7, 1.4, 3.0] if ard else 1.2
    theirs = GaussianProcessClassifier(
        ConstantKernel(2.5) * RBF(scales), optimizer=None, max_iter_predict=200
    ).fit(x.numpy(), y.numpy())
    value, gradient = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    model = set_to(LaplaceGPC.build(x, y, ard=ard), 2.5, scales)
    ours = model.log_evidence()
    ours.backward()
    assert ours.item() == pytest.approx(value, abs=1e-6)
    by_log = {name: p.grad.ravel() for name, p in model.named_parameters()}  # as theirs is
    np.testing.assert_allclose(
        torch.cat(
            [by_log[f"kernel.{k}"] for k in ("raw_outputscale", "base_kernel.raw_lengthscale")]
        ),
        gradient,
        atol=1e-5,
    )
    new, _ = rows(seed=1)
    np.testing.assert_allclose(
        model.probability(new).numpy(), theirs.predict_proba(new.numpy())[:, 1], atol=1e-3
    )


def test_a_fit_comes_where_scikit_learn_comes():
    x, y = rows(120, 2)
    theirs = GaussianProcessClassifier(ConstantKernel(4.0) * RBF([1.4, 1.4])).fit(x, y)
    model = LaplaceGPC.build(x, y, ard=True)
    assert model.fit(200, 1e-9).item() == pytest.approx(
        theirs.log_marginal_likelihood_value_, abs=1e-3
    )


@KINDS
def test_the_gradient_is_that_of_finite_differences(link):
    signs = 2.0 * rows(12, 2)[1].double() - 1

    def evidence(root):
        K = root @ root.T + 0.1 * torch.eye(12, dtype=torch.float64)
        found = mode(K.detach(), signs, LINKS[link], torch.zeros_like(signs))
        return Evidence.apply(K, signs, LINKS[link], found)

    g = torch.Generator().manual_seed(3)
    root = torch.randn(12, 4, generator=g, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(evidence, (root,), eps=1e-5, atol=1e-5)


@KINDS
def test_at_the_mode_nothing_pulls(link):
    x, y = rows(60)
    model = LaplaceGPC.build(x, y, link)
    K = model.covariance(x).detach()
    found = mode(K, model.y, model.link, model.a)
    np.testing.assert_allclose(K @ found.a, found.f, atol=1e-5)


@KINDS
def test_derivatives_of_the_links(link):
    f = torch.tensor([-8.0, -2, -0.3, 0, 0.4, 3, 8], dtype=torch.float64, requires_grad=True)
    for y in (-1.0, 1.0):
        at = LINKS[link](f, torch.full_like(f, y))
        by = at.log_p
        for name, sign in (("slope", 1), ("curvature", -1), ("third", 1)):
            (by,) = torch.autograd.grad(by.sum(), f, create_graph=True)
            np.testing.assert_allclose(
                by.detach(), sign * getattr(at, name).detach(), rtol=1e-6, atol=1e-9
            )


@KINDS
def test_probabilities_are_integrals_over_f(link):
    mean = torch.tensor([-3.0, 0.2, 1.5], dtype=torch.float64)
    variance = torch.tensor([0.3, 4.0, 25.0], dtype=torch.float64)
    squash = stats.logistic.cdf if link == "logistic" else stats.norm.cdf
    found = probability(link, mean, variance).tolist()
    for m, v, p in zip(mean.tolist(), variance.tolist(), found, strict=True):
        grid = np.linspace(m - 60, m + 60, 200_001)
        exact = integrate.simpson(squash(grid) * stats.norm.pdf(grid, m, v**0.5), x=grid)
        assert p == pytest.approx(exact, abs=1e-5)


@KINDS
def test_one_row_is_near_its_exact_evidence(link):
    """p(y) of one row is one half by symmetry, whatever the prior."""
    model = LaplaceGPC.build(torch.zeros(1, 1), torch.ones(1, dtype=torch.long), link)
    set_to(model, 1.0, 1.0)
    assert model.log_evidence().exp().item() == pytest.approx(0.5, abs=0.02)


def test_rows_that_join_lead_where_all_at_once_lead_and_sooner():
    x, y = rows(150)
    first = LaplaceGPC.build(x[:140], y[:140])
    first.fit()
    more = first.observe(x[140:], y[140:])
    cold = LaplaceGPC.build(x, y)
    cold.kernel.load_state_dict(first.kernel.state_dict())
    assert more.log_evidence().item() == pytest.approx(cold.log_evidence().item(), abs=1e-8)
    new, _ = rows(seed=5)
    np.testing.assert_allclose(more.probability(new), cold.probability(new), atol=1e-6)
    start = more.log_evidence().item()
    assert more.fit().item() >= start


@KINDS
def test_classes_far_apart_stay_finite(link):
    x = torch.tensor([-3.0, 3.0], dtype=torch.float64).repeat_interleave(30)[:, None]
    y = torch.arange(60) // 30
    model = set_to(LaplaceGPC.build(x, y, link), 1e4, 1.0)
    value = model.log_evidence()
    value.backward()
    assert torch.isfinite(value)
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters())
    p = model.probability(torch.tensor([[-3.0], [3.0]], dtype=torch.float64))
    # Laplace's variance is wide where f is far from 0: unsure, but on the right side.
    assert p[0] < 0.5
    assert p[1] > 0.5


def test_labels_of_one_class_teach_no_hyperparameters():
    x, _ = rows(10)
    model = LaplaceGPC.build(x, torch.ones(10, dtype=torch.long))
    before = [p.clone() for p in model.parameters()]
    model.fit()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert bool((model.probability(x) > 0.5).all())


@pytest.mark.parametrize(
    ("x", "y", "link", "sentence"),
    [
        (torch.zeros(3, 2), torch.tensor([0, 1, 2]), "logistic", "0 or 1"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), "logistic", "one label a row"),
        (torch.full((2, 1), torch.nan), torch.tensor([0, 1]), "logistic", "finite"),
        (torch.zeros(2, 1), torch.tensor([0, 1]), "cloglog", "link must be"),
    ],
)
def test_bad_input_is_a_sentence(x, y, link, sentence):
    with pytest.raises(BadInput, match=sentence):
        LaplaceGPC.build(x, y, link)
