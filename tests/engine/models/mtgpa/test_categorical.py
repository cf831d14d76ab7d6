"""The categorical likelihood, against samples, product quadrature, Bernoulli and drawn areas."""

import math

import pytest
import torch
from gpytorch.distributions import MultitaskMultivariateNormal
from numpy.polynomial.hermite_e import hermegauss

from scant.errors import BadInput
from scant.kernels.box_average.support import boxes
from scant.models.mtgpa import categorical
from scant.models.mtgpa.categorical import Categorical
from scant.models.mtgpa.likelihoods import Bernoulli, Moments, likelihood
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.training import MTGPATrainer

DRAWS = 200_000


def _posterior(functions):
    g = torch.Generator().manual_seed(3)
    root = torch.randn(functions, functions, 5, generator=g, dtype=torch.float64)
    mean = torch.randn(functions, 5, generator=g, dtype=torch.float64)
    return Moments(mean, torch.einsum("fkn,gkn->fgn", root, root) / functions)


def _softmax(f):
    return torch.cat([f, torch.zeros_like(f[:, :1])], 1).softmax(1)


@pytest.mark.slow
@torch.no_grad()
def test_expectations_and_predictions_are_those_of_samples():
    q, lik = _posterior(3), Categorical(4)
    y, exposure = torch.tensor([0.0, 1.0, 2.0, 3.0, 0.0]).double(), torch.ones(5).double()
    g = torch.Generator().manual_seed(0)
    root = torch.linalg.cholesky(q.covariance.permute(2, 0, 1))
    noise = torch.randn(DRAWS, 5, 3, 1, generator=g, dtype=torch.float64)
    p = _softmax(q.mean + (root @ noise)[..., 0].permute(0, 2, 1))
    own = p.gather(1, y.long().expand(DRAWS, 1, 5))[:, 0]
    # The quadrature's own error (see POINTS) beside the samples' of 1 / sqrt(200,000).
    close = {"rtol": 0.0, "atol": 0.01}
    torch.testing.assert_close(lik.expected_log_prob(y, q), own.log().mean(0), **close)
    torch.testing.assert_close(lik.log_predictive(y, q, exposure).exp(), own.mean(0), **close)
    torch.testing.assert_close(lik.probabilities(q), p.mean(0), **close)
    told = lik.predict(q, exposure)  # of class 0
    torch.testing.assert_close(told.mean, p[:, 0].mean(0), **close)
    torch.testing.assert_close(told.variance, p[:, 0].var(0), **close)
    torch.testing.assert_close(told.variance + told.noise, told.mean * (1 - told.mean))


def test_three_classes_have_the_values_and_gradients_of_product_quadrature():
    y, lik = torch.tensor([0.0, 1.0, 2.0, 2.0, 0.0]).double(), Categorical(3)
    nodes, weights = (torch.as_tensor(v) for v in hermegauss(80))
    z = torch.cartesian_prod(nodes, nodes)
    weights = torch.outer(weights, weights).flatten() / weights.sum() ** 2
    results = []
    for method in ("ours", "product"):
        q = Moments(*(v.requires_grad_() for v in _posterior(2)))
        if method == "ours":
            value = lik.expected_log_prob(y, q)
        else:
            root = torch.linalg.cholesky(q.covariance.permute(2, 0, 1))
            f = q.mean + torch.einsum("nfg,sg->sfn", root, z)
            p = _softmax(f).gather(1, y.long().expand(len(z), 1, 5))[:, 0]
            value = (weights.unsqueeze(1) * p.log()).sum(0)
        by_mean, by_covariance = torch.autograd.grad(value.sum(), q)
        # Autograd tells apart entries (0, 1) and (1, 0) of a symmetric matrix; their sum counts.
        results.append((value, by_mean, by_covariance + by_covariance.transpose(0, 1)))
    for ours, product in zip(*results):  # within a few of the mean errors beside POINTS
        torch.testing.assert_close(ours, product, rtol=0.0, atol=3e-3)


def test_probabilities_do_not_depend_on_blocks(monkeypatch):
    q, lik = _posterior(2), Categorical(3)
    at_once = lik.probabilities(q)
    monkeypatch.setattr(categorical, "BLOCK", 2)
    torch.testing.assert_close(lik.probabilities(q), at_once)
    none = lik.probabilities(Moments(q.mean[:, :0], q.covariance[:, :, :0]))
    assert none.shape == (3, 0)


def test_two_classes_are_the_bernoulli_likelihood():
    q, exposure = Moments(*(v.requires_grad_() for v in _posterior(1))), torch.ones(5).double()
    y = torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0]).double()
    ours, bernoulli = Categorical(2), Bernoulli()
    values = ours.expected_log_prob(y, q), bernoulli.expected_log_prob(1 - y, q)
    torch.testing.assert_close(*values)
    for first, second in zip(*(torch.autograd.grad(v.sum(), q) for v in values)):
        torch.testing.assert_close(first, second)
    for first, second in zip(ours.predict(q, exposure), bernoulli.predict(q, exposure)):
        torch.testing.assert_close(first, second)
    torch.testing.assert_close(
        ours.log_predictive(y, q, exposure), bernoulli.log_predictive(1 - y, q, exposure)
    )
    torch.testing.assert_close(ours.start(y, exposure, 0.1), bernoulli.start(1 - y, exposure, 0.1))


def test_perfectly_correlated_functions_have_finite_gradients():
    q = Moments(torch.zeros(3, 2).double(), torch.ones(3, 3, 2).double())  # of one latent function
    q = Moments(*(v.requires_grad_() for v in q))
    value = Categorical(4).expected_log_prob(torch.tensor([0.0, 3.0]).double(), q)
    assert all(bool(g.isfinite().all()) for g in torch.autograd.grad(value.sum(), q))


def test_values_that_are_no_class_are_named():
    lik = Categorical(3)
    with pytest.raises(BadInput, match=r"Task 2 .* value 1 is 3; use the classes 0 to 2"):
        lik.check(torch.tensor([0.0, 3.0]), 2)
    with pytest.raises(BadInput, match=r"Task 1 .* value 0 is 0\.5"):
        Categorical.from_values(torch.tensor([0.5, 1.0]), 1)
    with pytest.raises(BadInput, match="all its values are 0"):
        Categorical.from_values(torch.zeros(4), 0)
    with pytest.raises(BadInput, match="at least 2 classes"):
        Categorical(1)
    with pytest.raises(BadInput, match="needs the number of classes"):
        likelihood("categorical")


def _areas(n, seed):
    """Classes of intervals, and their probabilities by averages of the log odds over these."""
    g = torch.Generator().manual_seed(seed)
    lower = torch.rand(n, 1, generator=g, dtype=torch.float64) * 10
    width = 0.2 + torch.rand(n, 1, generator=g, dtype=torch.float64)
    x = (lower + width * torch.linspace(0, 1, 51).double()).unsqueeze(1)
    p = _softmax(torch.cat([2.5 * torch.sin(x), 2.5 * torch.cos(x)], 1).mean(2))
    y = torch.multinomial(p, 1, generator=g)[:, 0].double()
    return boxes(lower, lower + width), y, p


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["natural", "adam"])
def test_a_fit_to_areas_of_three_classes_tells_their_probabilities(scheme):
    supports, y, _ = _areas(150, 0)
    data = Data(supports, y, torch.zeros(150, dtype=torch.long))
    g = torch.Generator().manual_seed(0)
    natural = scheme == "natural"
    model = MTGPA.build(data, ["categorical"], 1, g, inducing=20, ranks=(1, 1), natural=natural)
    trainer = MTGPATrainer(model, data, g, scheme=scheme, rate=0.05)
    elbo = [trainer.step() for _ in range(80)]
    assert elbo[-1] > elbo[0]
    supports, y, p = _areas(400, 1)
    with torch.no_grad():
        lik = model.likelihoods[0]
        told = lik.probabilities(model.moments(supports, 0)).T
        score = model.log_predictive(Data(supports, y, torch.zeros(400, dtype=torch.long)))
        f = model(supports[:7])
    share = torch.bincount(data.y.long()) / 150
    by_shares = share.log()[y.long()]
    gain = score - by_shares
    # Three standard errors, so that a model that only knows the shares fails.
    assert gain.mean() > 3 * gain.std() / math.sqrt(400)
    # The shares, which know no place, are wrong by .25; 150 areas leave an error of .05.
    assert (told - p).abs().mean() < 0.1 < (share - p).abs().mean()
    assert isinstance(f, MultitaskMultivariateNormal)
    torch.testing.assert_close(f.mean.mT, model.moments(supports[:7], 0).mean)
    torch.manual_seed(0)
    samples = f.sample(torch.Size([20_000]))
    odds = torch.cat([samples, torch.zeros_like(samples[..., :1])], -1)
    # Four standard errors of probabilities, whose deviation is .5 at most.
    close = {"rtol": 0.0, "atol": 4 * 0.5 / math.sqrt(20_000)}
    torch.testing.assert_close(lik(f).probs, odds.softmax(-1).mean(0), **close)


def test_log_odds_start_with_the_signs_of_their_classes():
    """Class 0 lies left, class 1 right, the reference in the middle of a task that rises."""
    x = torch.linspace(0, 1, 90, dtype=torch.float64).unsqueeze(1)
    y = torch.tensor([0.0, 2.0, 1.0]).double().repeat_interleave(30)
    data = Data(
        boxes(x, x).repeat(2, 1), torch.cat([x[:, 0], y]), torch.arange(2).repeat_interleave(90)
    )
    g = torch.Generator().manual_seed(0)
    model = MTGPA.build(data, ["gaussian", "categorical"], 1, g, inducing=8)
    assert model.functions == [[0], [1, 2]]
    assert torch.sign(model.prior.mixing[0]).tolist() == [1, -1, 1]
