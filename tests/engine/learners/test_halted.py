"""Stop and pause are heeded between two rivals; nothing that was trained is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import scant
from scant.evaluate import compare
from scant.events import Checkpoint, Event, Finished, Progress, Report, State
from scant.learners.learner import Learner
from scant.learners.tool import tool
from scant.predictive import MixturePredictive
from scant.problem import Comparison, Problem
from scant.training.control import Control

pytestmark = pytest.mark.usefixtures("toy")
X = np.random.default_rng(0).normal(size=(40, 2))
Y = X[:, 0]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, toy: None) -> list[str]:
    """The names of the rivals that were fitted, of two."""
    from toy.study import Study

    fitted: list[str] = []

    def rival(name: str) -> Learner:
        def ask(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            fitted.append(name)
            return np.full(len(new), y.mean()), np.ones(len(new))

        return tool(name, ask, "")

    def comparison(study: Study, report: Report) -> Comparison:
        own = MixturePredictive.gaussian(Y[30:] + 0.1, np.ones(10))
        return Comparison(Problem(X[:30], Y[:30], X[30:], Y[30:], ("RMSE",)), own)

    monkeypatch.setattr(Study, "comparison", comparison)
    monkeypatch.setattr(compare, "general_tools", lambda classes: [rival("first"), rival("second")])
    return fitted


def run(asked: list[str], wish: str, checkpoint: bytes | None = None) -> list[Event]:
    """A run to which something is wished while the first rival is fitted."""

    class Wished(Control):
        @property
        def wish(self) -> str | None:
            return wish if asked else None

        @wish.setter
        def wish(self, value: Any) -> None: ...

    return list(scant.fit("toy", control=Wished(), checkpoint=checkpoint, own=True, max_steps=5))


def end(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_after_a_stop_no_further_rival_is_begun(asked: list[str]) -> None:
    made = end(run(asked, "stop"))
    assert asked == ["first"]
    assert made.state is State.STOPPED  # though its training had ended before
    assert "second was not compared: the run was stopped." in made.report.notes
    assert set(made.report.verdict.seconds) == {"this run", "first"}


def test_a_pause_rests_without_a_result_and_resume_makes_it(asked: list[str]) -> None:
    events = run(asked, "pause")
    assert asked == ["first"]
    assert end(events).state is State.PAUSED
    assert end(events).report == Report()
    blob = [e.blob for e in events if isinstance(e, Checkpoint)][-1]
    asked.clear()
    again = end(list(scant.fit("toy", checkpoint=blob, own=True, max_steps=5)))
    assert asked == ["first", "second"]
    whole = end(list(scant.fit("toy", own=True, max_steps=5)))
    assert again.state is whole.state
    assert again.report.metrics == whole.report.metrics


def test_a_run_stopped_in_training_is_still_compared(asked: list[str]) -> None:
    control, events = Control(), []
    for event in scant.fit("toy", control=control, own=True, max_steps=5):
        events.append(event)
        if isinstance(event, Progress) and event.step == 2:
            control.stop()
    assert end(events).state is State.STOPPED
    assert asked == ["first", "second"]
