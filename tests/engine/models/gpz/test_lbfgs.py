"""The L-BFGS stepper: minima, evaluations, resuming, walls."""

import torch
from torch import nn

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
