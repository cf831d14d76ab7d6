"""The objective of GPz, its gradients, and what surrounds them."""

import math

import pytest
import torch

from scant.errors import BadInput
from scant.models.gpz.basis import COVARIANCES, full_precision
from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.models.gpz.training import GPzTrainer

N, D, M = 60, 3, 7
FLAGS = [(het, joint) for het in (False, True) for joint in (False, True)]


def _data(n=N, seed=0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, D, generator=g, dtype=torch.float64)
    y = torch.sin(X[:, 0]) + 0.1 * torch.randn(n, generator=g, dtype=torch.float64)
    return X.to(dtype), y.to(dtype), g


def _model(covariance="VC", het=True, joint=True, dtype=torch.float64, **data):
    X, y, g = _data(dtype=dtype, **data)
    model = GPz(D, M, covariance, het, joint, dtype)
    model.init_from_data(X, y, g)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.3 * torch.randn(p.shape, generator=g, dtype=torch.float64).to(dtype)
    return model, X, y


def _dense(model, X, y):
    """-ln N(y; 0, Phi' A^-1 Phi + B^-1) - ln p(v | tau), by n x n algebra (2.56, 3.8)."""
    precision = full_precision(model.precision())
    away = X.unsqueeze(1) - model.centres
    phi = torch.exp(-0.5 * torch.einsum("nmi,mij,nmj->nm", away, precision, away))
    het = model.heteroscedastic
    log_beta = phi @ model.v + model.b if het else model.b.expand(len(X))
    one = torch.ones(len(X), 1, dtype=X.dtype)
    design = torch.cat([phi, X, one], 1) if model.joint_mean else phi
    S = (design / model.log_alpha.exp()) @ design.T + torch.diag((-log_beta).exp())
    value = -torch.distributions.MultivariateNormal(torch.zeros_like(y), S).log_prob(y)
    if het:
        prior = torch.distributions.Normal(torch.zeros_like(model.v), (-model.log_tau / 2).exp())
        value = value - prior.log_prob(model.v).sum()
    return value


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(("het", "joint"), FLAGS)
def test_objective_and_gradient_equal_the_dense_marginal_likelihood(covariance, het, joint):
    model, X, y = _model(covariance, het, joint)
    ours, dense = -LogEvidence(model, X, y)(), _dense(model, X, y)
    assert abs(ours.item() - dense.item()) < 1e-8
    parameters = list(model.parameters())
    pairs = zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(dense, parameters))
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(("het", "joint"), FLAGS)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_equals_finite_differences(covariance, het, joint, weighted):
    model, X, y = _model(covariance, het, joint)
    omega = torch.linspace(0.2, 3, N, dtype=X.dtype) if weighted else None
    parameters = list(model.parameters())
    gradient = torch.autograd.grad(-LogEvidence(model, X, y, omega)(), parameters)
    g = torch.Generator().manual_seed(3)
    step = 1e-5
    for p, slope in zip(parameters, gradient):
        direction = torch.randn(p.shape, generator=g, dtype=p.dtype)
        with torch.no_grad():
            p += step * direction
            up = -LogEvidence(model, X, y, omega)()
            p -= 2 * step * direction
            down = -LogEvidence(model, X, y, omega)()
            p += step * direction
        numeric = (up - down) / (2 * step)
        torch.testing.assert_close((slope * direction).sum(), numeric, rtol=1e-5, atol=1e-4)


def test_a_weight_of_two_counts_a_sample_twice():
    model, X, y = _model()
    omega = torch.ones(N, dtype=X.dtype)
    omega[:10] = 2
    twice = -LogEvidence(model, torch.cat([X, X[:10]]), torch.cat([y, y[:10]]))()
    torch.testing.assert_close(-LogEvidence(model, X, y, omega)(), twice, rtol=1e-12, atol=1e-9)
    model.fit_posterior(X, y, omega)
    mean = model.predict(X).mean
    model.fit_posterior(torch.cat([X, X[:10]]), torch.cat([y, y[:10]]))
    torch.testing.assert_close(model.predict(X).mean, mean)


def test_prediction_equals_the_dense_gaussian_process():
    model, X, y = _model("VC", False, False)
    model.fit_posterior(X, y)
    T = X[:5] + 0.1
    phi, star = (model.design(x)[0].detach() for x in (X, T))
    prior = torch.diag((-model.log_alpha).exp()).detach()
    noise = math.exp(-model.b.item())
    gain = (
        star
        @ prior
        @ phi.T
        @ torch.linalg.inv(phi @ prior @ phi.T + noise * torch.eye(N, dtype=X.dtype))
    )
    got = model.predict(T)
    torch.testing.assert_close(got.mean, gain @ y)
    variance = (star @ prior @ star.T - gain @ phi @ prior @ star.T).diagonal()
    torch.testing.assert_close(got.model_variance, variance)
    torch.testing.assert_close(got.noise_variance, torch.full_like(variance, noise))


def test_joint_mean_extrapolates_linearly():
    g = torch.Generator().manual_seed(0)
    X = torch.linspace(-1, 1, 80, dtype=torch.float64).unsqueeze(1)
    y = 2 * X[:, 0] + 0.5 + 0.01 * torch.randn(80, generator=g, dtype=torch.float64)
    far = torch.tensor([[5.0]], dtype=torch.float64)
    for joint in (True, False):
        model = GPz(1, 5, "VL", joint_mean=joint)
        model.init_from_data(X, y, g)
        trainer = GPzTrainer(model, X, y)
        for _ in range(40):
            trainer.step()
        model.fit_posterior(X, y)
        got = model.predict(far).mean.item()
        assert (abs(got - 10.5) < 2) == joint


def test_state_dict_holds_all_that_prediction_needs():
    model, X, y = _model()
    model.fit_posterior(X, y)
    other = GPz(D, M)
    other.load_state_dict(model.state_dict())
    holes = X.clone()
    holes[::2, 1] = torch.nan
    assert torch.equal(other.predict(holes).variance, model.predict(holes).variance)
    assert all(v.is_contiguous() for v in model.state_dict().values())


DEVICES = [
    ("cpu", torch.float32),
    pytest.param(
        ("cuda", torch.float64),
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
        ],
    ),
    pytest.param(
        ("cuda", torch.float32),
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
        ],
    ),
]


@pytest.mark.parametrize("place", DEVICES, ids=str)
@pytest.mark.parametrize("covariance", ["GL", "VD", "VC"])
def test_other_devices_and_precisions_agree(place, covariance):
    device, dtype = place
    model, X, y = _model(covariance)
    other = GPz(D, M, covariance, dtype=dtype).to(device)
    other.load_state_dict(model.state_dict())
    X2, y2 = X.to(device, dtype), y.to(device, dtype)
    torch.testing.assert_close(
        -LogEvidence(other, X2, y2)().cpu().double(),
        -LogEvidence(model, X, y)(),
        rtol=1e-4,
        atol=1e-2,
    )
    holes = X.clone()
    holes[::2, 1] = torch.nan
    noise = torch.full_like(X, 0.05)
    for m, data in (
        (model, (holes, y, None, noise)),
        (other, (holes.to(X2), y2, None, noise.to(X2))),
    ):
        LogEvidence(m, *data)().backward()
        m.init_from_data(data[0], data[1], torch.Generator().manual_seed(0))
        m.fit_posterior(*data)
    for with_noise in (None, noise):
        ours = other.predict(holes.to(X2), None if with_noise is None else with_noise.to(X2))
        theirs = model.predict(holes, with_noise)
        for name in ("mean", "model_variance", "noise_variance", "input_variance"):
            torch.testing.assert_close(
                getattr(ours, name).cpu().double(), getattr(theirs, name), rtol=2e-2, atol=5e-3
            )


def test_relevance_sums_to_one():
    model, X, y = _model()
    model.fit_posterior(X, y)
    assert model.relevance().shape == (M,)
    assert model.relevance().sum().item() == pytest.approx(1)


def test_fewer_rows_than_basis_functions():
    X, y, g = _data(4)
    model = GPz(D, M)
    model.init_from_data(X, y, g)
    model.fit_posterior(X, y)
    assert model.predict(X).variance.isfinite().all()


def test_bad_input_is_named():
    X, y, g = _data()
    with pytest.raises(BadInput, match="XX"):
        GPz(D, M, "XX")
    with pytest.raises(BadInput, match="at least one"):
        GPz(D, 0)
    model = GPz(D, M)
    with pytest.raises(BadInput, match="3 features"):
        model.init_from_data(X[:, :2], y, g)
    X[4, 1] = torch.inf
    with pytest.raises(BadInput, match="row 4, column 1"):
        model.init_from_data(X, y, g)
    X[:, 1] = torch.nan
    with pytest.raises(BadInput, match="Column 1"):
        model.init_from_data(X, y, g)


def test_hopeless_numbers_give_nan_and_no_exception():
    model, X, y = _model()
    with torch.no_grad():
        model.b.fill_(1e4)
    assert not LogEvidence(model, X, y)().isfinite()
