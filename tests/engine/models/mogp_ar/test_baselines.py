"""Baselines of MOGPs-AR: full softmax, and one model for each output."""

import pytest
import torch

from scant.errors import BadInput
from scant.models.mogp_ar.baselines import GA, MGM, MODELS, build
from scant.models.mogp_ar.kernels import RbfArd
from scant.models.mogp_ar.model import MOGPAR
from scant.models.mogp_ar.training import fit

SIZES = [4, 3]


def _clusters(n=100, seed=0):
    g = torch.Generator().manual_seed(seed)
    output = torch.arange(n) % 2
    label = (torch.rand(n, generator=g) * torch.tensor(SIZES)[output]).long()
    centre = torch.stack([label.double() * 2, (label == 1).double() * 3 * output], 1)
    return centre + 0.4 * torch.randn(n, 2, generator=g, dtype=torch.float64), output, label


def _model(name, seed=0, **options):
    x, output, label = _clusters()
    g = torch.Generator().manual_seed(seed)
    kernel = RbfArd(x, 2 if name in ("mogp-ar", "mg-m") else 1)
    rows = kernel.prepare(x)
    model = build(name, kernel, rows, output, SIZES, 10, g, **options)
    return model, rows, output, label, g


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_each_learns_by_its_name(name):
    x, output, label = _clusters()
    model = fit(x, output, label, name, n_latent=2, inducing=10, steps=120, batch=25)
    other, output, label = _clusters(seed=1)
    got = model.predict(model.kernel.prepare(other), output)
    assert (got.probability.argmax(1) == label).double().mean().item() > 0.9
    torch.testing.assert_close(got.probability.sum(1), torch.ones(100).double())
    assert got.probability[output == 1, 3].abs().max().item() == 0
    assert torch.equal(got.probability, model.probabilities(model.kernel.prepare(other), output))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mg-m", "g-m"])
def test_the_softmax_itself_is_above_augment_and_reduce(name):
    """The same q(u) and mixing matrix, by Monte Carlo and by the closed bound."""
    model, rows, output, label, g = _model(name)
    closed, *_ = _model({"mg-m": "mogp-ar", "g-m": "g-a"}[name])
    closed.load_state_dict(model.state_dict())
    softmax = model.bound(rows, output, label).item()
    assert softmax > closed.bound(rows, output, label).item()
    assert model.bound(rows, output, label).item() == softmax
    n_total = torch.bincount(output)
    steps = torch.stack([model.elbo(rows, output, label, n_total, g) for _ in range(200)])
    error = steps.std().item() / 200**0.5
    assert steps.mean().item() == pytest.approx(softmax, abs=5 * error + 0.3)


def test_full_softmax_expectation_is_that_of_dense_draws_of_the_classes():
    model, rows, output, label, _ = _model("mg-m")
    with torch.no_grad():
        model.mixing.weight.normal_(generator=torch.Generator().manual_seed(2))
    terms = model.likelihood.terms(*model._mixed(model.latent(rows)), output, label, None, 0)
    mean, variance = model._mixed(model.latent(rows))
    for i in (0, 1):
        first = [0, 4][output[i]]
        A = model.mixing.weight.detach()[first : first + SIZES[output[i]]]
        f = torch.distributions.MultivariateNormal(
            A @ mean[i], A @ variance[i].diag() @ A.T + 1e-9 * torch.eye(len(A)).double()
        )
        torch.manual_seed(0)
        draws = f.sample((100_000,)).log_softmax(-1)[:, label[i]]
        tolerance = 5 * draws.std().item() / 100**0.5
        assert terms[i].item() == pytest.approx(draws.mean().item(), abs=tolerance)


def test_classes_of_a_single_output_are_independent():
    model, *_ = _model("g-a")
    one = model.models[0]
    assert one.factors().shape == (1, 4, 4)
    torch.testing.assert_close(one.coregionalization()[0], torch.eye(4).double())
    assert (one.n_latent, one.rank, model.models[1].rank) == (1, 4, 3)
    z = [m.inducing_points.data_ptr() for m in model.models]
    lengths = [m.kernel.rbf.raw_lengthscale.data_ptr() for m in model.models]
    assert len(set(z)) == len(set(lengths)) == 2


def test_independent_outputs_look_like_one_model_of_a_kernel_each():
    model, rows, *_ = _model("g-m")
    with torch.no_grad():
        for one in model.models:
            one.q_mean.normal_(generator=torch.Generator().manual_seed(1))
    mean, variance = model.latent(rows)
    assert mean.shape == variance.shape == (8, 100)  # two kernels, four ranks
    assert mean[7].abs().max().item() == variance[7].abs().max().item() == 0
    B = model.coregionalization()
    torch.testing.assert_close(B.sum(0), torch.eye(7).double())
    assert B[1, :4].abs().sum().item() == 0
    expected = torch.tensor([[1 / 8, 0], [0, 1 / 6]]).double()  # the mean of B_1 and B_2
    torch.testing.assert_close(model.global_matrix(), expected)
    z = model.inducing_points
    assert z.shape == (2, 10, 2)
    for d, one in enumerate(model.models):
        cross = one.kernel.covariances(z[d : d + 1], rows)[1][0]
        got = model.solved()[d].T @ cross
        torch.testing.assert_close(got, mean[4 * d : 4 * d + 4], atol=1e-4, rtol=1e-4)


def test_independent_outputs_bound_is_the_sum_of_theirs():
    model, rows, output, label, g = _model("g-a")
    whole = model.bound(rows, output, label).item()
    zero = torch.zeros(50).long()
    parts = [
        m.bound(rows[output == d], zero, label[output == d]).item()
        for d, m in enumerate(model.models)
    ]
    assert whole == pytest.approx(sum(parts))
    estimate = model.elbo(rows, output, label, torch.bincount(output), g, 0)
    assert estimate.item() == pytest.approx(whole)


def test_constants_stay_where_they_are_not_wanted():
    x, output, label = _clusters()
    for name, kind in (("g-a", GA), ("mg-m", MGM), ("mogp-ar", MOGPAR)):
        model = fit(x, output, label, name, n_latent=2, inducing=5, steps=3, constant=False)
        one = model.models[0] if name == "g-a" else model
        assert isinstance(one, kind)
        assert one._table().shape[1] == one.n_latent * one.rank


def test_unknown_names_and_outputs_without_rows_are_refused():
    with pytest.raises(BadInput, match="unknown"):
        _model("svm")
    x, output, _ = _clusters()
    kernel = RbfArd(x, 1)
    g = torch.Generator().manual_seed(0)
    with pytest.raises(BadInput, match="Output 2 has no row"):
        build("g-m", kernel, kernel.prepare(x), output, [4, 3, 2], 5, g)
