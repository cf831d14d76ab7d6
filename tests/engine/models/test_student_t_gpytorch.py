"""The Student-t process and the sparse GP by GPyTorch's interface, with kernels of a user's own."""

import gpytorch
import pytest
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from scipy.stats import t as t_distribution

from scant.models.student_t import StudentT
from scant.models.svgp import SVGP
from tests.engine.models.gpytorch_interface import check_constraints, check_gradients
from tests.engine.models.test_student_t import rows


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
