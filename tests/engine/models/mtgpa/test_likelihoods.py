"""Expectations and predictive densities of the likelihoods, against samples and quadrature."""

import math

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import nbinom
from torch.distributions import Bernoulli, NegativeBinomial, Normal, Poisson

from scant.errors import BadInput
from scant.models.mtgpa.likelihoods import LIKELIHOODS, Moments, likelihood
from scant.predictive import CountsPredictive

DRAWS = 400_000


def _posterior(functions):
    mean = torch.tensor([[0.3, -0.5, 1.0], [-1.0, 0.2, 0.1]]).double()[:functions]
    root = torch.tensor([[0.5, 0.0], [0.3, 0.4]]).double()[:functions, :functions]
    covariance = (root @ root.T).unsqueeze(2) * torch.tensor([1.0, 0.3, 2.0]).double()
    return Moments(mean, covariance)


def _draws(q):
    g = torch.Generator().manual_seed(0)
    root = torch.linalg.cholesky(q.covariance.permute(2, 0, 1))
    noise = torch.randn(DRAWS, 3, len(q.mean), 1, generator=g, dtype=torch.float64)
    return q.mean.unsqueeze(0) + (root @ noise)[..., 0].permute(0, 2, 1)


def _case(name):
    """y, exposure, the likelihood as torch.distributions has it, and its mean."""
    y, exposure = torch.tensor([0.0, 1.0, 3.0]).double(), torch.tensor([1.0, 2.0, 0.5]).double()
    lik = likelihood(name)
    if name == "gaussian":
        lik.log_noise.data.fill_(math.log(0.3))
        return y, exposure, lik, lambda f: Normal(f[:, 0], lik.noise().detach().sqrt())
    if name == "gaussian_rate":
        lik.log_noise.data.fill_(math.log(0.2))
        lik.log_spread.data.fill_(math.log(0.3))
        std = (lik.noise() + 0.3 / exposure).detach().sqrt()
        return y, exposure, lik, lambda f: Normal(f[:, 0], std)
    if name == "negative_binomial":
        lik.log_dispersion.data.fill_(math.log(0.4))
        r = 1 / lik.dispersion().detach()
        mean = lambda f: exposure * f[:, 0].exp()  # noqa: E731
        return y, exposure, lik, lambda f: NegativeBinomial(r, probs=mean(f) / (mean(f) + r))
    if name == "heteroscedastic":
        return y, exposure, lik, lambda f: Normal(f[:, 0], (0.5 * f[:, 1]).exp())
    if name == "poisson":
        return y, exposure, lik, lambda f: Poisson(exposure * f[:, 0].exp())
    return y.clamp(max=1), exposure, lik, lambda f: Bernoulli(logits=f[:, 0])


@pytest.mark.parametrize("name", LIKELIHOODS)
@torch.no_grad()
def test_expectations_are_those_of_samples(name):
    y, exposure, lik, family = _case(name)
    q = _posterior(lik.functions)
    observed = family(_draws(q))
    log_prob = observed.log_prob(y)
    error = 5 / DRAWS**0.5
    got = lik.expected_log_prob(y, q, exposure)
    assert bool(((got - log_prob.mean(0)).abs() < error * log_prob.std(0)).all())
    density = log_prob.exp()
    got = lik.log_predictive(y, q, exposure).exp()
    assert bool(((got - density.mean(0)).abs() < error * density.std(0)).all())


@pytest.mark.parametrize("name", LIKELIHOODS)
@torch.no_grad()
def test_predictions_are_those_of_samples(name):
    _, exposure, lik, family = _case(name)
    q = _posterior(lik.functions)
    observed = family(_draws(q))
    got = lik.predict(q, exposure)
    torch.testing.assert_close(got.mean, observed.mean.mean(0), rtol=0.02, atol=5e-3)
    torch.testing.assert_close(got.variance, observed.mean.var(0), rtol=0.1, atol=5e-3)
    torch.testing.assert_close(got.noise, observed.variance.mean(0), rtol=0.02, atol=5e-3)


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
@torch.no_grad()
def test_closed_forms_are_the_sums_they_replace(name):
    """Gauss-Hermite is exact for polynomials, and nearly so for an exponential."""
    y, exposure, lik, family = _case(name)
    q = _posterior(1)
    x, w = (torch.from_numpy(part).unsqueeze(1) for part in hermegauss(60))
    f = q.mean[0] + q.covariance[0, 0].sqrt() * x
    expected = (w * family(f.unsqueeze(1)).log_prob(y)).sum(0) / w.sum()
    torch.testing.assert_close(lik.expected_log_prob(y, q, exposure), expected)


@torch.no_grad()
def test_a_constant_noise_function_is_the_gaussian():
    y, exposure, gaussian, _ = _case("gaussian")
    one = _posterior(1)
    two = Moments(torch.cat([one.mean, gaussian.noise().log().expand(1, 3)]), torch.zeros(2, 2, 3))
    two = Moments(two.mean, two.covariance.double())
    two.covariance[0, 0] = one.covariance[0, 0]
    hetero = likelihood("heteroscedastic")
    for method in ("expected_log_prob", "log_predictive"):
        expected = getattr(gaussian, method)(y, one, exposure)
        torch.testing.assert_close(getattr(hetero, method)(y, two, exposure), expected)


@pytest.mark.parametrize("name", ["gaussian", "gaussian_rate", "heteroscedastic"])
@torch.no_grad()
def test_known_noise_is_added_to_what_is_learned(name):
    y, exposure, lik, family = _case(name)
    q, known = _posterior(lik.functions), torch.tensor([0.4, 0.0, 2.0]).double()
    f = _draws(q)
    mean, variance = family(f).mean, family(f).variance
    log_prob = Normal(mean, (variance + known).sqrt()).log_prob(y)
    got = lik.expected_log_prob(y, q, exposure, known)
    assert bool(((got - log_prob.mean(0)).abs() < 5 / DRAWS**0.5 * log_prob.std(0)).all())
    none = lik.expected_log_prob(y, q, exposure, torch.zeros(3).double())
    torch.testing.assert_close(none, lik.expected_log_prob(y, q, exposure))


@torch.no_grad()
def test_counts_without_dispersion_are_poisson_and_with_it_have_quantiles_of_samples():
    y, exposure, lik, _ = _case("negative_binomial")
    q, p = _posterior(1), np.array([0.025, 0.5, 0.975])
    f = _draws(q)[:, 0]
    alpha = float(lik.dispersion())
    mean = (exposure * f.exp()).numpy()
    drawn = nbinom.rvs(1 / alpha, 1 / (1 + alpha * mean), random_state=0)
    low, high = (np.quantile(drawn, p + by, axis=0) for by in (-0.003, 0.003))
    log_rate, variance = q.mean[0] + exposure.log(), q.covariance[0, 0]
    columns = [column.numpy()[:, None] for column in (log_rate, variance)]
    one = np.ones_like(columns[0])
    got = CountsPredictive(one, *columns, one[:, 0], alpha).quantile(p)
    assert ((low <= got) & (got <= high)).all()
    lik.log_dispersion.data.fill_(-30.0)
    poisson = likelihood("poisson")
    for method in ("expected_log_prob", "log_predictive"):
        expected = getattr(poisson, method)(y, q, exposure)
        torch.testing.assert_close(
            getattr(lik, method)(y, q, exposure), expected, rtol=1e-4, atol=1e-5
        )
    torch.testing.assert_close(
        lik.predict(q, exposure), poisson.predict(q, exposure), rtol=1e-4, atol=1e-5
    )
    few, none = (CountsPredictive(one, *columns, one[:, 0], a).quantile(p) for a in (1e-9, 0.0))
    np.testing.assert_array_equal(few, none)


def test_values_that_cannot_be_are_named():
    with pytest.raises(BadInput, match=r"Task 2 .* value 1 is 0\.5"):
        likelihood("poisson").check(torch.tensor([1.0, 0.5]), 2)
    with pytest.raises(BadInput, match="value 0 is -1"):
        likelihood("poisson").check(torch.tensor([-1.0]), 0)
    with pytest.raises(BadInput, match="value 1 is 2"):
        likelihood("bernoulli").check(torch.tensor([1.0, 2.0]), 0)
    with pytest.raises(BadInput, match="unknown"):
        likelihood("cauchy")
