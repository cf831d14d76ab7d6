"""The loop: resumed to the bit, ended in every way it can end, and said so in words."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

import scant
from scant.errors import BadInput
from scant.events import (
    OPENING,
    Checkpoint,
    Event,
    Finished,
    Fitted,
    Note,
    Phase,
    Progress,
    Snapshot,
    Started,
    State,
)
from scant.studies.protocol import study_class
from scant.training.checkpoint_format import header
from scant.training.control import Control
from scant.training.loop import OPENING_SECONDS, SNAPSHOT_SECONDS, choose_device, train
from scant.training.search import Search

pytestmark = pytest.mark.usefixtures("toy")


def of(kind: type, events: Iterable[Event]) -> list[Any]:
    return [e for e in events if isinstance(e, kind)]


def curve(events: Iterable[Event]) -> list[tuple]:
    """All of the steps but their times."""
    return [(p.step, p.restart, p.elbo, p.best, p.score) for p in of(Progress, events)]


def run_until(step: int, wish: str, checkpoint: bytes | None = None, **values: Any) -> list[Event]:
    """The events of a run to which something is wished after a step (0: before the first)."""
    control = Control(wish if step == 0 else None)
    events = []
    for event in scant.fit("toy", control=control, checkpoint=checkpoint, **values):
        events.append(event)
        if isinstance(event, Progress) and event.step == step:
            control.wish = wish
    return events


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("step", [0, 1, 4, 5, 12, 13, 20, 23])
def test_a_resumed_run_ends_bit_by_bit_where_an_uninterrupted_one_ends(
    step: int, stages: int
) -> None:
    # Step 12 is the seam of the restarts; with three stages each restart has seams at 4 and 8.
    values = {"max_steps": 12, "restarts": 2, "seed": 3, "stages": stages}
    whole = list(scant.fit("toy", **values))
    first = run_until(step, "pause", **values)
    assert of(Finished, first)[0].state is State.PAUSED
    (checkpoint,) = of(Checkpoint, first)
    rest = list(scant.fit("toy", checkpoint=checkpoint.blob, **values))
    assert of(Started, rest)[0].step == step == checkpoint.step
    assert curve(first) + curve(rest) == curve(whole)
    assert of(Fitted, rest) == of(Fitted, whole)
    assert of(Finished, rest)[0].reason == of(Finished, whole)[0].reason


def test_a_run_paused_at_every_step_is_still_the_same_run() -> None:
    values = {"max_steps": 6, "restarts": 2}
    events: list[Event] = []
    blob = None
    for step in range(1, 12):
        part = run_until(step, "pause", checkpoint=blob, **values)
        blob = of(Checkpoint, part)[0].blob
        events += part
    events += scant.fit("toy", checkpoint=blob, **values)
    assert curve(events) == curve(scant.fit("toy", **values))


def test_a_checkpoint_of_an_older_format_is_refused_in_a_sentence() -> None:
    (checkpoint,) = of(Checkpoint, run_until(4, "pause", max_steps=12))
    words = header(checkpoint.blob, "loop")
    del words["format"]  # as before it was written
    old = save(load(checkpoint.blob), metadata={"loop": json.dumps(words)})
    with pytest.raises(BadInput, match="under another version of Scant"):
        list(scant.fit("toy", checkpoint=old, max_steps=12))


def test_what_a_restart_notes_as_it_starts_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = study_class("toy")
    start = kind.start_restart

    def noted(self: Any, restart: int, *where: Any) -> None:
        start(self, restart, *where)
        self.notes.append(f"Restart {restart} starts.")

    monkeypatch.setattr(kind, "start_restart", noted)
    events = scant.fit("toy", max_steps=3, restarts=2)
    notes = [note.text for note in of(Note, events)]
    assert notes[1:3] == ["Restart 0 starts.", "Restart 1 starts."]
    assert len(set(notes)) == len(notes)


def test_a_checkpoint_taken_by_the_clock_serves_as_well_as_one_of_a_pause() -> None:
    ticks = itertools.count()
    study = scant.fit("toy", max_steps=20).study
    events = list(train(study, clock=lambda: float(next(ticks))))
    taken = of(Checkpoint, events)
    assert len(taken) > 1
    whole = curve(events)
    for checkpoint in taken:
        rest = scant.fit("toy", max_steps=20, checkpoint=checkpoint.blob)
        assert curve(rest) == whole[checkpoint.step :]


@pytest.mark.parametrize("step", [1, 7, 12, 20])
def test_stop_keeps_the_best_parameters_so_far(step: int) -> None:
    events = run_until(step, "stop", max_steps=12, restarts=2)
    end = events[-1]
    assert end.state is State.STOPPED
    assert str(step) in end.reason
    assert end.report.metrics[0].value == max(p.score for p in of(Progress, events))
    assert len(of(Fitted, events)) == 1
    assert len(curve(events)) == step


def test_stop_before_the_first_step_leaves_no_model_and_says_so() -> None:
    events = run_until(0, "stop")
    assert events[-1].state is State.STOPPED
    assert "no model" in events[-1].reason
    assert not of(Fitted, events)


def test_a_paused_run_can_be_stopped_and_is_then_usable() -> None:
    paused = run_until(9, "pause", max_steps=12)
    blob = of(Checkpoint, paused)[0].blob
    events = run_until(0, "stop", checkpoint=blob, max_steps=12)
    assert not curve(events)
    assert events[-1].state is State.STOPPED
    assert events[-1].report.metrics[0].value == max(p.score for p in of(Progress, paused))


def test_stop_at_the_last_step_still_ends() -> None:
    assert run_until(12, "stop", max_steps=12)[-1].state in (State.STOPPED, State.HIT_LIMIT)


@pytest.mark.parametrize("wish", ["pause", "stop"])
def test_a_wish_is_answered_after_the_step_in_hand(wish: str) -> None:
    assert len(curve(run_until(4, wish, max_steps=1000))) == 4


def test_divergence_is_shown_where_it_happened_and_the_last_good_model_is_kept() -> None:
    events = list(scant.fit("toy", nan_at=5))
    steps = of(Progress, events)
    assert math.isnan(steps[-1].elbo)
    assert [p.step for p in steps] == [1, 2, 3, 4, 5]
    assert all(math.isfinite(p.elbo) for p in steps[:-1])
    end = events[-1]
    assert end.state is State.DIVERGED
    assert not end.state.usable
    assert "step 5" in end.reason
    assert "last good parameters" in end.reason
    assert end.report.metrics[0].value == max(p.score for p in steps[:-1])


def test_divergence_at_once_leaves_no_model() -> None:
    events = list(scant.fit("toy", nan_at=1))
    assert events[-1].state is State.DIVERGED
    assert not of(Fitted, events)


def test_converged_and_hit_limit_are_told_apart_in_words() -> None:
    limit = list(scant.fit("toy", max_steps=8))[-1]
    assert limit.state is State.HIT_LIMIT
    assert "after 8 steps" in limit.reason
    assert "Not converged" in limit.reason
    events = list(scant.fit("toy", max_steps=5000, patience=20))
    assert events[-1].state is State.CONVERGED
    assert "20 steps" in events[-1].reason
    assert len(curve(events)) < 5000


def test_a_schedule_that_has_come_to_rest_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_class("toy"), "scheduled", True)
    rest = list(scant.fit("toy", max_steps=8, restarts=2))[-1]
    assert rest.state is State.FINISHED
    assert "All 8 steps of the learning-rate schedule are done" in rest.reason
    early = list(scant.fit("toy", max_steps=5000, patience=20))[-1]
    assert early.state is State.CONVERGED
    assert "20 steps" in early.reason


def test_a_study_that_knows_why_it_is_done_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_class("toy"), "reason", "It waits for you.")
    end = list(scant.fit("toy", max_steps=8))[-1]
    assert end.state is State.CONVERGED
    assert end.reason == "It waits for you."


def test_one_restart_that_hits_the_limit_is_enough_not_to_have_converged() -> None:
    events = list(scant.fit("toy", max_steps=60, patience=12, restarts=3, seed=2))
    lengths = [sum(p.restart == r for p in of(Progress, events)) for r in range(3)]
    expected = State.HIT_LIMIT if max(lengths) == 60 else State.CONVERGED
    assert len(set(lengths)) > 1  # else the test shows nothing
    assert events[-1].state is expected


def test_restarts_differ_and_the_best_of_them_is_kept() -> None:
    events = list(scant.fit("toy", max_steps=6, restarts=3))
    steps = of(Progress, events)
    assert [p.restart for p in steps] == [0] * 6 + [1] * 6 + [2] * 6
    assert [p.step for p in steps] == list(range(1, 19))
    assert len({p.score for p in steps[::6]}) == 3
    assert all(p.best == p.score for p in steps[::6])  # the best begins anew with each restart
    assert events[-1].report.metrics[0].value == max(p.score for p in steps)


def test_the_stream_has_the_form_that_watchers_rely_on() -> None:
    events = list(scant.fit("toy", max_steps=5, restarts=2))
    assert events[0] == Started(
        "cpu", 10, 0, {"axes": ["a", "b", "c"], "threads": torch.get_num_threads()}
    )
    assert of(Note, events) == [Note("The toy is a toy.")]
    assert [type(e) for e in events[2:5]] == [Snapshot, Progress, Snapshot]
    assert [e.step for e in events[2:5]] == [0, 1, 1]  # the prior, then the first step at once
    assert [type(e) for e in events[-3:]] == [Snapshot, Fitted, Finished]


def test_the_beginning_is_shown_step_by_step_whatever_the_clock_says() -> None:
    study = scant.fit("toy", max_steps=30).study
    shots = of(Snapshot, train(study, clock=lambda: 0.0))
    assert [shot.step for shot in shots[:-1]] == [*(s for s in OPENING if s <= 30), 30]
    study.start_restart(0, 0, None)
    assert (shots[0].arrays["mean"] == study.snapshot()["mean"]).all()  # the prior
    assert (shots[0].arrays["mean"] != shots[1].arrays["mean"]).all()


def test_slow_snapshots_are_rare_at_the_beginning_too() -> None:
    now = [0.0]
    study = scant.fit("toy", max_steps=30).study
    snapshot = study.snapshot

    def slow_snapshot() -> Any:
        now[0] += 0.6 * OPENING_SECONDS
        return snapshot()

    study.snapshot = slow_snapshot
    shots = of(Snapshot, train(study, clock=lambda: now[0]))
    assert [shot.step for shot in shots] == [0, 1, 30, 30]


def test_snapshots_change_no_number() -> None:
    study = scant.fit("toy", max_steps=12, restarts=2).study
    search, steps = Search(study, math.inf), []
    while not search.over:
        steps.append(search.step())
        if ending := search.ending():
            search.advance(ending)
    events = list(scant.fit("toy", max_steps=12, restarts=2))
    assert len(of(Snapshot, events)) > len(steps) / 2
    assert [(p.elbo, p.score) for p in of(Progress, events)] == steps


def test_what_follows_the_steps_is_told_as_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, finalize = study_class("toy"), study_class("toy").finalize

    def slow(self: Any, kept: list) -> Any:
        for _ in self.deadline.units("ab", label="comparing with 2 other methods"):
            pass
        return finalize(self, kept)

    monkeypatch.setattr(kind, "finalize", slow)
    assert of(Phase, scant.fit("toy", max_steps=4)) == [Phase("making the report")]
    control, told = Control(), list[Event]()
    control.tell = told.append
    for event in scant.fit("toy", max_steps=4, control=control):
        told.append(event)
    assert [(p.name, p.done, p.total) for p in of(Phase, told)] == [
        ("making the report", 0, 0),
        ("comparing with 2 other methods", 0, 2),
        ("comparing with 2 other methods", 1, 2),
    ]
    assert isinstance(told[-1], Finished)


def test_snapshots_come_by_the_clock() -> None:
    now = [0.0]
    study = scant.fit("toy", max_steps=100).study
    step = study.step

    def slow_step() -> Any:
        now[0] += 0.3
        return step()

    study.step = slow_step
    count = len(of(Snapshot, train(study, clock=lambda: now[0])))
    every = math.ceil(SNAPSHOT_SECONDS / 0.3)
    assert abs(count - 100 / every) <= 3


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    assert curve(scant.fit("toy", seed=5)) == curve(scant.fit("toy", seed=5))
    assert curve(scant.fit("toy", seed=5)) != curve(scant.fit("toy", seed=6))


def test_a_fitted_study_can_be_restored_from_its_blob() -> None:
    from scant.training.api import restore

    run = scant.fit("toy", max_steps=5)
    blob = of(Fitted, run)[0].blob
    again = restore("toy", {"max_steps": 5}, blob)
    assert (again.explore("shifted", by=1.0)["mean"] == run.study.snapshot()["mean"] + 1).all()


def test_a_device_that_is_not_there_is_a_sentence() -> None:
    import torch

    assert choose_device("cpu").type == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(BadInput, match="no CUDA device"):
            choose_device("cuda")
