"""DFGP by GPyTorch's interface, and its likelihoods in a model of GPyTorch's own."""

import gpytorch
import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel

from scant.likelihoods.gaussian import CensoredGaussianLikelihood
from scant.likelihoods.probit import ProbitLikelihood
from scant.models.dfgp.model import DFGP
from scant.models.svgp import SVGP
from tests.engine.models.gpytorch_interface import check_constraints, check_gradients


def rows(n=60, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g, dtype=torch.float64)
    return x, 5 + 3 * torch.sin(x[:, 0]) + 0.3 * torch.randn(n, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("bound", ["published", "closed", "stochastic"])
@pytest.mark.parametrize("output", ["rbf", "linear"])
def test_a_regression_answers_as_predict_does(bound, output):
    x, y = rows()
    model = DFGP.build([x], y, output=output, bound=bound, inducing=6)
    check_constraints(model)
    check_gradients(model, model.elbo())
    new, _ = rows(9, 1)
    mean, variance = model.predict([new])
    latent = model(new)
    assert isinstance(latent, MultivariateNormal)
    predicted = model.likelihood(latent)
    torch.testing.assert_close(predicted.mean, mean)
    torch.testing.assert_close(predicted.variance, variance)
    model.noise = 0.25
    torch.testing.assert_close(model.noise, torch.tensor(0.25).double())
    with pytest.raises(RuntimeError):
        model.noise = -1.0


@pytest.mark.parametrize("bound", ["published", "stochastic"])
def test_classes_answer_as_probability_does(bound):
    x, y = rows()
    model = DFGP.build([x], (y > 5).double(), "bernoulli", bound=bound, inducing=6)
    check_constraints(model)
    new, _ = rows(9, 1)
    predicted = model.likelihood(model(new))
    torch.testing.assert_close(predicted.mean, model.probability([new]))


def test_a_users_kernel_in_the_hidden_layer():
    """An EQ kernel of GPyTorch's gives what the model's own does, up to rounding."""
    x, y = rows()
    views = [x, x[:, :1]]
    own = DFGP.build(views, y, bound="closed", inducing=6)
    kernel = RBFKernel(ard_num_dims=2, batch_shape=torch.Size([2])).double()
    kernel.lengthscale = own.hidden_layer.lengthscale.detach().unsqueeze(1)
    given = DFGP.build(views, y, bound="closed", inducing=6, kernel=kernel)
    torch.testing.assert_close(given.elbo(), own.elbo(), rtol=1e-6, atol=0)
    torch.testing.assert_close(given.hidden_layer.lengthscale, own.hidden_layer.lengthscale)
    matern = DFGP.build(views, y, bound="closed", inducing=6, kernel=MaternKernel(nu=1.5))
    before = float(matern.elbo().detach())
    check_gradients(matern, matern.elbo())
    assert matern.hidden_layer.kernel.raw_lengthscale.grad.abs().sum() > 0
    assert before != pytest.approx(float(own.elbo().detach()), rel=1e-3)


def drawn(dist, count=400_000):
    g = torch.Generator().manual_seed(0)
    z = torch.randn(count, len(dist.mean), generator=g, dtype=torch.float64)
    return dist.mean + dist.variance.sqrt() * z


def latents():
    mean = torch.tensor([-1.0, 0.4, 2.0]).double()
    return MultivariateNormal(mean, torch.tensor([0.3, 1.0, 0.1]).double().diag())


def test_expected_log_probabilities_are_monte_carlos():
    dist, noise = latents(), torch.tensor(0.4).double()
    f = drawn(dist)
    y, late = torch.tensor([-0.5, 0.2, 2.5]).double(), torch.tensor([True, False, True])
    likelihood = CensoredGaussianLikelihood(noise)
    conditional = likelihood(f)
    each = conditional.log_prob(y)
    above = torch.special.log_ndtr((f - y) / noise.sqrt())
    exact = torch.where(late, above, each).mean(0)
    found = likelihood.expected_log_prob(y, dist, censored=late)
    torch.testing.assert_close(found, exact, rtol=0.01, atol=0.01)
    marginal = torch.where(late, above, each).exp().mean(0).log()
    found = likelihood.log_marginal(y, dist, censored=late)
    torch.testing.assert_close(found, marginal, rtol=0.01, atol=0.01)
    classes = torch.tensor([0.0, 1.0, 1.0]).double()
    probit = ProbitLikelihood(noise)
    exact = probit(f).log_prob(classes).mean(0)
    torch.testing.assert_close(probit.expected_log_prob(classes, dist), exact, rtol=0.01, atol=0.01)
    torch.testing.assert_close(probit(dist).mean, probit(f).mean.mean(0), rtol=0.01, atol=0.01)


def test_without_censored_rows_and_noise_they_are_gpytorchs():
    dist, y = latents(), torch.tensor([-0.5, 0.2, 2.5]).double()
    ours, theirs = CensoredGaussianLikelihood(), gpytorch.likelihoods.GaussianLikelihood()
    for name in ("expected_log_prob", "log_marginal"):
        torch.testing.assert_close(getattr(ours, name)(y, dist), getattr(theirs, name)(y, dist))
    classes = torch.tensor([0.0, 1.0, 1.0]).double()
    ours, theirs = ProbitLikelihood(), gpytorch.likelihoods.BernoulliLikelihood()
    found, known = (one.expected_log_prob(classes, dist) for one in (ours, theirs))
    torch.testing.assert_close(found, known, rtol=0, atol=1e-4)  # its ln Phi is approximate
    torch.testing.assert_close(ours(dist).mean, theirs(dist).mean)


def test_censored_times_teach_a_model_of_gpytorchs():
    """Late times above all else raise a sparse GP's mean; taken for values they would not."""
    x, y = rows(80)
    late = x[:, 0] > 0.5
    seen = torch.where(late, y.min(), y)
    means = []
    for censored in (None, late):
        model = SVGP.build(x, seen, inducing=8)
        model.likelihood = likelihood = CensoredGaussianLikelihood().double()
        objective = gpytorch.mlls.VariationalELBO(likelihood, model, len(y))
        steps = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(60):
            steps.zero_grad()
            loss = -objective(model(model.x), model.y, censored=censored)
            loss.backward()
            steps.step()
        means.append(model.predict(x[late])[0].mean().item())
    assert means[1] > means[0] + 1
