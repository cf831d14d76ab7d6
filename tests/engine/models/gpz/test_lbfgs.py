"""The L-BFGS stepper: minima, evaluations, resuming, walls."""

import torch
from torch import nn

from scant.models.gpz.log_evidence import LogEvidence
from scant.models.gpz.model import GPz
from scant.optim.lbfgs import LBFGS


def _rosenbrock(start=(-1.2, 1.0), history=10):
    x = nn.Parameter(torch.tensor(start, dtype=torch.float64))
    calls = []

    def objective():
        calls.append(x.detach().clone())
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    return x, LBFGS([x], objective, history), calls


def test_finds_the_minimum_and_says_so():
    x, optimizer, _ = _rosenbrock()
    for _ in range(200):
        value = optimizer.step()
        if optimizer.stalled:
            break
    assert optimizer.stalled
    assert value < 1e-12
    torch.testing.assert_close(x.detach(), torch.ones(2, dtype=torch.float64))


def test_no_point_is_evaluated_twice():
    _, optimizer, calls = _rosenbrock()
    values = [optimizer.step() for _ in range(25)]
    assert optimizer.evaluations == len(calls) == len({tuple(c.tolist()) for c in calls})
    assert values == sorted(values, reverse=True)


def _gpz(seed=0):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(200, 2, generator=g, dtype=torch.float64)
    y = torch.sin(2 * X[:, 0]) + 0.1 * torch.randn(200, generator=g, dtype=torch.float64)
    model = GPz(2, 6)
    model.init_from_data(X, y, g)
    return model, LBFGS(model.parameters(), lambda: -LogEvidence(model, X, y)(), history=5)


def test_a_resumed_run_ends_bit_by_bit_where_an_uninterrupted_one_does():
    for pause in (0, 1, 2, 9):
        model, optimizer = _gpz()
        for _ in range(pause):
            optimizer.step()
        parameters = {k: v.clone() for k, v in model.state_dict().items()}
        state = optimizer.state_dict()
        assert all(isinstance(v, torch.Tensor) for v in state.values())
        through = [optimizer.step() for _ in range(12)]
        resumed = LBFGS(model.parameters(), optimizer.objective, history=5)
        model.load_state_dict(parameters)
        resumed.load_state_dict(state)
        assert [resumed.step() for _ in range(12)] == through
        assert resumed.evaluations == optimizer.evaluations


def test_whole_runs_repeat_bit_by_bit():
    runs = []
    for _ in range(2):
        model, optimizer = _gpz()
        for _ in range(15):
            optimizer.step()
        runs.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*runs))


def test_turns_back_from_values_that_are_not_finite():
    x = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))

    def objective():
        # ln of a negative number beyond the wall at zero; the minimum is at 0.01.
        return (x - 0.01 * x.log()).sum()

    optimizer = LBFGS([x], objective)
    for _ in range(60):
        assert optimizer.step() < 10
    torch.testing.assert_close(x.item(), 0.01, rtol=1e-5, atol=0)


def test_says_nan_where_the_start_is_hopeless():
    x = nn.Parameter(torch.tensor([-1.0], dtype=torch.float64))
    assert LBFGS([x], lambda: x.log().sum()).step() != 0
    assert torch.tensor(LBFGS([x], lambda: x.log().sum()).step()).isnan()
