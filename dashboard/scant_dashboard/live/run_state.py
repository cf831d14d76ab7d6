"""The in-memory state of one run, shared by all its watchers."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scant.events import (
    OPENING,
    USABLE,
    Event,
    Finished,
    Note,
    Phase,
    Progress,
    Queued,
    Report,
    Results,
    Snapshot,
    Started,
    State,
)
from scant.runs.naming import run_name
from scant.store.sealed import Damaged
from scant.studies import entry
from scant.training.checkpoint_format import OTHER_VERSION, of_other_version

DONE = USABLE - {State.STOPPED}  # ends that nobody asked for, and that can be shown later
OWN = "own"  # key of `RunState.metadata`: whether the run learns a visitor's table


class TraceBuffer:
    """The curve of a run, in growing columns: `trace.step`, `trace.elbo`, …

    Each column is an array of shape (n,), float64 (`step` and `restart` int64), a read-only view.
    `epoch` is incremented whenever points were removed, after which viewers must redraw all.
    """

    COLUMNS = ("step", "elbo", "seconds", "best", "score", "restart")

    def __init__(self) -> None:
        self.epoch = 0
        self._n = 0
        self._data = {
            name: np.empty(256, np.int64 if name in ("step", "restart") else np.float64)
            for name in self.COLUMNS
        }

    def __len__(self) -> int:
        return self._n

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in TraceBuffer.COLUMNS:
            raise AttributeError(name)
        column: np.ndarray = self._data[name][: self._n]
        return column

    def append(self, point: Progress) -> None:
        """Add a point unless its step is already present."""
        if self._n and point.step <= self._data["step"][self._n - 1]:
            return
        if self._n == len(self._data["step"]):
            extra = max(256, self._n)
            self._data = {
                k: np.concatenate([v, np.empty(extra, v.dtype)]) for k, v in self._data.items()
            }
        for name, column in self._data.items():
            column[self._n] = getattr(point, name)
        self._n += 1

    def fill(self, columns: Mapping[str, np.ndarray]) -> None:
        """Set the whole curve, from the store."""
        self._data = {name: np.array(columns[name], self._data[name].dtype) for name in self._data}
        self._n = len(self._data["step"])

    def catch_up(self, longer: TraceBuffer) -> None:
        """Replace the curve by a newer version, which may branch off at an earlier point."""
        prefix = longer.upto(self.step[-1]) if self._n else longer
        same = len(prefix) == self._n and np.array_equal(prefix.elbo, self.elbo, equal_nan=True)
        self.epoch += not (same or self._n == 0)
        self.fill(longer.columns())

    def extended_by(self, later: TraceBuffer) -> TraceBuffer | None:
        """Return a copy extended by a later part, which starts with this curve's last point.

        None if it does not: the run was then resumed from an earlier point.
        """
        if not (self._n and len(later)):
            return None
        last = [float(column[-1]) for column in self.columns().values()]
        first = [float(column[0]) for column in later.columns().values()]
        if not np.array_equal(last, first, equal_nan=True):
            return None
        whole = TraceBuffer()
        whole.fill({k: np.append(v, later.columns()[k][1:]) for k, v in self.columns().items()})
        return whole

    def columns(self) -> dict[str, np.ndarray]:
        """Return all columns by name."""
        return {name: getattr(self, name) for name in self.COLUMNS}

    def cut(self, step: int) -> None:
        """Remove all points after `step`."""
        n = int(np.searchsorted(self.step, step, side="right"))
        if n < self._n:
            self._n = n
            self.epoch += 1

    def upto(self, step: int) -> TraceBuffer:
        """Return a copy that ends at `step`, for replays."""
        part = TraceBuffer()
        part._data = {k: v.copy() for k, v in self._data.items()}
        part._n = int(np.searchsorted(self.step, step, side="right"))
        return part


class RunState:
    """State of a run. Pages read it; only the hub writes.

    Attributes:
        id: The run's id.
        name: What lists, tabs and exports call it (`runs.naming`).
        record: The store's row: study, settings, data name, owner, created, version….
        state: Its state; `reason` explains it in a sentence, or is "".
        position: Position in the queue (None: not queued); `wait` is the estimate in seconds or
            None.
        device: "cpu", "cuda", or "" before the start.
        total_steps: Maximum number of steps; 0 before the start.
        metadata: Labels of the arrays (`events.Started.metadata`), and `OWN`.
        trace: The curve.
        snapshot: The latest snapshot, or None.
        results: The report as far as it is known before its end, or None.
        phase: Current work after the last step, or None.
        opening: The first snapshots, from the prior on, at most one for each step of `OPENING`.
        notes: Notes in order.
        report: The report, or None.
        recorded: Whether it is a demonstration shipped as a recording.
        version: Incremented with every change.
    """

    def __init__(self, run: str, record: Any) -> None:
        self.id = run
        self.name = ""
        self.record = record
        self.state = State.QUEUED
        self.reason = ""
        self.position: int | None = None
        self.wait: float | None = None
        self.device = ""
        self.total_steps = 0
        self.metadata: Mapping[str, Any] = {}
        self.trace = TraceBuffer()
        self.snapshot: Snapshot | None = None
        self.results: Report | None = None
        self.phase: Phase | None = None
        self.opening: list[Snapshot] = []
        self.notes: list[str] = []
        self.report: Report | None = None
        self.recorded = False
        self.version = 0

    def apply(self, events: Sequence[Event]) -> None:
        """Apply a batch of events in order."""
        for event in events:
            self._take(event)
            if isinstance(event, Phase | Progress | Started | Finished):
                self.phase = event if isinstance(event, Phase) else None
        self.version += 1

    def _take(self, event: Event) -> None:
        match event:
            case Progress():
                self.trace.append(event)
            case Snapshot():
                self.snapshot = event
                if event.step in OPENING:
                    self.opening.append(event)
            case Results(report):
                self.results = report
            case Note(text):
                if text not in self.notes:
                    self.notes.append(text)
            case Queued(position, seconds):
                self.state, self.position, self.wait = State.QUEUED, position, seconds
            case Started(device, total, step, metadata):
                self.results = None
                self.state, self.reason, self.position = State.RUNNING, "", None
                self.device, self.total_steps = device, total
                self.metadata = labeled(self.record, metadata)
                self.trace.cut(step)
                self.opening = [shot for shot in self.opening if shot.step < step]
                if self.snapshot is not None and self.snapshot.step > step:
                    self.snapshot = None
            case Finished(state, reason, report):
                self.state, self.reason, self.position = state, reason, None
                if state is not State.PAUSED:
                    self.report = report
            case _ if hasattr(event, "state"):  # a mere change of state, such as "stopping"
                self.state, self.reason = event.state, getattr(event, "reason", "")

    def catch_up(self, fresh: RunState) -> None:
        """Apply what another server has stored of the run."""
        self.trace.catch_up(fresh.trace)
        for name in ("record", "state", "reason", "device", "total_steps", "metadata", "notes"):
            setattr(self, name, getattr(fresh, name))
        if self._shot is None or self._shot != fresh._shot:
            self.snapshot = fresh.snapshot
        self.position = self.wait = None
        self.report = fresh.report
        self.version += 1

    def as_of(self, shot: Snapshot) -> RunState:
        """Return the run as it was when this snapshot was taken."""
        past = copy.copy(self)
        past.trace, past.snapshot, past.report = self.trace.upto(shot.step), shot, None
        past.trace.epoch, past.phase, past.results = self.trace.epoch, None, None
        if self.state in DONE:
            past.state, past.reason = State.RUNNING, ""
        return past

    @property
    def _shot(self) -> int | None:
        return None if self.snapshot is None else self.snapshot.step

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return int(self.trace.step[-1]) if len(self.trace) else 0

    @property
    def pace(self) -> float:
        """Seconds per step over the last fifty steps; NaN before the second one."""
        steps, seconds = self.trace.step[-51:], self.trace.seconds[-51:]
        if len(steps) < 2:
            return math.nan
        return float((seconds[-1] - seconds[0]) / (steps[-1] - steps[0]))

    @property
    def remaining(self) -> float:
        """Maximum training time left in seconds, at the current pace; NaN if unknown."""
        return self.pace * (self.total_steps - self.step)


def labeled(record: Any, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a run with `OWN`; {} before its start."""
    return {**metadata, OWN: not entry(record.study).offers(record.data)} if metadata else {}


def fresh(store: Any, history: RunState) -> RunState | None:
    """Return the updated state if the store has a newer record than `history`, otherwise None."""
    record = store.run(history.id)
    return None if record == history.record else load(store, history.id, history.trace)


def load(store: Any, run: str, trace: TraceBuffer | None = None) -> RunState:
    """Read the state of a run from the store.

    Args:
        store: The store.
        run: Id of the run.
        trace: Part of its curve that need not be read again.

    Raises:
        NotFound: There is no such run.
    """
    record = store.run(run)
    history = RunState(run, record)
    history.name = run_name(record, store)
    history.state, history.reason = record.state, record.reason
    history.device, history.total_steps = record.device, record.total_steps
    history.metadata = labeled(record, record.metadata)
    history.recorded = record.demonstration
    if record.state is State.PAUSED:
        checkpoint = store.checkpoint(run)
        if checkpoint is not None and of_other_version(checkpoint.blob):
            history.reason = OTHER_VERSION  # before anybody clicks Resume
    history.trace = _curve(store, run, trace)
    history.snapshot = store.latest_snapshot(run)
    history.notes = store.notes(run)
    try:
        history.report = store.report(run)
    except Damaged as error:  # the curve can still be shown
        history.notes = [*history.notes, str(error)]
    return history


def _curve(store: Any, run: str, trace: TraceBuffer | None) -> TraceBuffer:
    def read(first: int) -> TraceBuffer:
        rows, made = store.trace(run, first), TraceBuffer()
        made.fill({name: getattr(rows, name) for name in TraceBuffer.COLUMNS})
        return made

    if trace:
        whole = trace.extended_by(read(int(trace.step[-1])))
        if whole is not None:
            return whole
    return read(0)
