"""The stopping rule of all training loops, and the loop without events."""

from __future__ import annotations

import math

import pytest

from scant.optim.ascent import Convergence, maximize


class Scripted:
    """Trainer whose ELBOs are given; it stalls after the last one."""

    def __init__(self, *elbos: float) -> None:
        self.elbos, self.steps, self.notes = elbos, 0, list[str]()

    @property
    def stalled(self) -> bool:
        return self.steps == len(self.elbos)

    def step(self) -> float:
        self.steps += 1
        return self.elbos[self.steps - 1]

    def state_dict(self) -> dict:
        return {}

    def load_state_dict(self, state: dict) -> None:
        self.steps = 0


def test_gains_below_the_tolerance_accumulate_until_they_count() -> None:
    rule = Convergence()
    gains = [rule.gains(score, 1.0) for score in (0.0, 0.6, 1.2, 1.8, 2.3, math.nan)]
    assert gains == [True, False, True, False, True, False]
    assert (rule.anchor, rule.since_best) == (2.3, 1)


@pytest.mark.parametrize(("patience", "reached"), [(0, False), (1, True), (3, True), (4, False)])
def test_it_has_converged_after_so_many_steps_without_a_gain(patience: int, reached: bool) -> None:
    rule = Convergence()
    for score in (5.0, 4.0, 5.0, 5.1):
        rule.gains(score, 0.2)
    assert rule.reached(patience) is reached


@pytest.mark.parametrize(
    ("elbos", "steps", "expected"),
    [
        ((1.0, 2.0, 3.0), 2, [1.0, 2.0]),
        ((1.0, 2.0), 9, [1.0, 2.0]),
        ((1.0, math.nan, 2.0), 9, [1.0]),
        ((-math.inf, 2.0), 9, []),
        ((1.0, 2.0), 0, []),
    ],
    ids=["limit", "stalled", "nan", "infinite", "no steps"],
)
def test_training_ends_at_the_limit_when_stalled_and_where_the_elbo_is_not_finite(
    elbos: tuple[float, ...], steps: int, expected: list[float]
) -> None:
    assert maximize(Scripted(*elbos), steps) == expected


def test_training_ends_after_the_step_that_its_caller_ends_it_at() -> None:
    trainer = Scripted(1.0, 2.0, 3.0, 4.0)
    assert maximize(trainer, 9, lambda elbo: elbo > 1.5) == [1.0, 2.0]
    assert trainer.steps == 2
