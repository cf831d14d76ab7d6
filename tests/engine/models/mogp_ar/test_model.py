"""MOGPs-AR: its latent functions, its bounds over several outputs, what its classes share."""

import math

import pytest
import torch

from scant.errors import BadInput
from scant.likelihoods.augment_reduce import grouped
from scant.likelihoods.softmax_average import by_draws, by_quadrature
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.model import MOGPAR
from scant.models.mogp_ar.whitening import JITTER, kl_divergence, moments

SIZES = [3, 5, 2]


def _case(n=30, m=8, rank=1, seed=0, sizes=SIZES, **other):
    """A model away from its start, and rows of three outputs."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g, dtype=torch.float64)
    kernel = RbfArd(x, 2)
    rows = kernel.prepare(x)
    model = MOGPAR(kernel, kernel.start(rows, m, g), sizes, g, rank=rank, **other)
    with torch.no_grad():
        model.q_mean.normal_(generator=g)
        noise = torch.randn(model.q_scale.shape, generator=g, dtype=torch.float64)
        model.q_scale += 0.1 * noise.tril()
        model.mixing.weight.normal_(generator=g)
    output = torch.arange(n) % len(sizes)
    label = torch.stack([torch.randint(sizes[d], (), generator=g) for d in output.tolist()])
    return model, rows, output, label, g


def _dense(model, rows):
    """Moments of f over all classes from full covariance matrices, without whitening."""
    z = model.inducing_points
    K, cross = model.kernel.covariances(z, rows)
    K = K + 1e-6 * torch.eye(z.shape[1]).double()
    L = torch.linalg.cholesky(K)
    means, variances = [], []
    for q in range(model.n_latent):
        project = torch.linalg.solve(K[q], cross[q]).T
        for r in range(model.rank):
            scale = L[q] @ model.q_scale[q, r]
            means.append(project @ L[q] @ model.q_mean[q, r])
            residual = scale @ scale.T - K[q]
            variances.append(1 + ((project @ residual) * project).sum(1))
    return torch.stack(means), torch.stack(variances)


@pytest.mark.parametrize("rank", [1, 2])
def test_latent_moments_are_those_of_dense_algebra(rank):
    model, rows, *_ = _case(rank=rank)
    for got, expected in zip(model.latent(rows), _dense(model, rows)):
        torch.testing.assert_close(got, expected.detach(), rtol=1e-6, atol=1e-6)
    assert [part.shape for part in model.latent(rows[:0])] == [(2 * rank, 0)] * 2


@pytest.mark.parametrize("rank", [1, 2])
def test_solved_gives_the_means_by_the_kernel_alone(rank):
    model, rows, *_ = _case(rank=rank)
    means = model.solved().mT @ model.kernel.covariances(model.inducing_points, rows)[1]
    torch.testing.assert_close(means.detach().reshape(2 * rank, -1), model.latent(rows)[0])


def test_inducing_points_at_the_data_lose_nothing():
    """q(u) = p(u): the prior's variances; q(u) certain: none left (M = n, but for the jitter)."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(12, 2, generator=g, dtype=torch.float64)
    kernel = RbfArd(x, 2)
    rows = kernel.prepare(x)
    model = MOGPAR(kernel, rows.expand(2, -1, -1), [3], g)
    mean, variance = model.latent(rows)
    torch.testing.assert_close(variance, torch.ones_like(variance))
    assert mean.abs().max().item() == 0
    assert model.kl_divergence().item() == pytest.approx(0)
    with torch.no_grad():
        model.q_scale *= 1e-6
    assert model.latent(rows)[1].max().item() < 1e-4


@pytest.mark.parametrize("rank", [1, 3])
def test_moments_have_the_gradient_of_a_cholesky_factor_and_a_solve(rank):
    g = torch.Generator().manual_seed(0)
    root, cross, mean, scale = (
        torch.randn(2, *shape, generator=g, dtype=torch.float64, requires_grad=True)
        for shape in ((5, 8), (5, 4), (rank, 5), (rank, 5, 5))
    )

    def plain(root, cross, mean, scale):
        L = torch.linalg.cholesky(root @ root.mT + JITTER * torch.eye(root.shape[1]).double())
        A = torch.linalg.solve_triangular(L, cross, upper=False)
        spread = (scale.tril().mT @ A.unsqueeze(1)).square().sum(2)
        return mean @ A, spread - A.square().sum(1).unsqueeze(1)

    def ours(root, cross, mean, scale):
        return moments(root @ root.mT, cross, mean, scale.tril())

    given, weights = (root, cross, mean, scale), []
    for got, expected in zip(ours(*given), plain(*given)):
        torch.testing.assert_close(got, expected)
        weights.append(torch.randn(got.shape, generator=g, dtype=torch.float64))
    of_ours, of_plain = (
        torch.autograd.grad(sum((w * v).sum() for w, v in zip(weights, how(*given))), given)
        for how in (ours, plain)
    )
    for got, expected in zip(of_ours, of_plain):
        torch.testing.assert_close(got, expected)
    assert torch.autograd.gradcheck(ours, given)


def test_kl_divergence_is_that_of_gaussians():
    model, *_ = _case(rank=2)
    scale = model.q_scale.detach().clone()
    with torch.no_grad():
        scale.diagonal(dim1=-2, dim2=-1).abs_()
    q = torch.distributions.MultivariateNormal(model.q_mean, covariance_matrix=scale @ scale.mT)
    eye = torch.eye(model.q_mean.shape[-1]).double()
    p = torch.distributions.MultivariateNormal(torch.zeros_like(model.q_mean), eye)
    expected = torch.distributions.kl_divergence(q, p).sum()
    torch.testing.assert_close(model.kl_divergence(), expected)
    given = (model.q_mean.detach().requires_grad_(), model.q_scale.detach().requires_grad_())
    assert torch.autograd.gradcheck(lambda mean, S: kl_divergence(mean, S.tril()), given)


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_each_output_competes_among_its_own_classes(covariance):
    """The bound of rows of all outputs, against a loop over rows and classes."""
    model, rows, output, label, _ = _case(rank=2, covariance=covariance)
    u_mean, u_variance = model.latent(rows)
    weights, expected = model.mixing.weight.detach(), 0.0
    A, constant = weights[:, :-1], weights[:, -1]
    for i, (d, y) in enumerate(zip(output.tolist(), label.tolist())):
        first, p = sum(SIZES[:d]), 0.0
        for c in set(range(SIZES[d])) - {y}:
            a, b = A[first + c], A[first + y]
            weight = (a - b) ** 2 if covariance == "kept" else a**2 + b**2
            lead = (a - b) @ u_mean[:, i] + constant[first + c] - constant[first + y]
            p += math.exp((lead + 0.5 * weight @ u_variance[:, i]).item())
        expected -= math.log1p(p)
    total = model.bound(rows, output, label).item() + model.kl_divergence().item()
    assert total == pytest.approx(expected)


def test_full_and_drawn_estimates_agree():
    """All classes or more than there are: the bound; some rows of an output stand for all of it."""
    model, rows, output, label, g = _case()
    n_total = torch.bincount(output)
    exact = model.bound(rows, output, label).item()
    for sampled in (0, 4, 9):
        assert model.elbo(rows, output, label, n_total, g, sampled).item() == pytest.approx(exact)
    some = torch.cat([torch.arange(0, 12), torch.arange(12, 30, 3)])  # unequal shares of outputs
    share = model.elbo(rows[some], output[some], label[some], n_total, g, 0).item()
    kl = model.kl_divergence().item()
    per_row = model.likelihood.terms(*model._mixed(model.latent(rows)), output, label, None, 0)
    by_hand = sum(10 * per_row[some][output[some] == d].mean() for d in range(3)).item() - kl
    assert share == pytest.approx(by_hand)


def test_drawn_classes_are_right_on_average():
    """Two classes in each output: one class drawn is all, and nothing is left to chance."""
    model, rows, output, label, g = _case(sizes=[2, 2, 2])
    n_total = torch.bincount(output)
    one = model.elbo(rows, output, label, n_total, g, 1)
    torch.testing.assert_close(one, model.elbo(rows, output, label, n_total, g, 0))


def test_groups_give_every_row_its_place_back():
    output = torch.tensor([2, 0, 2, 2, 0, 4])
    place, back, present = grouped(output, 6)
    assert present.tolist() == [0, 2, 4]
    assert place.shape == (3, 3)
    assert place.flatten()[back].tolist() == list(range(6))
    assert all(output[row].tolist() == [d] * 3 for row, d in zip(place, [0, 2, 4]))


def test_gradients_of_rows_in_groups_are_counted_once():
    model, rows, output, label, g = _case(n=10)  # groups of 4, 3 and 3 rows
    n_total = torch.bincount(output)
    model.elbo(rows, output, label, n_total, g, 0).backward()
    grouped_gradient = model.q_mean.grad.clone()
    model.zero_grad()
    for i in range(10):
        at = slice(i, i + 1)
        moments = model._mixed(model._moments(rows[at]))
        model.likelihood.terms(*moments, output[at], label[at], None, 0).sum().backward()
    (-model.kl_divergence()).backward()
    torch.testing.assert_close(model.q_mean.grad, grouped_gradient)


@pytest.mark.parametrize(("how", "covariance"), [(by_draws, "kept"), (by_quadrature, "dropped")])
def test_predictions_against_monte_carlo(how, covariance):
    g = torch.Generator().manual_seed(0)
    A, mean, variance = (
        s * torch.randn(k, 3, generator=g, dtype=torch.float64)
        for k, s in ((5, 1.5), (7, 1), (7, 1))
    )
    variance = variance.square()
    got = how(A, mean, variance, 4096)
    if covariance == "kept":
        noise = torch.randn(100_000, 7, 3, generator=g, dtype=torch.float64)
        p = ((mean + variance.sqrt() * noise) @ A.T).softmax(-1)
    else:
        noise = torch.randn(100_000, 7, 5, generator=g, dtype=torch.float64)
        p = (mean @ A.T + (variance @ A.T.square()).sqrt() * noise).softmax(-1)
    standard = (p.var(0) / len(p) + got.error.square()).sqrt()
    assert ((got.probability - p.mean(0)) / standard).abs().max().item() < 4.5
    torch.testing.assert_close(got.probability.sum(1), torch.ones(7).double())
    expected = torch.special.entr(p.mean(0)).sum(1)
    torch.testing.assert_close(got.entropy, expected, rtol=0, atol=0.01)
    information = expected - torch.special.entr(p).sum(-1).mean(0)
    torch.testing.assert_close(got.information, information, rtol=0, atol=0.01)


def test_quadrature_of_wide_and_far_functions():
    """Certain functions give the softmax; one far ahead wins; equals share, however wide."""
    A = torch.eye(3).double()
    mean = torch.tensor([[1.0, 0, -1], [800, -800, 0], [2, 2, 2]]).double()
    none, wide = torch.zeros(3, 3).double(), torch.full((3, 3), 60.0).double()
    sure = by_quadrature(A, mean, none).probability
    torch.testing.assert_close(sure, mean.softmax(1), rtol=1e-6, atol=1e-8)
    p = by_quadrature(A, mean, wide).probability
    assert p[1, 0].item() == pytest.approx(1)
    torch.testing.assert_close(p[2], torch.full((3,), 1 / 3).double())


def test_the_stated_error_is_that_of_repeated_draws():
    model, rows, output, *_ = _case()
    stated = model.predict(rows, output, draws=64).error
    several = torch.stack(
        [model.predict(rows, output, draws=64, seed=s).probability for s in range(40)]
    )
    ratio = several.std(0).square().mean().sqrt() / stated.square().mean().sqrt()
    assert 0.7 < ratio.item() < 1.4


@pytest.mark.parametrize("covariance", ["kept", "dropped"])
def test_probabilities_are_padded_with_zeros(covariance):
    model, rows, output, *_ = _case(covariance=covariance)
    p = model.probabilities(rows, output)
    assert p.shape == (30, 5)
    torch.testing.assert_close(p.sum(1), torch.ones(30).double())
    for d, size in enumerate(SIZES):
        assert p[output == d, size:].abs().sum().item() == 0
    assert model.probabilities(rows[:0], output[:0]).shape == (0, 5)
    again = model.predict(rows, output)
    assert torch.equal(again.probability, p)
    assert bool((again.information <= again.entropy + 1e-12).all())


def test_what_classes_share():
    model, *_ = _case(rank=2, covariance="dropped")
    B = model.coregionalization()
    A = model.mixing.weight.detach()[:, :-1].view(10, 2, 2)
    torch.testing.assert_close(B[1], A[:, 1] @ A[:, 1].T)
    torch.testing.assert_close(model.coregionalization(torch.tensor([7, 1]))[0, 0, 1], B[0, 7, 1])
    edges = torch.tensor([0, 3, 8, 10])
    whole = model.global_matrix()
    for i in range(3):
        for j in range(3):
            block = B[:, edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
            torch.testing.assert_close(whole[i, j], block.abs().mean())


def test_what_all_classes_of_an_output_share_is_left_out_where_it_changes_nothing():
    for covariance, same in (("kept", True), ("dropped", False)):
        model, rows, output, label, _ = _case(covariance=covariance)
        before = model.bound(rows, output, label), model.factors()
        with torch.no_grad():
            model.mixing.weight[3:8] += torch.tensor([3.0, -1, 2]).double()
        after = model.bound(rows, output, label), model.factors()
        for a, b in zip(before, after):
            assert torch.allclose(a, b) is same
        assert torch.allclose(after[1][:, 3:8].sum(1), torch.zeros(2, 1).double()) is same


@pytest.mark.parametrize("sizes", [[], [3, 1]])
def test_an_output_of_one_class_is_refused(sizes):
    g = torch.Generator().manual_seed(0)
    kernel = RbfArd(torch.randn(5, 2, generator=g).double(), 1)
    with pytest.raises(BadInput, match="two classes"):
        MOGPAR(kernel, torch.zeros(1, 4, 2).double(), sizes, g)
