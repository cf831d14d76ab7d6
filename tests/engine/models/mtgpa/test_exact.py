"""Exact inference against dense algebra, finite differences, and GPyTorch's own exact GP."""

import gpytorch
import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import IndexKernel, LinearKernel, MaternKernel, PeriodicKernel, ScaleKernel

from scant.errors import BadInput
from scant.kernels.box_average.kernel import IntervalKernel
from scant.kernels.box_average.support import boxes, join
from scant.models.mtgpa.baselines import BASELINES, alone, baseline
from scant.models.mtgpa.exact import STARTS, TRIED, ExactGP
from scant.models.mtgpa.likelihoods import Gaussian, Poisson
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Coregionalization, Data
from scant.models.mtgpa.training import MTGPATrainer
from tests.engine.models.gpytorch_interface import check_constraints, check_gradients


def _data(n=40):
    """A wave in boxes, and at points, with a little noise."""
    g = torch.Generator().manual_seed(0)
    lower = 4 * torch.rand(n, 1, generator=g, dtype=torch.float64)
    points = 4 * torch.rand(n // 2, 1, generator=g, dtype=torch.float64)
    wide = boxes(lower, lower + 0.5)
    y = torch.cat([2 * (lower.cos() - (lower + 0.5).cos()), points.sin()])[:, 0]
    y = y + 0.05 * torch.randn(len(y), generator=g, dtype=torch.float64)
    return Data(join([wide, points], 1), y, torch.tensor([0] * n + [1] * (n // 2)))


def _model(**other):
    return ExactGP.build(_data(), 2, 1, torch.Generator().manual_seed(1), **other)


@pytest.mark.parametrize("ranks", [(1,), (2, 1)])
def test_log_evidence_and_its_gradient(ranks):
    model = _model(ranks=ranks)
    x, y, j, *_ = model.data
    K = model.prior.covariance(x, j, x, j) + model.noise()[j].diag()
    expected = torch.distributions.MultivariateNormal(model.prior.mean(x, j), K).log_prob(y)
    torch.testing.assert_close(model.elbo(), expected)
    model.zero_grad()
    check_gradients(model, model.elbo())
    step = 1e-5
    for parameter in model.parameters():
        for i in range(parameter.numel()):
            values = []
            for side in (step, -2 * step):
                parameter.data.view(-1)[i] += side
                values.append(model.elbo().item())
            parameter.data.view(-1)[i] += step
            slope = (values[0] - values[1]) / (2 * step)
            assert parameter.grad.view(-1)[i].item() == pytest.approx(slope, rel=1e-4, abs=1e-4)


class _GPyTorch(gpytorch.models.ExactGP):
    """GPyTorch's, with an averaged kernel times its coregionalization matrix."""

    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.support, self.task = IntervalKernel(1), IndexKernel(2, rank=1)

    def forward(self, x):
        K = self.support(x[:, :2]).mul(self.task(x[:, 2:].long()))
        return MultivariateNormal(self.mean_module(x), K)


def test_it_is_gpytorchs_exact_gp_where_that_has_the_same_kernel():
    ours = _model()
    ours.prior.offset.data.fill_(0.3)
    for lik in ours.likelihoods:
        lik.log_noise.data.fill_(-3.0)
    x, y, j, *_ = ours.data
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    theirs = _GPyTorch(torch.cat([x, j.unsqueeze(1)], 1), y, likelihood).double()
    likelihood.noise = ours.noise()[0].detach()
    theirs.support.lengthscale = ours.prior.kernels[0].lengthscale.detach()
    theirs.task.initialize(covar_factor=ours.prior.mixing.detach().T, var=torch.full((2,), 1e-12))
    theirs.mean_module.constant.data.fill_(0.3)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, theirs)
    torch.testing.assert_close(mll(theirs(*theirs.train_inputs), y) * len(y), ours.elbo())
    theirs.eval()
    likelihood.eval()
    lower = torch.linspace(0, 4, 9).double().unsqueeze(1)
    new = boxes(lower, lower + 0.3)
    for task in (0, 1):
        with torch.no_grad():
            asked = theirs(torch.cat([new, torch.full((9, 1), float(task))], 1))
            f = ours(new, task=task)
            told = ours.likelihoods[task](f)
        predicted = ours.predict(new, task)
        torch.testing.assert_close(f.mean, asked.mean)
        torch.testing.assert_close(f.covariance_matrix, asked.covariance_matrix, atol=1e-8, rtol=0)
        torch.testing.assert_close(predicted.mean, f.mean)
        torch.testing.assert_close(predicted.variance, f.variance)
        torch.testing.assert_close(told.variance, predicted.variance + predicted.noise)


@pytest.mark.parametrize("name", BASELINES)
def test_exact_models_and_their_priors_are_modules_of_gpytorch(name):
    data = alone(_data(), 0) if name in ("kriging", "single") else _data()
    model = baseline(name, data, 1, torch.Generator().manual_seed(0))
    check_constraints(model)
    f = model.prior(data.supports, data.task)
    assert isinstance(f, MultivariateNormal)
    torch.testing.assert_close(f.variance, model.prior.variance(data.supports, data.task))
    torch.testing.assert_close(f.mean, model.prior.mean(data.supports, data.task))
    assert isinstance(model(data.supports, task=0), MultivariateNormal)


def test_the_better_of_two_starts_is_taken():
    reached = _model().elbo().item()
    values = []
    for noise, width in STARTS:
        prior = Coregionalization(1, 2)
        one = ExactGP([Gaussian(), Gaussian()], prior, _data())
        start = torch.tensor([2 * 4.5 / 60]).double()  # twice the spacing of as many points
        g = torch.Generator().manual_seed(1)
        one.start(_data(), start * width, 0.1 * noise, g)
        values.append(one.fit(TRIED))
    assert reached == pytest.approx(max(values), rel=0.05)
    assert abs(values[0] - values[1]) > 1


def test_mtgpa_keeps_the_keys_of_its_state():
    """Of the models that are stored."""
    model = MTGPA.build(_data(), ["gaussian"] * 2, 1, torch.Generator(), inducing=4)
    own = {key for key in model.state_dict() if key.startswith(("prior", "likelihoods"))}
    kernel = "prior.kernels.0."
    assert own == {
        "prior.mixing", "prior.offset", "prior.kernel_of", f"{kernel}raw_lengthscale",
        f"{kernel}raw_lengthscale_constraint.lower_bound",
        f"{kernel}raw_lengthscale_constraint.upper_bound",
        "likelihoods.0.log_noise", "likelihoods.1.log_noise",
    }  # fmt: skip


@pytest.mark.slow
def test_kernels_of_the_users_own_take_the_place_of_the_models():
    kernels = [
        ScaleKernel(PeriodicKernel()) + LinearKernel(),
        MaternKernel(nu=1.5, ard_num_dims=1),
    ]
    g = torch.Generator().manual_seed(0)
    exact = ExactGP.build(_data(), 2, 1, g, ranks=(1, 1), kernels=kernels)
    assert {id(p) for k in kernels for p in k.parameters()} <= {id(p) for p in exact.parameters()}
    before = exact.elbo().item()
    assert exact.fit(10) > before
    sparse = MTGPA.build(
        _data(), ["gaussian"] * 2, 1, g, inducing=10, ranks=(1, 1), kernels=kernels
    )
    trainer = MTGPATrainer(sparse, _data(), g)
    values = [trainer.step() for _ in range(20)]
    assert values[-1] > values[0]
    assert sparse.prior.lengthscales()[1].item() == kernels[1].lengthscale.item()
    with pytest.raises(BadInput, match="Each kernel needs a rank"):
        MTGPA.build(_data(), ["gaussian"] * 2, 1, g, inducing=10, kernels=kernels)


def test_a_likelihood_that_is_not_gaussian_is_refused():
    with pytest.raises(BadInput, match="Gaussian likelihoods only"):
        ExactGP([Gaussian(), Poisson()], Coregionalization(1, 2), _data())


def test_a_function_is_added_for_what_is_peculiar_to_single_years():
    g = torch.Generator().manual_seed(0)
    year, age = (side.ravel() for side in torch.meshgrid(*[torch.arange(9.0)] * 2, indexing="ij"))
    y = torch.sin(year / 3) * torch.cos(age / 3) + 0.3 * torch.randn(9, generator=g)[year.long()]
    x, y = torch.stack([year, age], 1).double(), (y / y.std()).double()
    model = ExactGP.build(Data(x, y, torch.zeros(len(y), dtype=torch.long)), 1, 2, g, finer=True)
    before = model.fit(40)
    model.grow(1, g)
    assert model.fit(40) > before + 20
    assert model.prior.kernel_of.tolist() == [0, 1]
    lengthscales = model.prior.lengthscales()
    assert (lengthscales[:, 0] < 0.5 * lengthscales[:, 1]).any()
