"""The Student-t process and the sparse GP, also by GPyTorch's interface."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from scipy.stats import multivariate_t
from scipy.stats import t as t_distribution

from scant.errors import BadInput
from scant.models.student_t import StudentT
from scant.models.svgp import SVGP
from tests.engine.models.gpytorch_interface import check_constraints, check_gradients


def rows(n=40, seed=0, heavy=False):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g, dtype=torch.float64)
    noise = 0.2 * torch.randn(n, generator=g, dtype=torch.float64)
    if heavy:
        noise[::7] *= 12
    return x, 4 * torch.sin(1.5 * x[:, 0]) + x[:, 1] + noise + 3


def covariance(model, x):
    """K of standardized inputs, noise included, as a dense matrix."""
    z = model.views([x])[0] / model.log_lengthscale.exp()
    K = model.log_variance.exp() * (-0.5 * torch.cdist(z, z).square()).exp()
    return (K + model.noise * torch.eye(len(x))).detach()


@pytest.mark.parametrize("df", [2.5, 5.0, 40.0])
def test_density_is_scipys(df):
    x, y = rows(12)
    model = StudentT.build(x, y, df=df)
    shape = covariance(model, x).numpy() * (df - 2) / df
    exact = multivariate_t(np.zeros(12), shape, df).logpdf(model.y.numpy())
    found = float(model.log_density().detach()) + 12 * float(y.std().log())
    assert math.isclose(found, exact, rel_tol=1e-7)


def test_density_is_the_average_over_networks_with_an_inverse_wishart_output():
    """Kandemir and Hamprecht (2015), Theorem 1 (ii): nu + n - 1 hidden neurons, E = (B B')^-1.

    Hidden neurons have the covariance K^-1, which Shah et al. (2014) need; the theorem prints K.
    """
    df, n, draws = 5, 3, 200_000
    x, y = rows(n)
    model = StudentT.build(x, y, df=float(df))
    K = covariance(model, x)
    density = float(model.log_density().detach() + n * y.std().log().detach())

    def average(hidden):
        g = torch.Generator().manual_seed(1)
        normal = torch.randn(draws, n, df + n - 1, generator=g, dtype=torch.float64)
        B = torch.linalg.cholesky(hidden) @ normal
        precision = B @ B.mT / (df - 2)  # E has the mean K / (nu - 2)
        misfit = torch.einsum("i,sij,j->s", model.y, precision, model.y)
        logs = 0.5 * (torch.logdet(precision) - misfit - n * math.log(2 * math.pi))
        p = logs.exp()
        return float(p.mean()), float(p.std()) / draws**0.5

    found, error = average(torch.linalg.inv(K))
    assert error < 0.01 * found
    assert abs(found - math.exp(density)) < 4 * error
    printed, error = average(K)
    assert abs(printed - math.exp(density)) > 20 * error


def test_density_and_predictions_near_the_gps_as_degrees_of_freedom_grow():
    x, y = rows(25)
    new = rows(6, seed=4)[0]
    K = covariance(StudentT.build(x, y, df=5), torch.cat([x]))
    exact = torch.distributions.MultivariateNormal(torch.zeros(25).double(), K)
    distances, spreads = [], []
    for df in (10.0, 1e3, 1e7):
        model = StudentT.build(x, y, df=df)
        value = float(model.log_density().detach()) + 25 * float(y.std().log())
        distances.append(abs(value - float(exact.log_prob(model.y))))
        mean, variance, _ = model.predict(new)
        gp_mean, gp_variance = gp(model, x, new)
        assert torch.allclose(mean, gp_mean)  # for any nu
        spreads.append(float((variance / gp_variance - 1).abs().max()))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-4
    assert spreads[0] > spreads[1] > spreads[2]
    assert spreads[2] < 1e-4


def gp(model, x, new):
    """Prediction of the GP with the same kernel, by dense algebra."""
    n, both = len(x), covariance(model, torch.cat([x, new]))
    weights = torch.linalg.solve(both[:n, :n], both[:n, n:])
    variance = both[n:, n:].diagonal() - (weights * both[:n, n:]).sum(0)
    return weights.T @ model.y * model.scale + model.centre, variance * model.scale.square()


def test_a_prediction_is_the_conditional_of_the_joint_density():
    """p(y, y*) = p(y) p(y*), with p(y*) the t that is predicted, up to the standardization."""
    x, y = rows(8)
    model = StudentT.build(x[:7], y[:7], df=4)
    mean, variance, df = model.predict(x[7:])
    scale = (variance * (df - 2) / df).numpy()
    at = np.linspace(-3, 6, 5)
    conditional = [multivariate_t(mean.numpy(), scale[:, None], df).logpdf([v]) for v in at]
    shape = covariance(model, x).numpy() / 2  # (df - 2) / df of 4
    joint = multivariate_t(np.zeros(8), shape, 4)
    behind = float(model.log_density().detach()) + 7 * float(model.scale.log())
    for v, p in zip(at, conditional):
        z = torch.cat([model.y, (torch.tensor([v]) - model.centre) / model.scale])
        exact = joint.logpdf(z.numpy()) - behind - float(model.scale.log())
        assert math.isclose(p, exact, rel_tol=1e-6)


def test_heavy_tails_are_found_where_targets_are_of_several_processes():
    """Degrees of freedom fall where the targets fit a far smaller covariance than K."""
    x, y = rows(60)
    model = StudentT.build(x, y)
    assert model.log_df.requires_grad
    values = model.fit(40)
    assert values[-1] > values[0]
    new, truth = rows(200, seed=3)
    mean, variance, df = model.predict(new)
    assert float((mean - truth).square().mean() / truth.var()) < 0.15
    assert df > 60
    inside = ((mean - truth).abs() < 1.96 * variance.sqrt()).double().mean()
    assert 0.85 < float(inside) <= 1


def test_kept_degrees_of_freedom_stay():
    x, y = rows(30)
    model = StudentT.build(x, y, df=6, ard=False)
    model.fit(5)
    assert math.isclose(float(model.df.detach()), 6)
    assert model.predict(x)[2] == pytest.approx(36)
    again = StudentT.build(x, y, df=6, ard=False)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.predict(x)[0], model.predict(x)[0])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"df": 2.0}, "more than 2"),
        ({"y": torch.zeros(10).double()}, "all are the same"),
        ({"X": torch.full((10, 2), math.nan).double()}, "not finite"),
    ],
)
def test_what_cannot_be_learned_from_ends_in_a_sentence(change, sentence):
    x, y = rows(10)
    with pytest.raises(BadInput, match=sentence):
        StudentT.build(**({"X": x, "y": y} | change))


@pytest.mark.slow
def test_the_sparse_gp_of_gpytorch_learns_targets_and_classes():
    x, y = rows(150)
    new, truth = rows(200, seed=3)
    model = SVGP.build(x, y, inducing=20)
    values = model.fit(200, rate=0.05)
    mean, variance = model.predict(new)
    assert values[-1] > values[0]
    assert float((mean - truth).square().mean() / truth.var()) < 0.15
    assert bool((variance > 0).all())
    again = SVGP.build(x, y, inducing=20)
    again.fit(200, rate=0.05)
    assert torch.equal(again.predict(new)[0], mean)
    sign = SVGP.build(x, (y > 3).double(), "bernoulli", 20)
    sign.fit(150, rate=0.05)
    p = sign.predict(new)[0]
    assert float(((p > 0.5) == (truth > 3)).double().mean()) > 0.85
    assert bool(((p > 0) & (p < 1)).all())
    with pytest.raises(BadInput, match="all are the same"):
        SVGP.build(x, torch.ones(150).double())


def test_a_t_process_answers_as_predict_does():
    x, y = rows(30)
    model = StudentT.build(x, y)
    check_constraints(model)
    check_gradients(model, model.log_density())
    new, truth = rows(7, 2)
    mean, variance, df = model.predict(new)
    f = model(new)
    predicted = model.likelihood(f)
    torch.testing.assert_close(predicted.mean, mean)
    torch.testing.assert_close(predicted.variance, variance)
    assert float(predicted.df[0].detach()) == df
    scale = (variance * (df - 2) / df).sqrt()
    exact = t_distribution(df, mean.numpy(), scale.numpy()).logpdf(truth.numpy())
    found = model.likelihood.log_marginal(truth, f)
    torch.testing.assert_close(found.detach(), torch.from_numpy(exact))
    assert torch.linalg.eigvalsh(f.covariance_matrix).min() > -1e-9
    model.noise = 0.3
    assert float(model.noise.detach()) == pytest.approx(0.3)
    with pytest.raises(RuntimeError):
        model.noise = -0.3


def test_as_tails_grow_light_it_is_gpytorchs_exact_gp():
    x, y = rows(20)
    model = StudentT.build(x, y, df=1e9, ard=False)

    class Exact(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(model.x, model.y, gpytorch.likelihoods.GaussianLikelihood().double())
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = ScaleKernel(RBFKernel()).double()
            self.kernel.outputscale = model.log_variance.exp()
            self.kernel.base_kernel.lengthscale = model.lengthscale
            self.likelihood.noise = model.noise

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    gp, new = Exact().eval(), rows(5, 2)[0]
    found, known = model(new), gp(model.views([new])[0])
    mean = known.mean * model.scale + model.centre
    torch.testing.assert_close(found.mean, mean, rtol=1e-5, atol=1e-5)
    covariance = known.covariance_matrix * model.scale.square()
    torch.testing.assert_close(found.covariance_matrix, covariance, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernel", [MaternKernel(nu=2.5), ScaleKernel(PeriodicKernel())])
def test_a_users_kernel_is_learned(kernel):
    x, y = rows(40)
    for model in (StudentT.build(x, y, kernel=kernel), SVGP.build(x, y, inducing=8, kernel=kernel)):
        before = [p.detach().clone() for p in kernel.parameters()]
        values = model.fit(10)
        assert values[-1] > values[0]
        assert all(not torch.equal(p, q) for p, q in zip(kernel.parameters(), before))
        mean, variance = model.predict(x)[:2]
        assert bool((variance > 0).all())
        assert float((mean - y).square().mean()) < float(y.var())


def test_the_eq_kernel_of_gpytorch_gives_the_same_t_process():
    x, y = rows(30)
    own = StudentT.build(x, y, df=4)
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
    kernel.outputscale = own.log_variance.exp()
    kernel.base_kernel.lengthscale = own.lengthscale
    given = StudentT.build(x, y, df=4, kernel=kernel)
    torch.testing.assert_close(given.log_density(), own.log_density())
    for found, known in zip(given.predict(x), own.predict(x)):
        torch.testing.assert_close(found, known)


def test_a_sparse_gp_answers_as_predict_does():
    x, y = rows(30)
    model = SVGP.build(x, y, inducing=6)
    model.fit(3)
    new = rows(7, 2)[0]
    mean, variance = model.predict(new)
    predicted = model.likelihood(model(model.views([new])[0]))
    torch.testing.assert_close(predicted.mean * model.scale + model.centre, mean)
    torch.testing.assert_close(predicted.variance * model.scale.square(), variance)
