"""The bound of HMOGP-LV, and LVMOGP as a case of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from scant.errors import BadInput
from scant.inference.expectations import expected_kernel, expected_product, log_kernel
from scant.models.replicated.data import Data
from scant.models.replicated.hmogp_lv.bound import collapsed
from scant.models.replicated.hmogp_lv.latent import JITTER
from scant.models.replicated.hmogp_lv.layout import ReplicaBatch
from scant.models.replicated.hmogp_lv.lvmogp import LVMOGP
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from tests.engine.models.replicated.replicas import data, drawn

UNEQUAL = [[3, 5], [4], [2, 1, 3]]
SAME = [[3, 4], [3, 4], [3, 4]]
GRID = torch.linspace(0, 4, 4).double()


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _model(lengths=UNEQUAL, dense=True, noise="each output", **other):
    """A model away from its start, q(U) and all."""
    rows = data(lengths, x=GRID if lengths is SAME else None)
    other = {"n_inducing_outputs": 3, "n_inducing_inputs": 4} | other
    model = HMOGPLV.build(rows, _generator(), noise=noise, dense=dense, **other)
    g = _generator(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=g, dtype=p.dtype))
        if dense:
            mean, root = model.posterior.mean, model.posterior.root
            mean.copy_(torch.randn(mean.shape, generator=g, dtype=mean.dtype))
            root.copy_(root + 0.1 * torch.randn(root.shape, generator=g, dtype=root.dtype).triu())
    return model


def _bound(model, layout, weight=1.0):
    return model.bound(model.statistics(layout, weight), layout).item()


def _covariances(model):
    """K_UU^H and K_UU^X, as the model has them, with their jitter."""
    Z, precision = model.latents.inducing, (-2 * model.latents.log_lengthscale).exp()
    K_H = log_kernel(Z, Z, precision).exp()
    places = model.inducing_inputs()
    K_X = model.kernel(places).to_dense()
    return (
        K_H + JITTER * torch.eye(len(K_H)).double(),
        K_X + JITTER * K_X.diagonal().mean() * torch.eye(len(K_X)).double(),
    )


def _q(model):
    """Mean and covariance of q(U), stacked output by output; and p(U)'s covariance."""
    K_H, K_X = _covariances(model)
    L = torch.kron(torch.linalg.cholesky(K_H), torch.linalg.cholesky(K_X))
    if hasattr(model.posterior, "root"):
        S = model.posterior.root @ model.posterior.root.T
    else:
        S = torch.kron(*model.posterior.covariances())
    return L @ model.posterior.mean.reshape(-1), L @ S @ L.T, torch.kron(K_H, K_X)


def _rows(model, d):
    """Inputs (x, sampling) and y of one output."""
    layout = model.layout
    real = layout.real[d]
    return layout.inputs[layout.where[d][real]], layout.y[d][real]


def _plain(model):
    """5.31-5.32 (5.20-5.21 where inputs are the same), matrices of M_X M_H rows and all."""
    m, Sigma, K_UU = _q(model)
    inverse = torch.linalg.inv(K_UU)
    Z, precision = model.latents.inducing, (-2 * model.latents.log_lengthscale).exp()
    total = -kl_divergence(
        MultivariateNormal(m, Sigma), MultivariateNormal(torch.zeros_like(m), K_UU)
    )
    for d, noise in enumerate(model.noise):
        inputs, y = _rows(model, d)
        h = model.latents.mean[[d]], model.latents.log_variance[[d]].exp()
        K_fU = model.kernel(inputs, model.inducing_inputs()).to_dense()
        Psi = torch.kron(expected_kernel(*h, Z, precision), K_fU)
        Phi = torch.kron(expected_product(*h, Z, precision)[0], K_fU.T @ K_fU)
        psi = model.kernel(inputs, diag=True).sum()
        total = total - 0.5 * len(y) * torch.log(2 * math.pi * noise)
        second = inverse @ Phi @ inverse @ (torch.outer(m, m) + Sigma)
        total = total - 0.5 / noise * (y @ y - 2 * y @ Psi @ inverse @ m)
        total = total - 0.5 / noise * (psi - (inverse @ Phi).trace() + second.trace())
    return total - model.latents.divergence(torch.arange(len(model.noise)))


def _given_h(model, h, inputs):
    """Mean and variance of f at inputs for latent positions h (5.30), by dense algebra."""
    m, Sigma, K_UU = _q(model)
    precision = (-2 * model.latents.log_lengthscale).exp()
    K_H = log_kernel(h, model.latents.inducing, precision).exp()
    K_X = model.kernel(inputs, model.inducing_inputs()).to_dense()
    K_fU = (K_H[:, None, :, None] * K_X[None, :, None, :]).flatten(2)  # h x n x M
    solved = torch.linalg.solve(K_UU, K_fU.reshape(-1, len(m)).T).T.view_as(K_fU)
    prior = model.kernel(inputs, diag=True)
    spread = ((solved @ (Sigma - K_UU)) * solved).sum(-1)
    return solved @ m, prior + spread


def _nodes(model, d, n=50):
    """Gauss-Hermite nodes and weights of q(h_d)."""
    x, w = np.polynomial.hermite_e.hermegauss(n)
    mean, deviation = model.latents.mean[d], (0.5 * model.latents.log_variance[d]).exp()
    x, w = torch.as_tensor(x), torch.as_tensor(w / w.sum())
    grid = torch.cartesian_prod(*[x] * len(mean)).reshape(-1, len(mean))
    weights = torch.cartesian_prod(*[w] * len(mean)).reshape(-1, len(mean)).prod(1)
    return mean + deviation * grid, weights


def _brute(model):
    """The bound with E over q(H) by quadrature, row by row."""
    m, Sigma, K_UU = _q(model)
    total = -kl_divergence(
        MultivariateNormal(m, Sigma), MultivariateNormal(torch.zeros_like(m), K_UU)
    )
    for d, noise in enumerate(model.noise):
        inputs, y = _rows(model, d)
        h, weights = _nodes(model, d)
        mean, variance = _given_h(model, h, inputs)
        squares = (y - mean).square() + variance
        total = total - 0.5 * (weights @ (torch.log(2 * math.pi * noise) + squares / noise)).sum()
    return total - model.latents.divergence(torch.arange(len(model.noise)))


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("lengths", [UNEQUAL, SAME])
def test_the_efficient_bound_is_the_plain_one_and_that_by_quadrature(lengths, dense):
    model = _model(lengths, dense)
    with torch.no_grad():
        bound, plain, brute = model.elbo().item(), _plain(model).item(), _brute(model).item()
    assert model.layout.same == (lengths is SAME)
    assert bound == pytest.approx(plain, abs=1e-8 * abs(plain))
    assert bound == pytest.approx(brute, abs=1e-8 * abs(brute))


@pytest.mark.parametrize("dense", [True, False])
def test_same_inputs_are_a_special_case_of_different_ones(dense):
    model = _model(SAME, dense)
    other = replace(model.layout, same=False)
    with torch.no_grad():
        assert _bound(model, model.layout) == pytest.approx(_bound(model, other), rel=1e-12)
        values = []
        for layout in (model.layout, other):
            model.posterior.condition(model.statistics(layout))
            values.append(_bound(model, layout))
            values.append(collapsed(model.statistics(layout)).item())
    assert values[0] == pytest.approx(values[2], rel=1e-9)
    assert values[1] == pytest.approx(values[3], rel=1e-9)


@pytest.mark.parametrize("lengths", [UNEQUAL, SAME])
def test_the_collapsed_bound_is_that_at_the_best_q(lengths):
    model = _model(lengths)
    model.condition()
    with torch.no_grad():
        best = model.best_bound(model.statistics(model.layout), model.layout)
        assert model.elbo().item() == pytest.approx(best.item(), rel=1e-10)
        g = _generator(3)
        for tensor in (model.posterior.mean, model.posterior.root):
            before = tensor.clone()
            tensor.add_(1e-3 * torch.randn(tensor.shape, generator=g).double().triu())
            assert model.elbo() < best
            tensor.copy_(before)


@pytest.mark.parametrize("lengths", [UNEQUAL, SAME])
def test_the_best_kronecker_q_leaves_no_slope_and_is_below_the_best_of_all(lengths):
    model = _model(lengths, dense=False)
    model.condition()
    bound = model.elbo()
    bound.backward()
    slopes = [p.grad.abs().max().item() for p in model.posterior.parameters()]
    assert max(slopes) < 1e-6
    assert bound < model.best_bound(model.statistics(model.layout), model.layout)


def test_rows_in_any_order_give_the_same_bound():
    rows = data(UNEQUAL)
    model = _model()
    shuffled = rows.at(torch.randperm(len(rows.y), generator=_generator(5)))
    assert model.elbo(shuffled).item() == pytest.approx(model.elbo().item(), rel=1e-12)


def test_minibatches_are_unbiased():
    model = _model(dense=False)
    D = len(model.layout.outputs)
    with torch.no_grad():
        parts = [_bound(model, model.layout.at(torch.tensor([d])), float(D)) for d in range(D)]
        assert sum(parts) / D == pytest.approx(model.elbo().item(), rel=1e-12)


def _exact(model, h):
    """ln p(y | H) with K_H(h, h) times k_X."""
    layout = model.layout
    output, place = layout.real.nonzero().T
    inputs, y = layout.inputs[layout.where[output, place]], layout.y[output, place]
    precision = (-2 * model.latents.log_lengthscale).exp()
    K = log_kernel(h, h, precision).exp()[output][:, output] * model.kernel(inputs).to_dense()
    K = K + model.noise[output].diag()
    return MultivariateNormal(torch.zeros_like(y), K).log_prob(y)


def test_the_bound_is_below_the_log_marginal_likelihood():
    """Of two outputs K_H depends on h_1 - h_2 alone, so that H can be integrated out."""
    rows = data([[5, 4], [6, 3]])
    model = HMOGPLV.build(rows, _generator(), n_latent_dims=1, n_inducing_inputs=18)
    training = HMOGPLVTrainer(model, rows, _generator())
    gaps = []
    for _ in range(3):
        bound = [training.step() for _ in range(10)][-1]
        x, w = np.polynomial.hermite_e.hermegauss(60)
        apart = torch.as_tensor(x * 2**0.5)
        with torch.no_grad():
            each = [_exact(model, torch.tensor([[0.0], [a]]).double()) for a in apart]
        exact = torch.logsumexp(torch.stack(each) + torch.as_tensor(np.log(w / w.sum())), 0)
        gaps.append(exact.item() - bound)
    assert min(gaps) > 0
    assert gaps[-1] < 3  # of some -20 nats: it is a bound that says something


def test_the_bound_is_the_likelihood_where_nothing_is_approximated():
    """H known, and inducing variables at all outputs and inputs."""
    rows = data(UNEQUAL)
    n = len(torch.unique(torch.stack([rows.x, rows.replica.double()]), dim=1).T)
    model = HMOGPLV.build(rows, _generator(), n_inducing_outputs=3, n_inducing_inputs=n)
    with torch.no_grad():
        model.latents.mean.mul_(2)
        model.latents.inducing.copy_(model.latents.mean)
        model.latents.log_variance.fill_(-40)
        model.condition()
        bound = model.elbo() + model.latents.divergence(torch.arange(3))
        exact = _exact(model, model.latents.mean)
    assert bound.item() == pytest.approx(exact.item(), abs=1e-5)
    assert bound <= exact


@pytest.mark.parametrize("dense", [True, False])
def test_moments_are_those_over_q_of_h(dense):
    """By quadrature to 1e-8, and by Monte Carlo within its error: not at the mean of q(H)."""
    model = _model(dense=dense)
    x = torch.linspace(-1, 5, 7).double()
    for d, r in ((0, 1), (2, 0), (2, -1)):
        found = model.predict(torch.full((7,), d), torch.full((7,), r), x)
        inputs = torch.stack([x, torch.full_like(x, r)], dim=1)
        with torch.no_grad():
            h, weights = _nodes(model, d)
            mean, variance = _given_h(model, h, inputs)
            expected = weights @ mean
            total = weights @ (variance + mean.square()) - expected.square()
            torch.testing.assert_close(found.mean, expected, atol=1e-8, rtol=1e-8)
            torch.testing.assert_close(found.variance, total, atol=1e-8, rtol=1e-8)
            q = model.latents
            draws = torch.randn(40_000, 2, generator=_generator(7)).double()
            h = q.mean[d] + (0.5 * q.log_variance[d]).exp() * draws
            mean, variance = _given_h(model, h, inputs)
            error = mean.std(0) / len(h) ** 0.5
            assert ((mean.mean(0) - found.mean).abs() < 5 * error).all()
            second = variance + (mean - found.mean).square()
            error = second.std(0) / len(h) ** 0.5
            assert ((second.mean(0) - found.variance).abs() < 5 * error).all()
            at_mean = _given_h(model, q.mean[[d]], inputs)[1][0]
        assert ((found.variance - at_mean).abs() > 1e-3).any()


def test_the_curve_that_replicas_share_is_what_a_new_one_varies_about():
    model = _model()
    x = torch.linspace(0, 4, 5).double()
    output = torch.zeros(5, dtype=torch.long)
    mean, variance = model.shared(output, x)
    new = model.predict(output, torch.full((5,), -1), x)
    torch.testing.assert_close(new.mean, mean)
    own = model.levels(output)[:, 1]
    torch.testing.assert_close(new.variance, variance + own)


def test_layout_keeps_every_row_once():
    rows = drawn(outputs=3, replicas=2, n=4).at(torch.tensor([0, 3, 5, 9, 17, 20, 23]))
    layout = ReplicaBatch.of(rows)
    assert layout.counts.tolist() == [3, 1, 3]
    assert layout.y.sum() == pytest.approx(rows.y.sum())
    inputs = layout.inputs[layout.where[1, 0]]
    assert inputs.tolist() == [rows.x[3].item(), float(rows.replica[3])]
    part = layout.at(torch.tensor([2]))
    assert part.y[0].sort().values.tolist() == pytest.approx(sorted(rows.y[4:].tolist()))
    assert isinstance(rows, Data)


def test_it_is_hmogp_lv_whose_replicas_do_not_vary():
    rows = data([[3, 5], [4], [2, 1, 3]])
    blind = LVMOGP.build(rows, _generator(), n_inducing_outputs=3, n_inducing_inputs=6)
    other = HMOGPLV.build(rows, _generator(), n_inducing_outputs=3, n_inducing_inputs=6)
    with torch.no_grad():
        blind.kernel.levels[0].outputscale = 0.7
        other.kernel.levels[0].outputscale = 0.7
        other.kernel.levels[1].outputscale = 1e-14
        other.inducing_x.copy_(blind.inducing_x)
        other.latents.load_state_dict(blind.latents.state_dict())
    blind.condition()
    other.condition()
    assert blind.elbo().item() == pytest.approx(other.elbo().item(), abs=1e-6)
    asked = torch.tensor([0, 2, 2]), torch.tensor([0, 1, -1]), torch.tensor([0.5, 1, 3]).double()
    for a, b in zip(blind.predict(*asked), other.predict(*asked)):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_all_replicas_are_one_and_none_is_new():
    rows = drawn(outputs=4, replicas=3, n=6)
    model = LVMOGP.build(rows, _generator())
    training = HMOGPLVTrainer(model, rows, _generator())
    bounds = [training.step() for _ in range(15)]
    assert bounds[-1] > bounds[0]
    x = torch.full((4,), 1.5).double()
    mean, variance, _ = model.predict(torch.zeros(4).long(), torch.tensor([0, 1, 2, -1]), x)
    assert mean.unique().numel() == variance.unique().numel() == 1
    shared = model.shared(torch.zeros(4).long(), x)
    torch.testing.assert_close(shared[0], mean)
    torch.testing.assert_close(shared[1], variance)
    assert model.levels(torch.tensor([0]))[0, 1] == 0
    with pytest.raises(BadInput, match="Output 7 is unknown"):
        model.predict(torch.tensor([7]), torch.tensor([0]), x[:1])
