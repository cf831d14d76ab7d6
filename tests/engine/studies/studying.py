"""What the tests of all studies do alike."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pandas as pd

from scant.events import Checkpoint, Event, Fitted, Progress, Report
from scant.reproduce.results import Compare, Results
from scant.reproduce.stored import FinishedRun
from scant.studies import entry
from scant.studies.protocol import Study
from scant.studies.reproduction import Runs, Score
from scant.training.control import Control
from scant.training.loop import train

# What a study's tests mean where they name no setting; the rest is as in the study's presets.
QUICK: dict[str, dict[str, Any]] = {
    "aggregation": {
        "inference": "variational", "n_inducing": 40, "max_steps": 60, "patience": 0,
        "fine_rows": 60,
    },
    "redshift": {
        "training_size": 60, "validation_size": 20, "test_size": 40, "n_basis": 3, "max_steps": 6,
        "restarts": 2,
    },
    "genes": {"n_inducing_inputs": 12, "max_steps": 12, "patience": 0, "baselines": False},
    "omniglot": {
        "n_latent": 3, "n_inducing": 12, "max_steps": 6, "batch_size": 20, "baselines": False,
        "calibrate": False,
    },
    "mitosis": {
        "test_share": 0.4, "n_shared_dims": 1, "n_private_dims": 2, "n_inducing": 6,
        "n_components": 8, "imbalance": 3, "max_steps": 6, "baselines": False,
    },
    "multiview": {
        "training_share": 0.5, "max_steps": 15, "n_inducing": 8, "baselines": False, "repeats": 1,
    },
    "clamp": {
        "start": 20, "budget": 50, "batch_size": 10, "repeats": 2, "n_components": 5,
    },
}  # fmt: skip


def settings(study: str, **values: Any) -> Any:
    """Settings of a study that its tests take; those of its presets do not vary with the table."""
    place = import_module(f"scant.studies.{study}.{'entry' if study == 'clamp' else 'settings'}")
    return entry(study).settings.parse({**getattr(place, "FIXED", {}), **QUICK[study], **values})


def run(study: Study) -> Report:
    """Train a study to its end; it is fitted afterwards."""
    *_, last = train(study)
    return last.report


def value(report: Report, name: str, method: str = "this run") -> float:
    """A figure of the report."""
    return next(m.value for m in report.metrics if m.name == name and m.method == method)


def gathered(study: str, runs: Runs, compare: Compare = lambda scores: ()) -> pd.DataFrame:
    """The table that the runs of a study's `reproduce` come to."""
    result, keys = Results(study, compare), set()
    for run in runs:
        assert run.key not in keys  # else one of the two would not be done again
        keys.add(run.key)
        scores = [score for score in run.scores() if isinstance(score, Score)]
        result.add(FinishedRun(scores, 0.0, {}))
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
