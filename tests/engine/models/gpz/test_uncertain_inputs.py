"""Noisy and missing inputs, at prediction and in training: Almosallam (2017), chapter 5."""

import pytest
import torch

from scant.models.gpz.input_density import Mixture, fill, fit_mixture, patterns, single_gaussian
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.uncertain_inputs import predict_inputs
from scant.optim.lbfgs import LBFGS

D, M, SAMPLES = 3, 6, 60_000
NAN = torch.nan


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _data(seed=0, n=400):
    g = torch.Generator().manual_seed(seed)
    mix = torch.tensor([[1.0, 0.5, 0.2], [0.0, 0.8, 0.4], [0.0, 0.0, 0.5]]).double()
    X = torch.randn(n, D, generator=g, dtype=torch.float64) @ mix
    noise = torch.randn(n, generator=g, dtype=torch.float64)
    return X, torch.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * noise, g


def _fitted(covariance="VC", joint=True, mixture="basis", het=True, link="exp"):
    X, y, g = _data()
    model = GPz(D, M, covariance, het, joint, noise_link=link)
    model.init_from_data(X, y, g)
    optimizer = LBFGS(model.parameters(), lambda: -LogEvidence(model, X, y)())
    for _ in range(25):
        optimizer.step()
    if het:
        with torch.no_grad():  # a noise that clearly varies
            model.v += 0.2 * torch.randn(M, generator=g, dtype=torch.float64)
    model.fit_posterior(X, y, mixture=mixture)
    return model, X, y, g


def _draw(model, row, g):
    """Inputs from the mixture, given the values of the row that are there (5.28)."""
    mixture = Mixture(model.mixture_log_weights, model.mixture_means, model.mixture_precisions)
    observed = ~row.isnan()
    log_joint = mixture.log_joint(row[None], observed)[0]
    j = torch.multinomial(log_joint.softmax(0), SAMPLES, replacement=True, generator=g)
    slope, offset, spread = mixture.conditional(observed)
    root = torch.linalg.cholesky(spread + 1e-14 * torch.eye(D).double())
    noise = torch.randn(SAMPLES, D, 1, generator=g, dtype=torch.float64)
    return slope[j] @ row[observed] + offset[j] + (root[j] @ noise).squeeze(-1)


def _close(got, sampled, row=0, noise_tolerance=0.1):
    """Moments of one row against those of predictions at sampled inputs."""
    f = sampled.mean
    assert abs(got.mean[row] - f.mean()) < 5 * f.std() / len(f) ** 0.5 + 1e-3 * f.std()
    torch.testing.assert_close(got.input_variance[row], f.var(), rtol=0.05, atol=1e-9)
    expected = sampled.model_variance.mean()
    torch.testing.assert_close(got.model_variance[row], expected, rtol=0.05, atol=1e-9)
    # The Taylor series 5.17 is not exact.
    expected = sampled.noise_variance.mean()
    torch.testing.assert_close(got.noise_variance[row], expected, rtol=noise_tolerance, atol=1e-9)


@pytest.mark.parametrize("covariance", ["VC", "VD", "GL"])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("mixture", ["basis", "data"])
def test_missing_inputs_equal_sampling_from_the_mixture(covariance, joint, mixture):
    model, X, _, g = _fitted(covariance, joint, mixture)
    rows = X[:3].clone()
    rows[0, 1] = rows[1, 0] = rows[1, 2] = rows[2, :] = NAN
    got = model.predict(rows)
    for r in range(3):
        _close(got, model.predict(_draw(model, rows[r], g)), r, 0.2)


@pytest.mark.parametrize("covariance", ["VC", "VD", "GL"])
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_noisy_inputs_equal_sampling(covariance, joint, full):
    model, X, _, g = _fitted(covariance, joint)
    root = 0.3 * torch.randn(D, D, generator=g, dtype=torch.float64)
    noise = root @ root.T if full else torch.diag(torch.tensor([0.2, 0.05, 0.1]).double())
    draws = torch.distributions.MultivariateNormal(X[3], noise + 1e-14 * torch.eye(D)).sample(
        (SAMPLES,)
    )
    got = model.predict(X[3:4], noise[None] if full else noise.diagonal()[None])
    _close(got, model.predict(draws))


@pytest.mark.slow
@pytest.mark.parametrize("covariance", ["VC", "GL"])
def test_a_squared_link_has_the_noise_of_sampling(covariance):
    """Exact moments (below 5.17): 2% is seven standard errors of 60,000 draws or more."""
    model, X, _, g = _fitted(covariance, link="squared")
    noise = torch.tensor([[0.2, 0.05, 0.1]]).double()
    draws = X[3] + noise.sqrt() * torch.randn(SAMPLES, D, generator=g, dtype=torch.float64)
    _close(model.predict(X[3:4], noise), model.predict(draws), noise_tolerance=0.02)
    rows = X[:2].clone()
    rows[0, 1] = rows[1, 0] = rows[1, 2] = NAN
    got = model.predict(rows)
    for r in range(2):
        _close(got, model.predict(_draw(model, rows[r], g)), r, 0.02)


@pytest.mark.slow
def test_missing_and_noisy_inputs_are_near_sampling():
    """5.44-5.66 is an approximation: its Table 5.3 counts z-scores against samples, near 0.2."""
    model, X, _, g = _fitted(mixture="data")
    row, variance = X[5].clone(), 0.05
    row[1] = NAN
    got = model.predict(row[None], torch.full((1, D), variance, dtype=torch.float64))
    means = []
    for _ in range(300):
        moved = row + variance**0.5 * torch.randn(D, generator=g, dtype=torch.float64)
        means.append(model.predict(moved[None]).mean)
    means = torch.cat(means)
    spread = (means.var() + got.input_variance[0]).sqrt()
    assert abs(got.mean[0] - means.mean()) < 0.3 * spread


def test_the_general_way_and_the_fast_way_agree():
    model, X, _, _ = _fitted()
    rows = X[:6].clone()
    rows[::2, 1] = rows[::3, 2] = NAN
    rows = rows[rows.isnan().any(1)]
    fast = predict_inputs(model._fitted(), rows, None)
    general = predict_inputs(model._fitted(), rows, torch.full_like(rows, 1e-13))
    for a, b in zip(vars(fast).values(), vars(general).values()):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


def test_chunks_do_not_change_a_prediction(monkeypatch):
    model, X, _, _ = _fitted()
    rows = X[:20].clone()
    rows[::2, 1] = NAN
    noise = torch.full_like(rows, 0.05)
    whole = [model.predict(rows).variance, model.predict(rows, noise).variance]
    monkeypatch.setattr("scant.inference.expectations.CHUNK", 64)
    monkeypatch.setattr("scant.inference.expectations.CACHED", 64)
    parts = [model.predict(rows).variance, model.predict(rows, noise).variance]
    for a, b in zip(whole, parts):
        torch.testing.assert_close(a, b)


def test_what_is_kept_of_a_model_goes_when_the_model_changes(monkeypatch):
    model, X, _, _ = _fitted()
    rows = X[:40].clone()
    rows[::2, 1] = rows[::3, 2] = NAN
    before = model.predict(rows)
    kept = model._fitted()
    assert model._fitted() is kept
    torch.testing.assert_close(model.predict(rows).variance, before.variance, rtol=0, atol=0)
    model.weight_mean.add_(0.5)
    after = model.predict(rows)
    assert model._fitted() is not kept
    assert (after.mean - before.mean).abs().min() > 1e-3
    monkeypatch.setattr("scant.models.gpz.given.MAX_CACHED", 1)  # one set of coefficients at a time
    model.weight_mean.sub_(0.5)
    again = model.predict(rows)
    assert len(model._fitted()._cache) == 1
    torch.testing.assert_close(again.variance, before.variance)


def test_all_bands_present_equal_the_plain_prediction():
    model, X, _, _ = _fitted()
    mixed = X.clone()
    mixed[0, 0] = NAN
    plain, among, still = model.predict(X), model.predict(mixed), model.predict(X, 0 * X)
    for name in ("mean", "model_variance", "noise_variance", "input_variance"):
        torch.testing.assert_close(getattr(among, name)[1:], getattr(plain, name)[1:])
        torch.testing.assert_close(getattr(still, name), getattr(plain, name), atol=1e-9, rtol=1e-6)


def test_density_integrates_to_one_and_has_the_moments_of_the_prediction():
    model, X, _, _ = _fitted()
    rows = X[:4].clone()
    rows[0, 0] = rows[1, 1] = rows[2, :] = NAN
    grid = torch.linspace(-60, 60, 40_001, dtype=torch.float64)
    density, got = model.predict_density(rows, grid), model.predict(rows)
    torch.testing.assert_close(torch.trapezoid(density, grid), torch.ones(4).double())
    mean = torch.trapezoid(density * grid, grid)
    torch.testing.assert_close(mean, got.mean, rtol=1e-5, atol=1e-5)
    variance = torch.trapezoid(density * (grid - mean.unsqueeze(1)) ** 2, grid)
    torch.testing.assert_close(variance, got.variance, rtol=1e-4, atol=1e-6)
    assert density.shape == (4, len(grid))


@pytest.mark.parametrize("free", [False, True])
def test_em_never_lowers_the_density_and_finds_the_weights(free):
    g = torch.Generator().manual_seed(0)
    truth = torch.tensor([0.2, 0.8]).double()
    means = torch.tensor([[-3.0, 0.0], [3.0, 1.0]]).double()
    j = torch.multinomial(truth, 2000, replacement=True, generator=g)
    X = means[j] + torch.randn(2000, 2, generator=g, dtype=torch.float64)
    X[torch.rand(2000, generator=g) < 0.3, 0] = NAN
    start = Mixture(
        truth.new_tensor([0.5, 0.5]).log(),
        means + 0.3 * free,
        torch.eye(2).double().expand(2, 2, 2),
    )
    # With `free`, EM climbs the density and a prior of each covariance S, whose mode it shrinks to:
    # |S|^(-a/2) exp(-tr(V / S) a/2) with a = d + 2 and V = diag(variances) / k^(2/d).
    columns = torch.where(X.isnan(), X.nanmean(0), X)
    V = torch.diag(columns.var(0, correction=0)) / 2

    def score(mixture):
        density = sum(mixture.log_joint(X[r], o).logsumexp(1).sum() for o, r in patterns(X))
        P = mixture.precisions
        prior = 4 / 2 * (P.logdet() - (V @ P).diagonal(dim1=1, dim2=2).sum(1)).sum()
        return density + free * prior

    found = [fit_mixture(X, start, free, sweeps, tolerance=0.0) for sweeps in (1, 2, 5, 60)]
    scores = [score(mixture).item() for mixture in found]
    assert scores == sorted(scores)
    assert scores[-1] > scores[0]
    found = found[-1]
    if free:
        means, precisions = (v.clone().requires_grad_() for v in found[1:3])
        score(Mixture(found.log_weights, means, precisions)).backward()
        symmetric = precisions.grad + precisions.grad.mT
        for slope in (means.grad, symmetric):  # 1e-10 here; 0.9 of a prior that is 10 % off
            torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-4)
    torch.testing.assert_close(found.log_weights.exp(), truth, rtol=0, atol=0.04)
    torch.testing.assert_close(found.means, means, rtol=0, atol=0.2)


def test_one_gaussian_fills_with_conditional_means():
    g = torch.Generator().manual_seed(0)
    a = torch.randn(4000, generator=g, dtype=torch.float64)
    X = torch.stack([a, 2 * a + 0.1 * torch.randn(4000, generator=g, dtype=torch.float64)], 1)
    holes = X.clone()
    holes[: 4000 // 2, 1] = NAN
    filled = fill(holes, single_gaussian(holes))
    assert (filled - X).abs().mean() < 0.1
    assert torch.equal(filled[2000:], X[2000:])


@pytest.mark.parametrize("covariance", ["VC", "GD"])
@pytest.mark.parametrize("noise", [None, "diagonal", "full"])
@pytest.mark.parametrize("missing", [False, True])
def test_training_gradients_equal_finite_differences(covariance, noise, missing):
    X, y, g = _data(n=30)
    if missing:
        X[::3, 1] = X[::5, 0] = X[0, :] = NAN
    psi = {
        None: None,
        "diagonal": torch.full_like(X, 0.1),
        "full": (0.1 * torch.eye(D).double()).expand(30, D, D),
    }[noise]
    model = GPz(D, 3, covariance)
    model.init_from_data(X, y, g)
    gradient = torch.autograd.grad(-LogEvidence(model, X, y, None, psi)(), list(model.parameters()))
    step = 1e-5
    for p, slope in zip(model.parameters(), gradient):
        direction = torch.randn(p.shape, generator=g, dtype=p.dtype)
        with torch.no_grad():
            p += step * direction
            up = -LogEvidence(model, X, y, None, psi)()
            p -= 2 * step * direction
            down = -LogEvidence(model, X, y, None, psi)()
            p += step * direction
        numeric = (up - down) / (2 * step)
        torch.testing.assert_close((slope * direction).sum(), numeric, rtol=1e-5, atol=1e-5)


def test_training_basis_is_that_of_the_thesis():
    """5.86 written out with covariances, for a row that misses one value and is noisy."""
    model, X, _, _ = _fitted()
    row = X[:1].clone()
    row[0, 1] = NAN
    o = [0, 2]
    noise = torch.tensor([[0.2, 5.0, 0.1]]).double()
    phi = model.design(row, noise)[0].detach()[0]
    for j in range(M):
        S = torch.linalg.inv(model.precision()[j].detach())[o][:, o]
        wide = S + torch.diag(noise[0, o])
        away = row[0, o] - model.centres[j, o].detach()
        height = (S.det() / (2 * wide.det())).sqrt()
        expected = height * torch.exp(-0.5 * away @ torch.linalg.solve(wide, away))
        torch.testing.assert_close(phi[j], expected, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
def test_training_with_holes_beats_dropping_the_rows():
    X, y, g = _data(n=600)
    test_X, test_y, _ = _data(seed=1)
    holes = X.clone()
    where = torch.rand(600, D, generator=g) < 0.25
    holes[where] = NAN
    complete = ~holes.isnan().any(1)

    def error(X, y):
        model = GPz(D, 10, "VD")
        model.init_from_data(X, y, torch.Generator().manual_seed(0))
        optimizer = LBFGS(model.parameters(), lambda: -LogEvidence(model, X, y)())
        for _ in range(40):
            optimizer.step()
        model.fit_posterior(X, y)
        return (model.predict(test_X).mean - test_y).square().mean().sqrt().item()

    few = complete.nonzero().squeeze(1)[:12]
    rest = torch.cat([few, (~complete).nonzero().squeeze(1)])
    assert error(holes[rest], y[rest]) < error(X[few], y[few])
