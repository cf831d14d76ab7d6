"""What HMOGP-LV recovers, repeats, resumes and refuses."""

import math
from itertools import pairwise

import pytest
import torch

from scant.errors import BadInput
from scant.models.replicated.data import NEW, Data, Scale
from scant.models.replicated.hmogp_lv.initialization import inducing_inputs, latent_positions
from scant.models.replicated.hmogp_lv.layout import ReplicaBatch
from scant.models.replicated.hmogp_lv.model import HMOGPLV
from scant.models.replicated.hmogp_lv.training import HMOGPLVTrainer
from tests.engine.models.replicated.replicas import data, drawn

OF_TRAINING = ("rate", "natural_rate", "batch")


def _start(rows, scheme="lbfgs", seed=0, **other):
    g = torch.Generator().manual_seed(seed)
    train = {k: other.pop(k) for k in OF_TRAINING if k in other}
    model = HMOGPLV.build(rows, g, dense=scheme == "lbfgs", **other)
    return HMOGPLVTrainer(model, rows, g, scheme, **train)


def _steps(training, count):
    return [training.step() for _ in range(count)]


@pytest.fixture(scope="module")
def hidden():
    """A model trained on all but one replica of each of ten outputs, and those replicas."""
    rows = drawn(outputs=10, replicas=4, n=10, own=1.0, seed=3)
    away = rows.replica == rows.output % 4
    shapes = {"kernel_shared": "rbf", "kernel_replica": "rbf"}
    training = _start(rows.at(~away), n_inducing_outputs=5, n_inducing_inputs=28, **shapes)
    _steps(training, 60)
    return training.model, rows.at(~away), rows.at(away)


@pytest.mark.slow
def test_a_replica_that_was_never_taken_is_recovered(hidden):
    model, _, away = hidden
    mean, variance, noise = model.predict(away.output, away.replica, away.x)
    nmse = (away.y - mean).square().mean() / away.y.var(correction=0)
    inside = (away.y - mean).abs() < 1.96 * (variance + noise).sqrt()
    assert nmse < 0.25
    assert 0.9 <= inside.double().mean() <= 0.99
    # The other outputs knew of the sampling: a new replica, of the shared curve alone, does worse.
    new = model.predict(away.output, torch.full_like(away.replica, NEW), away.x)
    assert (away.y - new.mean).square().mean() > 1.5 * (away.y - mean).square().mean()
    assert (new.variance > variance).all()


def test_levels_of_variance_are_found(hidden):
    shared, own, noise = hidden[0].levels(torch.tensor([0]))[0]
    assert 0.2 < shared < 5
    assert 0.2 < own < 5
    assert noise == pytest.approx(0.02, rel=0.4)


def test_bands_of_a_new_replica_widen_to_the_prior_far_away(hidden):
    model = hidden[0]
    output, new = torch.zeros(1, dtype=torch.long), torch.tensor([NEW])
    far = model.predict(output, new, torch.tensor([1e3]).double())
    assert far.mean.abs() < 1e-6
    assert far.variance.item() == pytest.approx(model.levels(output)[0, :2].sum().item())


def test_outputs_covary_as_far_as_they_lie_together(hidden):
    model = hidden[0]
    K = model.outputs_covariance()
    assert torch.equal(K, K.T)
    assert (torch.linalg.eigvalsh(K) > -1e-9).all()
    assert (K.diagonal() == 1).all()
    mean, deviation = model.latent()
    draws = torch.randn(2, 20_000, 2, generator=torch.Generator().manual_seed(0)).double()
    a, b = mean[0] + deviation[0] * draws[0], mean[1] + deviation[1] * draws[1]
    each = torch.exp(-0.5 * (a - b).square().sum(1))
    assert K[0, 1].item() == pytest.approx(each.mean().item(), abs=5 * each.std().item() / 141)


def test_hiding_a_replica_takes_no_training(hidden):
    model, rows, _ = hidden
    state = {k: v.clone() for k, v in model.state_dict().items()}
    before = model.predict(rows.output[:9], rows.replica[:9], rows.x[:9])
    d, r = int(rows.output[0]), int(rows.replica[0])
    model.condition(rows.without(d, r))
    after = model.predict(rows.output[:9], rows.replica[:9], rows.x[:9])
    assert (after.variance > before.variance).all()
    model.condition(rows)
    again = model.predict(rows.output[:9], rows.replica[:9], rows.x[:9])
    torch.testing.assert_close(again.mean, before.mean, atol=1e-6, rtol=0)
    model.load_state_dict(state)


def test_lbfgs_climbs_at_every_step():
    training = _start(data([[6, 5], [6, 4]]), n_inducing_outputs=2, n_inducing_inputs=6)
    first = training.model.elbo().item()
    bounds = [first, *_steps(training, 30)]
    assert all(b >= a for a, b in pairwise(bounds))
    assert bounds[-1] > first + 5
    # What is predicted with is the best q(U) where it ended.
    assert training.model.elbo().item() == pytest.approx(bounds[-1], rel=1e-9)
    assert not training.stalled


@pytest.mark.slow
def test_natural_gradients_and_adam_climb_to_what_lbfgs_finds():
    rows = drawn(outputs=4, replicas=2, n=6)
    best = _steps(_start(rows, n_inducing_inputs=8), 30)[-1]
    for scheme, count in (("natural", 60), ("adam", 100)):
        training = _start(rows, scheme, rate=0.05, natural_rate=0.5, n_inducing_inputs=8)
        first = training.model.elbo().item()
        _steps(training, count)
        assert training.model.elbo().item() > best - 0.4 * (best - first)


def test_minibatches_learn():
    rows = drawn(outputs=12, replicas=3, n=6)
    training = _start(rows, "natural", batch=4, n_inducing_inputs=12)
    first = training.model.elbo().item()
    _steps(training, 40)
    assert training.model.elbo().item() > first + 20


def test_an_output_without_rows_is_predicted_from_the_prior():
    rows = data([[4, 3], [5]])
    names = [["a", "b"], ["a"], ["a"]]
    rows = Data.of(rows.output, rows.replica, rows.x, rows.y, replicas=names)
    training = _start(rows, n_inducing_inputs=6)
    _steps(training, 30)
    # Nothing but the divergence from the prior N(0, I) moves q(h_2).
    latents = training.model.latents
    assert latents.mean[2].tolist() == pytest.approx([0, 0], abs=0.01)
    assert latents.log_variance[2].exp().tolist() == pytest.approx([1, 1], abs=0.01)
    output = torch.tensor([2])
    far = training.model.predict(output, torch.tensor([0]), torch.tensor([1e3]).double())
    k_g, k_f, _ = training.model.levels(output)[0]
    assert far.mean.item() == pytest.approx(0, abs=1e-9)
    assert far.variance.item() == pytest.approx((k_g + k_f).item())


def test_what_was_never_seen_is_refused_by_name():
    model = _start(data([[3, 2], [4]])).model
    x = torch.tensor([1.0]).double()
    with pytest.raises(BadInput, match="Output 2 is unknown; the model has outputs 0 to 1"):
        model.predict(torch.tensor([2]), torch.tensor([0]), x)
    with pytest.raises(BadInput, match="Replica 1 of output 1 is unknown: that output has 1"):
        model.predict(torch.tensor([1]), torch.tensor([1]), x)
    with pytest.raises(BadInput, match="Output -1 is unknown"):
        model.shared(torch.tensor([-1]), x)
    assert not len(model.predict(*(torch.zeros(0).long(),) * 2, x[:0]).mean)


def test_bad_arguments_are_sentences():
    rows = data([[3], [4]])
    g = torch.Generator()
    for arguments, said in (
        ({"n_latent_dims": 0}, "at least one latent dimension, got 0"),
        ({"n_inducing_outputs": 0}, "at least one inducing output, got 0"),
        ({"n_inducing_inputs": 0}, "at least one inducing input, got 0"),
        ({"noise": "none"}, "Noise 'none' is unknown"),
        ({"kernel_shared": "cubic"}, "'cubic' is unknown"),
    ):
        with pytest.raises(BadInput, match=said):
            HMOGPLV.build(rows, g, **arguments)
    with pytest.raises(BadInput, match="does not go with"):
        HMOGPLVTrainer(HMOGPLV.build(rows, g, dense=True), rows, g, "adam")
    with pytest.raises(BadInput, match="'sgd' is unknown"):
        HMOGPLVTrainer(HMOGPLV.build(rows, g), rows, g, "sgd")
    with pytest.raises(BadInput, match="above zero, got 4"):
        HMOGPLVTrainer(HMOGPLV.build(rows, g, dense=True), rows, g, "lbfgs", batch=4)
    empty = torch.zeros(0)
    with pytest.raises(BadInput, match="no measurement"):
        Data.of(empty.long(), empty.long(), empty, empty)
    with pytest.raises(BadInput, match="Row 1 has nan as its y"):
        Data.of(*(torch.zeros(2).long(),) * 2, torch.zeros(2), torch.tensor([0, math.nan]))


def test_replicas_of_one_name_are_one_sampling():
    rows = data([[2, 2], [2]])
    named = Data.of(
        rows.output, rows.replica, rows.x, rows.y, replicas=[["late", "early"], ["early"]]
    )
    assert named.samplings.tolist() == [[0, 1], [1, NEW]]
    assert named.replicas == [2, 1]
    assert named.n_samplings == 2
    assert named.sampling(torch.tensor([1, 0, 0]), torch.tensor([0, 1, NEW])).tolist() == [1, 1, -1]
    model = _start(named).model
    x = torch.tensor([1.0, 1.0]).double()
    mean, variance, _ = model.predict(torch.tensor([0, 1]), torch.tensor([1, 0]), x)
    assert mean.isfinite().all()
    assert variance.gt(0).all()


def test_scales_are_undone():
    rows = data([[4, 3], [5]])
    shifted = Data(rows.output, rows.replica, 10 + 2 * rows.x, 5 - 3 * rows.y, rows.samplings)
    scale = Scale.of(shifted)
    standard = scale.standardize(shifted)
    for d in (0, 1):
        own = standard.y[standard.output == d]
        assert own.mean().item() == pytest.approx(0, abs=1e-12)
        assert own.std(correction=0).item() == pytest.approx(1)
    assert standard.x.std(correction=0).item() == pytest.approx(1)
    model = _start(standard).model
    found = model.predict(standard.output, standard.replica, standard.x)
    back = scale.restore(standard.output, found)
    width = scale.y_width[standard.output]
    torch.testing.assert_close(back.mean, scale.y_centre[standard.output] + width * found.mean)
    torch.testing.assert_close(back.noise, width**2 * found.noise)


def test_inducing_inputs_give_every_sampling_its_share():
    inputs = torch.tensor([[float(i), float(r)] for r, n in enumerate((8, 4, 2)) for i in range(n)])
    shares = {
        count: torch.bincount(inducing_inputs(inputs, count)[:, 1].long(), minlength=3).tolist()
        for count in (1, 3, 7, 14, 50)
    }
    assert shares == {1: [1, 0, 0], 3: [1, 1, 1], 7: [4, 2, 1], 14: [8, 4, 2], 50: [8, 4, 2]}
    every = inducing_inputs(inputs, 14)
    assert {tuple(row) for row in every.tolist()} == {tuple(row) for row in inputs.tolist()}


def test_samplings_without_inducing_inputs_are_said():
    model = _start(data([[3, 3, 3], [3, 3, 3]]), n_inducing_inputs=2).model
    assert model.notes == [
        "1 samplings have no inducing input, so that the model knows them from the shared curve"
        " alone; 3 would do."
    ]


def test_outputs_start_beside_those_they_resemble():
    x = torch.linspace(0, 4, 9).double()
    curves = [torch.sin(x), 1.1 * torch.sin(x), torch.cos(x), 0.9 * torch.cos(x)]
    output = torch.arange(4).repeat_interleave(9)
    rows = Data.of(output, torch.zeros_like(output), x.repeat(4), torch.cat(curves))
    start = latent_positions(ReplicaBatch.of(rows), 2, torch.Generator().manual_seed(0))
    apart = torch.cdist(start, start)
    assert apart[0, 1] < apart[0, 2] / 3
    assert apart[2, 3] < apart[0, 2] / 3
