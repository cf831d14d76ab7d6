"""The thesis's own examples: Almosallam (2017), section 3.2, Tables 5.2 and 5.4."""

import math

import pytest
import torch

from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.optim.lbfgs import LBFGS

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _fit(X, y, n_basis, steps, covariance="VL", het=True, omega=None, noise=None, validation=None):
    model = GPz(X.shape[1], n_basis, covariance, het, joint_mean=validation is not None)
    model.init_from_data(X, y, torch.Generator().manual_seed(0))
    log_evidence = LogEvidence(model, X, y, omega, noise)
    optimizer = LBFGS(model.parameters(), lambda: -log_evidence())
    best, kept = -math.inf, None
    for step in range(1, steps + 1):
        optimizer.step()
        if validation is not None and step % 5 == 0:
            model.fit_posterior(X, y, omega, noise, mixture=None)
            score = _log_density(model.predict(validation[0]), validation[1]).mean().item()
            if score > best:
                best, kept = score, {k: v.clone() for k, v in model.state_dict().items()}
    if kept is not None:
        model.load_state_dict(kept)
    model.fit_posterior(X, y, omega, noise)
    return model


def _log_density(got, y):
    return -0.5 * ((got.mean - y) ** 2 / got.variance + got.variance.log()) - HALF_LOG_2PI


def _sinc(n, g):
    """The example of section 3.2, with input noise of section 5.1.1: x, noisy x, psi, y, sigma."""
    x = torch.linspace(-10, 10, n, dtype=torch.float64)
    sigma = 0.01 + 0.2 * (1 + torch.sin(2 * x)) / (1 + torch.exp(-0.2 * x))
    y = torch.sinc(x) + sigma * torch.randn(n, generator=g, dtype=torch.float64)
    psi = -0.5 * torch.log(torch.rand(n, generator=g, dtype=torch.float64))
    moved = x + psi.sqrt() * torch.randn(n, generator=g, dtype=torch.float64)
    return x, moved, psi, y, sigma


@pytest.mark.slow
def test_sinc_recovers_its_noise_function():
    x, _, _, y, sigma = _sinc(4000, torch.Generator().manual_seed(0))
    model = _fit(x[:, None], y, 40, 150)
    got = model.predict(x[:, None])
    found = got.noise_variance.sqrt()
    assert ((found - sigma).abs() / sigma).median() < 0.1
    assert torch.corrcoef(torch.stack([found, sigma]))[0, 1] > 0.98
    assert (got.mean - torch.sinc(x)).square().mean().sqrt() < 0.02
    # With 4,000 samples hardly anything is left that more data would take away.
    assert got.model_variance.mean() < 0.05 * got.noise_variance.mean()


@pytest.mark.slow
@pytest.mark.parametrize(("het", "covariance"), [(False, "GL"), (True, "VL")])
def test_table_5_4_order_of_methods(het, covariance):
    """RMSE: deterministic > noise as input or as cost > expected RBF (.083 > .055, .054 > .030)."""
    T = torch.linspace(-10, 10, 1000, dtype=torch.float64)
    errors = torch.zeros(4)
    for seed in range(2):
        _, moved, psi, y, _ = _sinc(3000, torch.Generator().manual_seed(seed))
        x = moved[:, None]
        common = {"n_basis": 25, "steps": 120, "covariance": covariance, "het": het}
        both, still = torch.stack([moved, psi], 1), torch.stack([T, 0 * T], 1)
        predictions = [
            _fit(x, y, **common).predict(T[:, None]),
            _fit(both, y, **common).predict(still),
            _fit(x, y, omega=psi.clamp(min=1e-6).rsqrt(), **common).predict(T[:, None]),
            _fit(x, y, noise=psi[:, None], **common).predict(T[:, None]),
        ]
        errors += torch.stack(
            [(p.mean - torch.sinc(T)).square().mean().sqrt() for p in predictions]
        )
    deterministic, as_input, as_cost, expected = (errors / 2).tolist()
    assert expected < min(as_input, as_cost), errors / 2
    assert max(as_input, as_cost) < deterministic, errors / 2


def _three_gaussians(seed):
    """The two-dimensional example 4.35, a thousand points of each Gaussian."""
    g = torch.Generator().manual_seed(seed)
    means = torch.tensor([[10.0, 0], [10, 10], [5, 5]]).double()
    covs = torch.tensor([[[10.0, 0], [0, 1]], [[5, -3], [-3, 3]], [[2, 0], [0, 2]]]).double()
    draws = torch.randn(3, 1000, 2, generator=g, dtype=torch.float64)
    points = means[:, None] + draws @ torch.linalg.cholesky(covs).mT
    points = points.reshape(-1, 2)[torch.randperm(3000, generator=g)]
    parts = [torch.distributions.MultivariateNormal(m, c) for m, c in zip(means, covs)]
    f = sum(h * p.log_prob(points).exp() for h, p in zip((-9, 6, 3), parts))
    z = f + 0.01 * torch.randn(3000, generator=g, dtype=torch.float64)
    X = (points - points[:1000].mean(0)) / points[:1000].std(0)
    scale = z[:1000].std()
    return X, (z - z[:1000].mean()) / scale, scale.log()


TRAIN, VALIDATION, TEST = slice(0, 1000), slice(1000, 2000), slice(2000, 3000)


@pytest.fixture(scope="module")
def fitted():
    """Models of the example: of both dimensions, of the first alone, of the second alone."""
    X, y, _ = _three_gaussians(0)

    def fit(*kept):
        held = (X[VALIDATION][:, kept], y[VALIDATION])
        return _fit(X[TRAIN][:, kept], y[TRAIN], 30, 100, "VC", validation=held)

    return fit(0, 1), fit(0), fit(1)


@pytest.mark.slow
@pytest.mark.parametrize("mixture", ["basis", "data"])
def test_table_5_2_a_missing_band_agrees_with_a_model_without_it(fitted, mixture):
    """Mean log-likelihoods of the thesis: p(z|x) .4316 and .4312, p(z|y) 1.2716 and 1.2664."""
    X, y, log_scale = _three_gaussians(0)
    train, test = TRAIN, TEST
    model, *alone = fitted
    model.fit_posterior(X[train], y[train], mixture=mixture)
    for missing, published in ((1, 0.43), (0, 1.27)):
        kept = [1 - missing]
        reference = alone[1 - missing]
        holes = X[test].clone()
        holes[:, missing] = torch.nan
        ours = _log_density(model.predict(holes), y[test]).mean() - log_scale
        theirs = _log_density(reference.predict(X[test][:, kept]), y[test]).mean() - log_scale
        assert abs(ours - theirs) < 0.05
        assert abs(theirs - published) < 0.1
        # A mixture knows of two peaks what a single Gaussian blurs.
        grid = torch.linspace(-8, 8, 2001, dtype=torch.float64)
        density = model.predict_density(holes[:50], grid)
        nearest = (y[test][:50, None] - grid).abs().argmin(1, keepdim=True)
        whole = density.gather(1, nearest).log().mean() - log_scale
        assert (
            whole > _log_density(model.predict(holes[:50]), y[test][:50]).mean() - log_scale - 0.1
        )
