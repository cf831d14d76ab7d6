"""What the tests of all studies do alike."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from scant.events import Checkpoint, Event, Finished, Fitted, Progress, Report
from scant.reproduce.runner import ScoreTable
from scant.studies.protocol import Study
from scant.studies.reproduction import Runs
from scant.training.control import Control
from scant.training.loop import train


def run(study: Study) -> Report:
    """Train a study to its end; it is fitted afterwards."""
    *_, last = train(study)
    assert isinstance(last, Finished)
    return last.report


def value(report: Report, name: str, method: str = "this run") -> float:
    """A figure of the report."""
    return next(m.value for m in report.metrics if m.name == name and m.method == method)


def gathered(runs: Runs) -> pd.DataFrame:
    """The table that the runs of a study's `reproduce` come to."""
    result = ScoreTable("any")
    for scores in runs:
        result.add(scores, 0.0)
    return result.rows()


def resumed(make: Callable[[], Study], step: int) -> bytes:
    """The fitted model of a run that was paused after a step and resumed.

    It and its curve must be those of a run that nothing interrupted, bit by bit.
    """
    whole = list(train(make()))
    control, first = Control(), []
    for event in train(make(), control):
        first.append(event)
        if isinstance(event, Progress) and event.step == step:
            control.wish = "pause"
    (checkpoint,) = [e.blob for e in first if isinstance(e, Checkpoint)][-1:]
    rest = list(train(make(), checkpoint=checkpoint))
    assert _curve(first) + _curve(rest) == _curve(whole)
    assert _fitted(rest) == _fitted(whole)
    return _fitted(rest)


def _curve(events: list[Event]) -> list[float]:
    return [e.elbo for e in events if isinstance(e, Progress)]


def _fitted(events: list[Event]) -> bytes:
    (blob,) = [e.blob for e in events if isinstance(e, Fitted)]
    return blob
