"""A checkpoint has a size limit: beyond it histories are left out, then checkpoints are rarer."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from safetensors.torch import load

import scant
from scant.events import Checkpoint, Event, Finished, Note, Progress
from scant.training import loop, search
from scant.training.checkpoint_format import header
from scant.training.control import Control

VALUES: dict[str, Any] = {
    "n_basis": 5,
    "covariance": "VD",
    "restarts": 1,
    "max_steps": 12,
    "start": "direct",
    "stack": False,
    "missing": "integrate",
    "training_size": 100,
    "test_size": 30,
}


def _paused(step: int, checkpoint: bytes | None = None) -> list[Event]:
    control = Control()
    events = []
    for event in scant.fit("redshift", control=control, checkpoint=checkpoint, **VALUES):
        events.append(event)
        if isinstance(event, Progress) and event.step == step:
            control.pause()
    return events


def _checkpoint(events: list[Event]) -> bytes:
    return next(e.blob for e in events if isinstance(e, Checkpoint))


def test_a_large_checkpoint_lacks_histories_and_the_resumed_run_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = _checkpoint(_paused(6))
    assert any(name.endswith("old_dirs") for name in load(whole))
    assert header(whole, "loop")["bitwise"]
    monkeypatch.setattr(search, "MAX_CHECKPOINT_BYTES", len(whole) - 5000)
    slim = _checkpoint(_paused(6))
    left_out = load(whole).keys() - load(slim).keys()
    assert {name.rsplit(".", 1)[-1] for name in left_out} == {"old_dirs", "old_stps", "ro"}
    assert len(slim) <= search.MAX_CHECKPOINT_BYTES
    for blob, said in ((whole, False), (slim, True)):
        rest = list(scant.fit("redshift", checkpoint=blob, **VALUES))
        assert (Note(search.NOT_BITWISE) in rest) is said
        steps = [e for e in rest if isinstance(e, Progress)]
        assert [e.step for e in steps] == list(range(7, 13))
        assert steps[-1].elbo > steps[0].elbo
        assert isinstance(rest[-1], Finished)
        assert rest[-1].report.metrics


def test_checkpoints_that_stay_large_are_made_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(limit: int) -> int:
        monkeypatch.setattr(search, "MAX_CHECKPOINT_BYTES", limit)
        ticks = itertools.count(0.0, 2.0)  # each look at the clock finds it two seconds later
        run = scant.fit("redshift", **{**VALUES, "max_steps": 40})
        events = loop.train(run.study, clock=lambda: next(ticks))
        return sum(isinstance(event, Checkpoint) for event in events)

    often, rarely = made(1 << 26), made(1 << 8)
    assert often > 5
    assert rarely <= often / 10
