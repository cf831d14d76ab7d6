"""DFGP against dense algebra, sampling and quadrature; its limits; its training."""

import math

import numpy as np
import pytest
import torch

from scant.errors import BadInput
from scant.metrics import expected_calibration_error
from scant.models.dfgp.bounds import class_bound, optimal, target_bound, weight_divergence
from scant.models.dfgp.model import DFGP
from scant.models.dfgp.output import Expected
from scant.models.dfgp.training import DFGPTrainer

BOUNDS = ["published", "closed", "stochastic"]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def regression(n=60, d=3, seed=0, noise=0.2):
    x = normal(n, d, seed=seed)
    return x, torch.sin(2 * x[:, 0]) * 3 + x[:, 1] + noise * normal(n, seed=seed + 1) + 5


def classes(n=80, seed=0):
    """Class 1 lies within a ring of the second view; the first says nothing."""
    a, b = normal(n, 2, seed=seed), normal(n, 3, seed=seed + 1)
    return [a, b], (b[:, :2].square().sum(1) < 1.3).double()


def moved(model, seed=5, by=0.3):
    """Parameters off any optimum, so that no term of a bound hides."""
    g = seeded(seed)
    with torch.no_grad():
        for p in model.parameters():
            p += by * torch.randn(p.shape, generator=g, dtype=p.dtype)
        if model.root is not None:
            model.root.diagonal().abs_().add_(0.2)
    return model


def trained(model, steps=60, **other):
    training = DFGPTrainer(model, **other)
    for _ in range(steps):
        training.step()
    return model


def samples(model, views, count, seed=3):
    """Hidden values drawn from q, and what the output neuron makes of them: f's moments."""
    mean, variance = model.hidden(views)
    w, covariance = model.weights()
    eps = torch.randn(count, *mean.shape, generator=seeded(seed), dtype=mean.dtype)
    b = (mean + variance.sqrt() * eps).flatten(0, 1)
    phi, height = model.output.features(b)
    spread = height - phi.square().sum(1) + ((phi @ covariance) * phi).sum(1)
    return (phi @ w).view(count, -1), spread.view(count, -1), phi.view(count, len(mean), -1)


@pytest.mark.parametrize("output", ["rbf", "linear"])
def test_expectations_are_those_of_sampled_hidden_values(output):
    x, y = regression(12)
    model = moved(DFGP.build([x], y, output=output, inducing=5, bound="closed", neurons=2))
    with torch.no_grad():
        e = model.output.expected(*model.hidden([x]))
        _, _, phi = samples(model, [x], 30_000)
        products = torch.einsum("sni,snj->ij", phi, phi) / len(phi)
        size = e.products.abs().max()
        assert torch.allclose(e.features, phi.mean(0), atol=0.02 * float(phi.abs().max()))
        assert torch.allclose(e.products, products, atol=0.02 * float(size))
        assert torch.allclose(e.features, model.output.first(*model.hidden([x])))


@pytest.mark.parametrize("output", ["rbf", "linear"])
def test_expectations_of_one_neuron_are_those_of_quadrature(output):
    x, y = regression(6)
    model = moved(DFGP.build([x], y, output=output, inducing=4, bound="closed", neurons=1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = torch.as_tensor(weights / weights.sum())
    with torch.no_grad():
        mean, variance = model.hidden([x])
        e = model.output.expected(mean, variance)
        total, height = torch.zeros_like(e.products), 0.0
        for n in range(len(x)):
            b = mean[n] + variance[n].sqrt() * torch.as_tensor(nodes)[:, None]
            phi, k = model.output.features(b)
            assert torch.allclose(weights @ phi, e.features[n], rtol=1e-6, atol=1e-8)
            total, height = total + (weights[:, None] * phi).T @ phi, height + weights @ k
        assert torch.allclose(total, e.products, rtol=1e-6, atol=1e-7)
        assert torch.allclose(height, e.variance)


@pytest.mark.parametrize("output", ["rbf", "linear"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_predictions_are_the_moments_of_samples(output, bound):
    x, y = regression(40)
    model = moved(DFGP.build([x], y, output=output, inducing=5, bound=bound, neurons=2))
    new = normal(5, 3, seed=9)
    with torch.no_grad():
        f, spread, _ = samples(model, [new], 40_000)
        mean, variance = model.latent([new])
        assert torch.allclose(mean, f.mean(0), atol=0.02 * float(1 + f.abs().mean()))
        both = f.var(0) + spread.mean(0)
        assert torch.allclose(variance, both, rtol=0.05, atol=0.02)
        y_mean, y_variance = model.predict([new])
        assert torch.allclose(y_mean, mean * y.std() + y.mean())
        assert torch.allclose(y_variance, (variance + model.noise) * y.var())


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_full_metric_has_the_moments_of_samples(bound):
    """The features of sampled hidden values are those of the kernel with J^-1 written out."""
    x, y = regression(12)
    options = {"inducing": 4, "neurons": 3, "output_metric": True, "bound": bound}
    model = moved(DFGP.build([x], y, **options), by=0.6)
    with torch.no_grad():
        output, b = model.output, normal(7, 3, seed=2)
        off = output.tilt.tril(-1) + torch.eye(3)
        root = off @ torch.diag(1 / output.lengthscale)
        metric = torch.linalg.inv(root.T @ root)  # J
        assert float(metric[0, 1].abs()) > 0.05  # neurons are combined
        apart = b.unsqueeze(1) - output.inducing
        exponent = torch.einsum("nmr,rs,nms->nm", apart, torch.linalg.inv(metric), apart)
        cross = output.outputscale * (-0.5 * exponent).exp()
        assert torch.allclose(output.features(b)[0], cross @ output.whiten().T)
        assert torch.allclose(output.precision, torch.linalg.inv(metric).diagonal())

        e = output.expected(*model.hidden([x]))
        f, spread, phi = samples(model, [x], 40_000)
        products = torch.einsum("sni,snj->ij", phi, phi) / len(phi)
        assert torch.allclose(e.features, phi.mean(0), atol=0.02 * float(phi.abs().max()))
        assert torch.allclose(e.products, products, atol=0.02 * float(e.products.abs().max()))
        mean, variance = model.latent([x])
        assert torch.allclose(mean, f.mean(0), atol=0.02 * float(1 + f.abs().mean()))
        assert torch.allclose(variance, f.var(0) + spread.mean(0), rtol=0.05, atol=0.02)


@pytest.mark.slow
def test_a_full_metric_starts_as_the_diagonal_one_and_raises_the_bound():
    x, y = regression(60)
    full, diagonal = (
        DFGP.build([x], y, inducing=8, neurons=3, bound="closed", output_metric=metric)
        for metric in (True, False)
    )
    with torch.no_grad():
        assert math.isclose(full.bound(), diagonal.bound(), rel_tol=1e-9)
    trained(full), trained(diagonal)
    with torch.no_grad():
        assert full.bound() > diagonal.bound()
        assert float(full.output.tilt.tril(-1).abs().max()) > 0.01


def test_the_best_q_of_the_output_gives_the_collapsed_bound():
    e, y, noise = _some_expected()
    mean, covariance = optimal(e, y, noise)
    assert math.isclose(_plain_bound(e, y, noise, mean, covariance), target_bound(e, y, noise))
    for seed in range(5):
        other = mean + 0.3 * normal(len(mean), seed=seed)
        assert _plain_bound(e, y, noise, other, covariance) < target_bound(e, y, noise)


def _some_expected(n=9, m=3):
    phi, more = normal(n, m, seed=1), normal(m, m, seed=2)
    products = phi.T @ phi + more @ more.T
    return (
        Expected(phi, products, products.trace() + 1.5),
        normal(n, seed=3).sign(),
        torch.tensor(0.4).double(),
    )


def _plain_bound(e, y, noise, mean, covariance):
    """L_r for any q(w) of the output, term by term as printed, with 2 pi."""
    square = (
        e.variance
        + ((covariance + torch.outer(mean, mean) - torch.eye(len(mean))) * e.products).sum()
    )
    fit = y @ y - 2 * y @ e.features @ mean + square
    likelihood = -0.5 * (fit / noise + len(y) * (2 * math.pi * noise).log())
    return float(likelihood - weight_divergence(mean, torch.linalg.cholesky(covariance)))


def test_class_bound_is_the_integral_of_the_other_over_hidden_targets():
    """L_c = ln of the integral of exp(L_r(y)) p(t|y), which factorizes over the rows."""
    e, t, noise = _some_expected()
    mean = 0.7 * normal(3, seed=4)
    covariance = optimal(e, t, noise)[1]
    y = torch.linspace(-30, 30, 200_001, dtype=torch.float64)
    f = e.features @ mean
    at_zero = _plain_bound(e, torch.zeros_like(t), noise, mean, covariance)
    density = torch.exp(-0.5 * y.square() / noise + y * f[:, None] / noise)
    integral = torch.trapezoid(density * torch.special.ndtr(t[:, None] * y), y)
    expected = at_zero + float(integral.log().sum())
    assert math.isclose(float(class_bound(e, t, mean, noise)), expected, rel_tol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["rbf", "linear"])
def test_sampled_bound_is_on_average_the_closed_one(output):
    x, y = regression(15)
    model = moved(
        DFGP.build([x], y, output=output, inducing=4, bound="stochastic", neurons=2), by=0.1
    )
    g = seeded(1)
    with torch.no_grad():
        drawn = torch.stack([model.stochastic_bound(g) for _ in range(300)])
        batches = torch.stack([model.stochastic_bound(g, 5) for _ in range(400)])
        e = model.output.expected(*model.hidden([x]))
        closed = _plain_bound(e, model.y, model.noise, *model.weights())
        closed -= float(model.hidden_layer.divergence()) + len(y) * float(y.std().log())
    for some in (drawn, batches):
        assert abs(float(some.mean()) - closed) < 4 * float(some.std()) / len(some) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("output", ["rbf", "linear"])
@pytest.mark.parametrize("seed", [0, 1])
def test_closed_bound_is_below_the_evidence(output, seed):
    """ln p(y) by sampling hidden values from the prior, on four rows."""
    x, y = regression(4, seed=seed)
    model = DFGP.build([x], y, output=output, inducing=4, bound="closed", neurons=2)
    trained(model, 100, adam=100)
    with torch.no_grad():
        P = model.hidden_layer.projected(model.x)  # all rows are inducing inputs
        drawn = torch.randn(50_000, 2, 1, 4, generator=seeded(2), dtype=torch.float64)
        b = torch.einsum("srom,rmn->snr", drawn, P)
        K = _kernel(model, b) + model.noise * torch.eye(4)
        lower = torch.linalg.cholesky(K)
        half = torch.linalg.solve_triangular(
            lower, model.y[:, None].expand(len(b), 4, 1), upper=False
        )
        logs = -0.5 * half.square().sum((1, 2)) - lower.diagonal(dim1=1, dim2=2).log().sum(1)
        logs = logs - 2 * math.log(2 * math.pi)
        evidence = torch.logsumexp(logs, 0) - math.log(len(b)) - 4 * model.scale.log()
        assert -6 < float(model.bound() - evidence) < 0.02


def _kernel(model, b):
    """The output neuron's covariance for stacks of hidden values."""
    if model.output.n_features == b.shape[2] and hasattr(model.output, "log_weight"):
        return (b * model.output.precision) @ b.mT
    apart = (b[:, :, None] - b[:, None]).square() * model.output.precision
    return model.output.log_variance.exp() * (-0.5 * apart.sum(-1)).exp()


def test_linear_output_of_known_hidden_values_is_bayesian_linear_regression():
    b, y, noise = normal(30, 3), normal(30, seed=1), torch.tensor(0.3).double()
    model = DFGP.build([normal(30, 2)], y, output="linear", neurons=3)
    with torch.no_grad():
        model.output.log_weight.copy_(torch.tensor([0.1, -0.5, 0.4]))
        e = model.output.expected(b, torch.zeros_like(b))
        K = (b * model.output.precision) @ b.T + noise * torch.eye(30)
        exact = torch.distributions.MultivariateNormal(torch.zeros(30).double(), K).log_prob(y)
        assert math.isclose(float(target_bound(e, y, noise)), float(exact), rel_tol=1e-8)


def test_unweighted_neurons_with_one_kernel_have_the_moments_of_a_wishart_process():
    """Theorem 1: Sigma = sum_r b_r b_r' with b_r ~ N(0, K) is W(K, 3), also after training."""
    x, y = regression(4)
    options = {"output": "linear", "ard": False, "output_ard": False, "share_kernel": True}
    model = trained(DFGP.build([x], y, inducing=4, neurons=3, bound="closed", **options), 15)
    hidden = model.hidden_layer
    assert hidden.log_lengthscale.shape == (1, 1)
    with torch.no_grad():
        z = model.x[0] / hidden.log_lengthscale.exp()
        K = (-0.5 * torch.cdist(z, z).square()).exp()
        v = torch.randn(40_000, 3, 4, generator=seeded(2), dtype=torch.float64)
        b = torch.einsum("srm,rmn->snr", v, hidden.projected(model.x))  # all rows are inducing
        phi = model.output.features(b.flatten(0, 1))[0].view(b.shape)
        sigma = phi @ phi.mT
        covariance = torch.einsum("sij,skl->ijkl", sigma - 3 * K, sigma - 3 * K) / len(sigma)
    exact = torch.einsum("ik,jl->ijkl", K, K) + torch.einsum("il,jk->ijkl", K, K)
    # Standard errors: sqrt(6 / 40,000) = 0.01 of the mean, about 0.1 of the covariance.
    assert torch.allclose(sigma.mean(0), 3 * K, atol=0.06)
    assert torch.allclose(covariance, 3 * exact, atol=0.6)


def test_kernels_as_printed_stay_of_unit_variance_with_one_lengthscale_each():
    views, t = classes(60)
    options = {"ard": False, "output_ard": False, "output_scale": False, "share_kernel": True}
    model = DFGP.build(views, t, "bernoulli", neurons=5, inducing=6, **options)
    other = DFGP.build(views, t, "bernoulli", neurons=5, inducing=6, ard=False)
    start = other.hidden_layer.lengthscale
    assert torch.equal(model.hidden_layer.lengthscale, start)  # views in turn: 2, 3, 2, 3, 2 wide
    trained(model, 15)
    lengthscale = model.hidden_layer.lengthscale
    assert lengthscale.shape == (5, 1)
    assert torch.equal(lengthscale[::2], lengthscale[:1].expand(3, 1))
    assert not torch.allclose(lengthscale, start)
    assert float(model.output.outputscale) == 1
    assert model.output.log_lengthscale.shape == (1,)


def test_rbf_output_of_known_hidden_values_with_all_inducing_inputs_is_a_gp():
    b, y, noise = normal(12, 2), normal(12, seed=1), torch.tensor(0.3).double()
    model = DFGP.build([normal(12, 2)], y, neurons=2, inducing=12)
    with torch.no_grad():
        model.output.inducing.copy_(b)
        e = model.output.expected(b, torch.zeros_like(b))
        K = _kernel(model, b[None])[0] + noise * torch.eye(12)
        exact = torch.distributions.MultivariateNormal(torch.zeros(12).double(), K).log_prob(y)
        assert math.isclose(float(target_bound(e, y, noise)), float(exact), abs_tol=1e-3)


def test_one_hidden_neuron_alone_is_a_sparse_gp():
    """A neuron's start is the mean of a GP with noise 0.5, where all rows are inducing inputs."""
    x, y = regression(25)
    model = DFGP.build([x], y, inducing=25, neurons=1)
    z = model.x[0] / model.hidden_layer.log_lengthscale.exp()
    K = (-0.5 * torch.cdist(z, z).square()).exp()
    gp = K @ torch.linalg.solve(K + 0.5 * torch.eye(25), model.y)
    mean, variance = model.hidden([x])
    assert torch.allclose(mean[:, 0], gp, atol=1e-3)
    assert float(variance.detach().max()) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS)
def test_training_learns_what_is_there(bound):
    x, y = regression(200)
    new, truth = regression(200, seed=7)
    model = trained(DFGP.build([x], y, bound=bound), 120, adam=80)
    mean, variance = model.predict([new])
    assert float((mean - truth).square().mean() / truth.var()) < 0.35
    inside = ((mean - truth).abs() < 1.96 * variance.sqrt()).double().mean()
    assert 0.88 < float(inside) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS)
def test_a_neuron_for_each_view_finds_the_one_that_matters(bound):
    views, t = classes(200)
    model = trained(
        DFGP.build(views, t, "bernoulli", bound=bound, generator=seeded(1)), 100, adam=80
    )
    new, truth = classes(400, seed=11)
    p = model.probability(new)
    right = ((p > 0.5) == (truth > 0.5)).double()
    assert float(right.mean()) > 0.85
    first, second = model.relevance()
    assert second > 3 * first
    sure = torch.maximum(p, 1 - p)
    assert expected_calibration_error(sure.numpy(), right.numpy()) < 0.1


@pytest.mark.slow
def test_probabilities_of_noisy_classes_are_calibrated():
    """Classes are drawn with known probabilities, which the model has to find."""
    x = normal(600, 2)
    chance = torch.special.ndtr(1.5 * torch.sin(1.5 * x[:, 0]))
    t = (torch.rand(600, generator=seeded(4), dtype=torch.float64) < chance).double()
    for bound in BOUNDS:
        model = trained(DFGP.build([x[:300]], t[:300], "bernoulli", bound=bound), 100, adam=60)
        p = model.probability([x[300:]])
        assert float((p - chance[300:]).abs().mean()) < 0.12, bound


@pytest.mark.slow
def test_censored_rows_pull_predictions_up():
    """Half of the long times are cut off: taken for deaths, they make all times short."""
    x = normal(300, 1)
    time = 2 * x[:, 0] + 0.3 * normal(300, seed=1)
    late = time > 1
    seen = torch.where(late, 1.0, time)
    new = torch.full((1, 1), 1.5).double()

    def predicted(censored):
        model = DFGP.build([x], seen, bound="stochastic", neurons=1, censored=censored)
        return float(trained(model, 150, rate=0.06).predict([new])[0])

    ignored, known = predicted(None), predicted(late)
    assert known > ignored + 0.5
    assert abs(known - 3) < abs(ignored - 3)


def test_likelihoods_against_quadrature():
    from scipy.stats import norm

    from scant.likelihoods.gaussian import censored_expectation
    from scant.likelihoods.probit import probit_expectation

    f = np.linspace(-12, 12, 20_001)
    for sign, mean, variance in [(1.0, 0.4, 0.8), (-1.0, 1.5, 2.0)]:
        weight = norm.pdf(f, mean, variance**0.5)
        exact = np.trapezoid(weight * norm.logcdf(sign * f), f)
        args = (torch.tensor([v]).double() for v in (sign, mean, variance))
        assert math.isclose(float(probit_expectation(*args)), exact, rel_tol=1e-5)
        y, noise = 0.7, 0.5
        exact = np.trapezoid(weight * norm.logsf(y, f, noise**0.5), f)
        args = (torch.tensor([v]).double() for v in (y, mean, variance))
        found = censored_expectation(*args, torch.tensor(noise).double())
        assert math.isclose(float(found), exact, rel_tol=1e-4)


def test_views_of_other_widths_take_part_alone():
    """Columns that fill up a narrow view change nothing."""
    views, t = classes(50)
    model = DFGP.build(views, t, "bernoulli", generator=seeded(1))
    assert model.x.shape == (2, 50, 3)
    assert bool((model.x[0, :, 2] == 0).all())
    assert bool((model.hidden_layer.inducing[0, :, 2] == 0).all())
    model.elbo().backward()
    assert float(model.hidden_layer.log_lengthscale.grad[0, 2]) == 0


def test_constant_columns_are_let_be():
    x, y = regression(30)
    x = torch.cat([x, torch.full((30, 1), 7.0).double()], 1)
    mean, variance = DFGP.build([x], y).predict([x])
    assert bool(torch.isfinite(mean).all() and torch.isfinite(variance).all())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"views": []}, "no view"),
        ({"views": [torch.zeros(5, 2).double(), torch.zeros(4, 2).double()]}, "same rows"),
        ({"views": [torch.full((30, 2), math.nan).double()]}, "not finite"),
        ({"y": torch.ones(30).double()}, "same in all rows"),
        ({"y": torch.full((30,), math.inf).double()}, "not finite"),
        ({"likelihood": "bernoulli"}, "Classes must be 0 and 1"),
        ({"inducing": 0}, "At least one"),
        ({"neurons": -1}, "At least one"),
        ({"censored": torch.ones(30, dtype=torch.bool)}, "Censored"),
    ],
)
def test_what_cannot_be_learned_from_ends_in_a_sentence(change, sentence):
    x, y = regression(30)
    with pytest.raises(BadInput, match=sentence):
        DFGP.build(**({"views": [x], "y": y} | change))


def test_questions_that_a_model_cannot_answer_end_in_a_sentence():
    x, y = regression(30)
    model = DFGP.build([x], y)
    with pytest.raises(BadInput, match="columns"):
        model.predict([x[:, :2]])
    with pytest.raises(BadInput, match="two classes"):
        model.probability([x])
    with pytest.raises(BadInput, match="built for"):
        model.stochastic_bound(seeded())
    with pytest.raises(BadInput, match="Batches"):
        DFGPTrainer(model, batch=5)
