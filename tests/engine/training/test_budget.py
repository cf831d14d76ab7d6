"""All phases of a fit end with its time budget: nothing is begun that would not end in time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from scant.evaluate import compare
from scant.events import Checkpoint, Finished, Metric, Progress, Report
from scant.learners.tool import tool
from scant.predictive import MixturePredictive
from scant.problem import Comparison, Problem
from scant.studies import STUDIES, entry
from scant.studies.protocol import Study, study_class
from scant.training.control import Control
from scant.training.loop import train
from tests.engine.studies.cases import CASES, FIRST

BUDGETED = [study for study in STUDIES if "time_budget" in entry(study).settings.names()]
WITH_OTHERS: dict[str, dict[str, Any]] = {
    "genes": {"model": "stack"},
    "mitosis": {"classifier": "latent variables"},
}
# Other methods that cost nothing: they are there when training has ended, or are a line.
FREE = {
    "redshift": {"linear regression"},
    "genes": {"HGP", "DHGP", "HMOGP-LV", "independent GPs"},
}


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def timed(toy: str, clock: Clock, step: float = 0.0, after: float = 0.0) -> Study:
    """A study whose steps and whose work after them take so long; its problem is a line."""
    made = study_class(toy)(entry(toy).settings(max_steps=4), None, torch.device("cpu"))
    taken = made.step

    def slow_step() -> Any:
        clock.now += step
        return taken()

    def finalize(kept: Any) -> Report:
        clock.now += after
        return Report((Metric("this run", "RMSE", 1.0),))

    x = np.random.default_rng(0).normal(size=(40, 2))
    own = MixturePredictive.gaussian(x[30:, 1], None)
    problem = Problem(x[:30], x[:30, 0], x[30:], x[30:, 0], ("RMSE",))
    made.step, made.finalize = slow_step, finalize  # type: ignore[method-assign]
    made.comparison = lambda report: Comparison(problem, own)  # type: ignore[method-assign]
    return made


@pytest.fixture
def slow_rivals(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock, by which each of five rivals takes ten seconds for each problem."""
    clock = Clock()

    def ask(x: Any, y: Any, asked: Any) -> Any:
        clock.now += 10.0
        return asked[:, 0], None

    tools = [tool(f"r{k}", ask, "") for k in range(5)]
    monkeypatch.setattr(compare, "general_tools", lambda classes: tools)
    monkeypatch.setattr(compare, "forest_seconds", lambda *size: math.inf)
    return clock


@pytest.mark.parametrize(
    ("step", "after", "folds", "rivals"),
    [
        (1.0, 2.0, 1 + 4, 1),  # folds of 6 s each; a rival takes 50 s for them
        (5.0, 31.0, 1, 4),  # a fold is expected to take 25.5 s, and may take 24.5
        (5.0, 55.0, 1, 2),
        (5.0, 90.0, 1, 1),  # one in any case
        (40.0, 10.0, 1, 1),  # ended by the clock after two steps
    ],
)
def test_folds_and_rivals_take_what_search_and_report_have_left(
    toy: str, slow_rivals: Clock, step: float, after: float, folds: int, rivals: int
) -> None:
    clock = slow_rivals

    def further() -> Iterator[Study]:
        for _ in range(4):
            yield timed(toy, clock, step, after)

    study = timed(toy, clock, step, after)
    *_, end = train(study, clock=clock, own=True, budget=100.0, folds=further)
    assert isinstance(end, Finished)
    assert end.report.verdict is not None
    assert end.report.verdict.folds == folds
    assert len(end.report.verdict.seconds) - 1 == rivals
    if after < 90:
        assert clock.now <= 100.0


def test_a_resumed_fit_has_the_time_that_is_left(toy: str, slow_rivals: Clock) -> None:
    clock, control = slow_rivals, Control()
    blob = b""
    for event in train(timed(toy, clock, 15.0), control, clock=clock, own=True, budget=100.0):
        if isinstance(event, Progress) and event.step == 2:
            control.wish = "pause"
        blob = event.blob if isinstance(event, Checkpoint) else blob
    clock.now += 1e6
    study = timed(toy, clock, 15.0)
    *_, end = train(study, checkpoint=blob, clock=clock, own=True, budget=100.0)
    assert isinstance(end, Finished)
    assert end.report.verdict is not None
    assert len(end.report.verdict.seconds) - 1 == 3  # 60 s of steps have left 40


def test_a_fit_on_everything_ends_with_the_same_budget(toy: str) -> None:
    clock = Clock()
    first, second = timed(toy, clock, 15.0, 10.0), timed(toy, clock, 15.0, 5.0)
    second.metadata = {**second.metadata, "rows": {"training": 40}}
    events = train(first, clock=clock, again=lambda: second, budget=100.0)
    restarts = [event.restart for event in events if isinstance(event, Progress)]
    assert restarts == [0, 0, 0, 1, 1, 1]  # 70 % of 55 s, and 80 % of the other 45
    assert clock.now == 105.0  # a step that has begun ends, and what follows it is short


@pytest.mark.parametrize("study", BUDGETED)
def test_nothing_optional_is_begun_when_the_time_is_used(study: str) -> None:
    clock, asked = Clock(), []
    made = CASES[FIRST[study]].make(
        **{"baselines": True} if "baselines" in entry(study).settings.names() else {},
        **WITH_OTHERS.get(study, {}),
    )
    finalize = made.finalize

    def late(kept: Any) -> Report:
        clock.now = 1000.0
        return finalize(kept)

    def folds() -> Iterator[Study]:
        asked.append("a fold")
        yield made

    made.finalize = late  # type: ignore[method-assign]
    *_, end = train(made, clock=clock, own=True, budget=60.0, folds=folds)
    assert isinstance(end, Finished)
    others = {m.method for m in end.report.metrics if m.source == "baseline"}
    assert others <= FREE.get(study, set())
    assert end.report.verdict is not None
    assert len(end.report.verdict.seconds) <= 1 + compare.ALWAYS
    assert not asked
    left_out = [n for n in end.report.notes if n.startswith("Left out, to keep to the time budget")]
    assert len(left_out) == 1
