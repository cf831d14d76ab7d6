"""Expectations under Gaussians against sampling and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from scant.ensemble import spread
from scant.inference import psi
from scant.inference.expectations import (
    Forms,
    expected_kernel,
    expected_product,
    expected_product_dot,
    expected_product_sum,
    kernel_forms,
    log_expected,
    log_kernel,
    marginal_forms,
    pair_forms,
    quadratics,
    tilted_mean,
)
from scant.inference.psi import eq_matrices

N, M, D, SAMPLES = 5, 4, 3, 100_000


def _inputs(seed=0):
    g = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    root = 0.5 * draw(N, D, D)
    gamma = 0.4 * draw(M, D, D)  # wide: the mean of a rare peak has no use for its sample error
    covariances = {"diagonal": 0.1 + 0.4 * draw(N, D).abs(), "full": root @ root.mT}
    precisions = {
        "shared": 0.3 + draw(D).abs(),
        "diagonal": 0.3 + draw(M, D).abs(),
        "full": gamma.mT @ gamma,
    }
    return draw(N, D), covariances, draw(M, D), precisions, g


PAIRS = [(c, p) for c in ("diagonal", "full") for p in ("shared", "diagonal", "full")]


@pytest.mark.parametrize(("covariance", "precision"), PAIRS)
def test_agree_with_monte_carlo(covariance, precision):
    mean, covariances, z, precisions, g = _inputs()
    cov, P = covariances[covariance], precisions[precision]
    root = torch.diag_embed(cov.sqrt()) if cov.dim() == 2 else torch.linalg.cholesky(cov)
    noise = torch.randn(SAMPLES, N, D, generator=g, dtype=torch.float64)
    x = mean + torch.einsum("nij,snj->sni", root, noise)
    k = log_kernel(x.reshape(-1, D), z, P).exp().reshape(SAMPLES, N, M)
    kk = torch.einsum("sni,snj->snij", k, k)

    def away(got, samples):
        error = samples.std(0) / SAMPLES**0.5 + 1e-5
        return float(((got - samples.mean(0)).abs() / error).max())

    assert away(expected_kernel(mean, cov, z, P), k) < 5
    assert away(expected_product(mean, cov, z, P), kk) < 5
    tilted = tilted_mean(kernel_forms(z, P), mean, cov)
    expected = expected_kernel(mean, cov, z, P)
    moment = torch.einsum("sni,snd->snid", k, x)
    assert away(tilted * expected.unsqueeze(-1), moment) < 5


def test_agree_with_gauss_hermite():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    nodes, weights = torch.tensor(nodes), torch.tensor(weights / weights.sum())
    mean, variance = torch.tensor([[0.3], [-1.2]]), torch.tensor([[0.5], [0.02]])
    mean, variance = mean.double(), variance.double()
    z, P = torch.tensor([[-0.5], [0.1], [2.0]]).double(), torch.tensor([0.8]).double()
    x = mean + variance.sqrt() * nodes  # n x nodes
    k = torch.exp(-0.5 * P * (x.unsqueeze(-1) - z.squeeze(1)).square())
    torch.testing.assert_close(
        expected_kernel(mean, variance, z, P), torch.einsum("q,nqm->nm", weights, k)
    )
    torch.testing.assert_close(
        expected_product(mean, variance, z, P), torch.einsum("q,nqi,nqj->nij", weights, k, k)
    )


@pytest.mark.parametrize(("covariance", "precision"), PAIRS)
def test_forms_of_precision_and_covariance_agree(covariance, precision):
    mean, covariances, z, precisions, _ = _inputs()
    cov, P = covariances[covariance], precisions[precision]
    full_cov = cov if cov.dim() == 3 else torch.diag_embed(cov)
    full_P = P if P.dim() == 3 else torch.diag_embed(P.expand(M, D))
    torch.testing.assert_close(
        expected_product(mean, cov, z, P), expected_product(mean, full_cov, z, full_P)
    )
    omega = torch.arange(1.0, N + 1).double()
    torch.testing.assert_close(
        expected_product_sum(mean, cov, z, P, omega),
        torch.einsum("n,nij->ij", omega, expected_product(mean, cov, z, P)),
    )


def test_no_uncertainty_is_the_kernel_itself():
    mean, _, z, precisions, _ = _inputs()
    for P in precisions.values():
        plain = log_kernel(mean, z, P).exp()
        for zero in (torch.zeros(N, D).double(), torch.zeros(N, D, D).double()):
            torch.testing.assert_close(expected_kernel(mean, zero, z, P), plain)


def test_a_precision_without_inverse_ignores_a_direction():
    mean, covariances, z, _, _ = _inputs()
    flat = torch.diag(torch.tensor([1.0, 0.0, 0.0]).double()).expand(M, D, D)
    one = expected_kernel(
        mean[:, :1], covariances["full"][:, :1, :1], z[:, :1], torch.ones(M, 1, 1).double()
    )
    torch.testing.assert_close(expected_kernel(mean, covariances["full"], z, flat), one)


def test_chunks_do_not_change_the_sum(monkeypatch):
    mean, covariances, z, precisions, _ = _inputs()
    args = (mean, covariances["diagonal"], z, precisions["full"])
    whole = expected_product_sum(*args)
    monkeypatch.setattr("scant.inference.expectations.CHUNK", 1)
    torch.testing.assert_close(expected_product_sum(*args), whole)


def test_gradients_are_those_of_finite_differences():
    mean, covariances, z, precisions, _ = _inputs()
    for c, p in PAIRS:
        cov, P = covariances[c], precisions[p]
        args = [t.clone().requires_grad_() for t in (mean, cov, z, P)]
        assert torch.autograd.gradcheck(expected_product_sum, args, atol=1e-6)


def test_marginal_is_the_integral_over_the_rest():
    gamma = torch.tensor([[1.2, 0.3], [0.1, 0.9]]).double()
    forms = kernel_forms(torch.tensor([[0.4, -0.7]]).double(), (gamma.T @ gamma)[None])
    grid = torch.linspace(-12, 12, 20_001).double()
    points = torch.stack([torch.full_like(grid, 0.8), grid], dim=1)
    integral = torch.trapezoid((-0.5 * quadratics(points, forms)).exp()[:, 0], grid)
    marginal = marginal_forms(forms, torch.tensor([True, False]))
    value = (-0.5 * quadratics(torch.tensor([[0.8]]).double(), marginal)).exp()
    torch.testing.assert_close(value[0, 0], integral)


def test_pairs_are_products():
    mean, _, z, precisions, _ = _inputs()
    for P in precisions.values():
        forms = kernel_forms(z, P)
        products, i, j = pair_forms(forms)
        k = (-0.5 * quadratics(mean, forms)).exp()
        both = (-0.5 * quadratics(mean, products)).exp()
        torch.testing.assert_close(both, k[:, i] * k[:, j])


def test_float32_stays_float32():
    mean, covariances, z, precisions, _ = _inputs()
    forms = Forms(*(t.float() for t in kernel_forms(z, precisions["full"])))
    value = log_expected(forms, mean.float(), covariances["full"].float())
    assert value.dtype == torch.float32
    torch.testing.assert_close(
        value.double(),
        log_expected(kernel_forms(z, precisions["full"]), mean, covariances["full"]),
        rtol=1e-3,
        atol=1e-3,
    )


def test_several_columns_of_weights_are_several_sums(monkeypatch):
    mean, covariances, z, precisions, g = _inputs()
    args = (mean, covariances["diagonal"], z, precisions["shared"])
    columns = torch.rand(N, 3, generator=g, dtype=torch.float64).requires_grad_()
    sums = expected_product_sum(*args, columns)
    for w in range(3):
        torch.testing.assert_close(sums[w], expected_product_sum(*args, columns[:, w]))
    leaves = [t.clone().requires_grad_() for t in args] + [columns]
    assert torch.autograd.gradcheck(expected_product_sum, leaves)
    monkeypatch.setattr("scant.inference.expectations.CHUNK", 1)
    assert torch.autograd.gradcheck(expected_product_sum, leaves)
    leaves[-1] = columns[:, 0].detach().requires_grad_()
    assert torch.autograd.gradcheck(expected_product_sum, leaves)


def test_products_against_a_matrix_of_each_row():
    mean, covariances, z, precisions, g = _inputs()
    args = (mean, covariances["diagonal"], z, precisions["shared"])
    matrix = torch.randn(M, M, generator=g, dtype=torch.float64)
    each = torch.einsum("nij,ij->n", expected_product(*args), matrix)
    torch.testing.assert_close(expected_product_dot(*args, matrix), each)
    leaves = [t.clone().requires_grad_() for t in (*args, matrix)]
    assert torch.autograd.gradcheck(expected_product_dot, leaves)


def _case(n=6, m=4, q=3):
    g = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    leaves = [draw(n, q), 0.1 + draw(n, q).abs(), draw(m, q), draw(q).exp(), draw(1)[0]]
    return [leaf.requires_grad_() for leaf in leaves], draw(n, 3).abs()


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kept", [0, 1 << 22])
def test_matrices_and_their_gradients(columns, kept, monkeypatch):
    monkeypatch.setattr(psi, "MAX_SAVED", kept)
    monkeypatch.setattr(psi, "BLOCK", 20)  # two rows
    leaves, weights = _case()
    weights = weights[:, :columns]
    mean, variance, Z, precision, level = leaves
    k, one, two = eq_matrices(*leaves, weights)
    height, at = level.exp(), (mean, variance, Z, precision)
    torch.testing.assert_close(k, height * log_kernel(Z, Z, precision).exp())
    torch.testing.assert_close(one, height * expected_kernel(*at))
    torch.testing.assert_close(two, height**2 * expected_product_sum(*at, weights))
    assert torch.autograd.gradcheck(lambda *p: eq_matrices(*p, weights), leaves)


def _fitted(errors, level, x):
    told = spread.features(level, x)
    found = spread.fitted(lambda factor: norm.logpdf(errors, 0, factor), told)
    return found, spread.factor(found, told)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal(400), rng.standard_normal((400, 1)), rng.standard_normal(400)


def test_deviations_that_grow_with_the_level_are_found(rows):
    level, x, z = rows
    true = np.exp(0.4 * level - 0.2)
    _, factor = _fitted(true * z, level, x)
    assert abs(np.log(factor / true)).mean() < 0.1


def test_deviations_that_grow_along_an_input_are_found(rows):
    level, x, z = rows
    true = np.exp(0.3 * x[:, 0])
    _, factor = _fitted(true * z, level, x)
    assert abs(np.log(factor / true)).mean() < 0.1


def test_right_deviations_are_kept(rows):
    level, x, z = rows
    _, factor = _fitted(z, level, x)
    assert abs(np.log(factor)).max() < 0.25


def test_few_rows_tell_nothing(rows):
    level, x, z = (v[: spread.MIN_ROWS - 1] for v in rows)
    found, factor = _fitted(9 * z, level, x)
    assert not found.any()
    assert (factor == 1).all()


def test_a_slope_goes_no_further_than_the_rows(rows):
    found = np.array([0.0, 1.0, 0.0])
    far = spread.features(np.array([spread.MAX_DEVIATIONS, 50.0]), np.zeros((2, 1)))
    assert np.ptp(spread.factor(found, far)) == 0
