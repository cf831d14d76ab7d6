"""Training MTGPA: schemes, minibatches, seeds, resuming; what it recovers and what it refuses."""

import math

import pytest
import torch

from scant.errors import BadInput
from scant.kernels.box_average.support import boxes, weighted_points
from scant.models.mtgpa.initialization import inducing_points, signs
from scant.models.mtgpa.model import MTGPA
from scant.models.mtgpa.prior import Data
from scant.models.mtgpa.training import MTGPATrainer


def _two_tasks(seed=0, n=60):
    """A wave: averaged over wide boxes in full, and seen at few points through a second task."""
    g = torch.Generator().manual_seed(seed)
    lower = torch.arange(n // 2, dtype=torch.float64).unsqueeze(1) * 40 / n
    wide = boxes(lower, lower + 40 / n)
    places = torch.rand(n // 4, 1, generator=g, dtype=torch.float64) * 4
    y = torch.cat([_wave_average(wide), 0.5 - 1.5 * torch.sin(places[:, 0])])
    y = y + 0.05 * torch.randn(len(y), generator=g, dtype=torch.float64)
    task = torch.tensor([0] * len(wide) + [1] * len(places))
    return Data(torch.cat([wide, boxes(places, places)]), y, task)


def _wave_average(x):
    return (x[:, 0].cos() - x[:, 1].cos()) / (x[:, 1] - x[:, 0])


def _counts():
    g = torch.Generator().manual_seed(1)
    lower = torch.arange(40, dtype=torch.float64).unsqueeze(1)
    x = torch.cat([boxes(lower, lower + 1), boxes(lower[::2], lower[::2] + 2)])
    rate = torch.exp(torch.sin(x.mean(1) / 4))
    exposure = 0.5 + torch.rand(60, generator=g, dtype=torch.float64)
    counts = torch.poisson(exposure * rate, generator=g)
    signs = torch.bernoulli(torch.sigmoid(2 * torch.sin(x.mean(1) / 4)), generator=g)
    task = torch.tensor([0] * 40 + [1] * 20)
    return Data(x, torch.where(task == 0, counts, signs), task, exposure)


def _start(scheme="adam", data=None, likelihoods=("gaussian", "gaussian"), seed=0, **other):
    data = _two_tasks() if data is None else data
    g = torch.Generator().manual_seed(seed)
    train = {
        k: other.pop(k) for k in ("batch", "rate", "natural_rate", "block", "halving") if k in other
    }
    other = {"inducing": 15} | other
    model = MTGPA.build(data, likelihoods, 1, g, natural=scheme == "natural", **other)
    return MTGPATrainer(model, data, g, scheme, **train)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "steps"), [("adam", 250), ("natural", 80), ("em", 300)])
def test_a_second_task_is_predicted_where_it_has_no_data(scheme, steps):
    training = _start(scheme, rate=0.05, natural_rate=0.7)
    first = training.step()
    for _ in range(steps):
        last = training.step()
    assert last > first + 50
    model = training.model
    x = torch.linspace(5, 15, 21, dtype=torch.float64).unsqueeze(1)
    got = model.predict(x, 1)
    truth = 0.5 - 1.5 * torch.sin(x[:, 0])
    assert (got.mean - truth).square().mean().item() < 0.05 * truth.var().item()
    B = model.prior.matrices()[0]
    assert (B[0, 1] / B[0, 0]).item() == pytest.approx(-1.5, rel=0.15)
    # A constant of the latent function is any offset's part, but for this one sum of theirs.
    assert (model.prior.offset @ torch.tensor([1.5, 1.0]).double()).item() == pytest.approx(
        0.5, abs=0.15
    )
    agreement = model.aggregate_check(training.data)
    assert agreement.within() > 0.85
    odd = training.data._replace(y=training.data.y + torch.eye(len(training.data.y))[3].double())
    assert model.aggregate_check(odd).error[3].abs().item() > 4


def test_counts_and_signs_share_a_function():
    data = _counts()
    training = _start("natural", data, ("poisson", "bernoulli"), lengthscale=4.0, natural_rate=0.5)
    values = [training.step() for _ in range(60)]
    assert values[-1] > values[0] + 5
    x = data.supports[:40]
    expected = torch.exp(torch.sin(x.mean(1) / 4))
    rate = training.model.predict(x, 0)
    assert torch.corrcoef(torch.stack([rate.mean, expected]))[0, 1].item() > 0.8
    doubled = training.model.predict(x, 0, exposure=2 * torch.ones(40).double())
    torch.testing.assert_close(doubled.mean, 2 * rate.mean)
    signs = training.model.predict(x, 1)
    torch.testing.assert_close(signs.variance + signs.noise, signs.mean * (1 - signs.mean))
    assert len(training.model.predict(x[:0], 0).mean) == 0
    counts = training.model.log_predictive(data.of_task(0))
    density = training.model.log_predictive(data)
    torch.testing.assert_close(density[:40], counts)
    assert bool((density < 0).all())
    assert density.mean().item() > -1.5


def test_noise_that_varies_is_found():
    g = torch.Generator().manual_seed(0)
    x = torch.rand(150, 1, generator=g, dtype=torch.float64) * 10
    deviation = torch.where(x[:, 0] < 5, 0.05, 0.7)
    y = torch.sin(x[:, 0]) + deviation * torch.randn(150, generator=g, dtype=torch.float64)
    data = Data(boxes(x, x), y, torch.zeros(150, dtype=torch.long))
    training = _start(
        "natural", data, ("heteroscedastic",), ranks=(2,), rate=0.05, natural_rate=0.3
    )
    for _ in range(140):
        training.step()
    noise = training.model.predict(torch.tensor([[2.0], [8.0]]).double(), 0).noise
    assert noise[1].item() > 20 * noise[0].item()


def test_a_natural_step_that_would_leave_the_positive_definite_matrices_is_halved():
    training = _start("natural")
    training.step()
    (latent,) = training.model.latents
    vector, matrix = latent.variational_parameters()
    vector.grad = torch.zeros_like(vector)
    matrix.grad = 1.5 * matrix.detach()  # a whole step would turn the sign of the precision
    before = matrix.detach().clone()
    latent.natural_step(1.0)
    torch.testing.assert_close(matrix.detach(), 0.25 * before)
    matrix.grad = torch.full_like(matrix, torch.nan)
    latent.natural_step(1.0)
    torch.testing.assert_close(matrix.detach(), 0.25 * before)


def test_minibatches_are_unbiased():
    training = _start(batch=7)
    whole = training.model.elbo(training.data).item()
    with torch.no_grad():
        draws = [training.model.elbo(*training.draw()).item() for _ in range(200)]
    estimate = torch.tensor(draws)
    assert abs(estimate.mean().item() - whole) < 4 * estimate.std().item() / 200**0.5
    rows, weight = training.draw()
    assert [len(rows.of_task(d).y) for d in (0, 1)] == [7, 7]
    assert weight.sum().item() == pytest.approx(len(training.data.y))


def test_a_fitted_model_is_its_state():
    training = _start("natural")
    for _ in range(3):
        training.step()
    x = torch.tensor([[1.0, 1.0], [2.0, 4.5]]).double()
    expected = training.model.predict(x, 1)
    inducing = torch.zeros(15, 1).double()
    fresh = MTGPA(["gaussian", "gaussian"], inducing, 1, natural=True)
    fresh.predict(x, 1)  # what was remembered from other parameters is forgotten
    fresh.load_state_dict(training.model.state_dict())
    for ours, theirs in zip(fresh.predict(x, 1), expected):
        assert torch.equal(ours, theirs)


def test_em_moves_one_part_at_a_time():
    training = _start("em", block=2)
    model = training.model
    for phase in ("q", "rest", "q"):
        before = {k: v.clone() for k, v in model.named_parameters()}
        for _ in range(2):
            training.step()
        moved = {k for k, v in model.named_parameters() if not torch.equal(v, before[k])}
        assert moved
        assert all(("_variational_distribution" in k) == (phase == "q") for k in moved)


def test_the_rate_halves_as_told():
    training = _start("natural", halving=10, rate=0.04)
    for expected in (0.04, 0.04 * 0.5**0.1):
        training.step()
        assert training.optimizers[0].param_groups[0]["lr"] == pytest.approx(expected)


def test_what_is_fixed_stays():
    training = _start(lengthscale=1.3, fixed_lengthscale=True, offsets=False)
    for _ in range(3):
        training.step()
    prior = training.model.prior
    assert prior.lengthscales().item() == pytest.approx(1.3)
    assert prior.offset.abs().max().item() == 0


def test_inducing_points_are_where_the_supports_are():
    g = torch.Generator().manual_seed(0)
    lower = torch.rand(300, 2, generator=g, dtype=torch.float64) * torch.tensor([60.0, 4.0])
    cells = boxes(lower, lower + 0.5)
    for place in ("kmeans", "even"):
        Z = inducing_points(cells, 2, 50, place, g)
        assert Z.shape[1] == 2
        assert 30 <= len(Z) <= 50
        assert bool((lower.amin(0) <= Z).all() & (lower.amax(0) + 0.5 >= Z).all())
    line = boxes(lower[:, :1], lower[:, :1] + 6)
    Z = inducing_points(line, 1, 200, "even", g)
    torch.testing.assert_close(Z[1:] - Z[:-1], (Z[1] - Z[0]).expand(199, 1))
    bags = weighted_points(torch.rand(40, 3, 2, generator=g, dtype=torch.float64))
    assert inducing_points(bags, 2, 5, "kmeans", g).shape == (5, 2)


def test_tasks_start_with_the_sign_of_their_correlation():
    def started(data):
        trends = [data.of_task(d).y.unsqueeze(0) for d in (0, 1)]
        return torch.cat(signs(data, 1, trends)).tolist()

    data = _two_tasks()
    assert started(data) == [1, -1]
    agreeing = data._replace(y=torch.where(data.task == 1, -data.y, data.y))
    assert started(agreeing) == [1, 1]
    noise = torch.randn(45, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert started(data._replace(y=noise)) == [1, 1]


def test_jitter_that_grows_is_noted_once():
    """Inducing points on one spot, and a kernel that is flat over them."""
    training = _start(inducing=torch.zeros(400, 1).double(), lengthscale=1e6)
    training.model.latents[0].jitter_val = 0.0
    for _ in range(3):
        training.step()
    assert len(training.notes) == 1
    assert "jitter" in training.notes[0]


def test_a_model_that_is_lost_says_so_by_a_bound_that_is_no_number():
    for broken in ("prior.kernels.0.raw_lengthscale", "prior.mixing"):
        training = _start("natural")
        training.step()
        training.model.get_parameter(broken).data.fill_(torch.nan)
        assert math.isnan(training.step())


def test_bad_arguments_are_named():
    data = _two_tasks()
    g = torch.Generator()
    with pytest.raises(BadInput, match="Task 2 has no observation"):
        MTGPA.build(data, ["gaussian"] * 3, 1, g)
    bad = torch.zeros(45).double()
    bad[3] = torch.nan
    for replaced, sentence in (
        ({"y": bad}, "Row 3 of task 0 has a value"),
        ({"exposure": bad}, "Row 0 of task 0 has an exposure"),
        ({"task": data.task + 1}, "Row 30 of task 2 has a task"),
        ({"supports": torch.full((45, 2), torch.inf).double()}, "Row 0 of task 0 has a support"),
    ):
        with pytest.raises(BadInput, match=sentence):
            MTGPA.build(data._replace(**replaced), ["gaussian"] * 2, 1, g)
    with pytest.raises(BadInput, match="stay fixed"):
        MTGPA(["gaussian"], data.supports, 1, learn_inducing=True)
    with pytest.raises(BadInput, match="Task 0 is of counts"):
        MTGPA.build(data, ["poisson", "gaussian"], 1, g)
    with pytest.raises(BadInput, match="no task"):
        MTGPA([], torch.zeros(1, 1).double(), 1)
    with pytest.raises(BadInput, match="rank"):
        MTGPA(["gaussian"], torch.zeros(1, 1).double(), 1, ranks=())
    with pytest.raises(BadInput, match="at least one inducing"):
        MTGPA.build(data, ["gaussian"] * 2, 1, g, inducing=0)
    with pytest.raises(BadInput, match="'kmeans', 'even' or 'inside'"):
        MTGPA.build(data, ["gaussian"] * 2, 1, g, place="random")
    model = MTGPA.build(data, ["gaussian"] * 2, 1, g)
    for bad in ({"scheme": "sgd"}, {"scheme": "natural"}, {"batch": 0}):
        with pytest.raises(BadInput):
            MTGPATrainer(model, data, g, **bad)
