"""What a run says while it lives: the one thing that crosses from the engine to the dashboard.

Events travel from worker to server, into the store, and to every watcher in the same form:
`encode` packs a batch as one safetensors message (JSON in its header, arrays as bytes); no pickle.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from scant.verdict import Verdict
from scant.verdict import read as read_verdict

Arrays = Mapping[str, np.ndarray]
TRAINING_ENDED = "Training has ended; the report is made, and general tools learn the same rows."


class State(StrEnum):
    """The states of a run, as people read them."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    CONVERGED = "converged"
    FINISHED = "finished"  # all that it was to do is done; whether more steps help is not known
    LEARNED_NOTHING = "learned nothing"
    HIT_LIMIT = "hit limit"
    DIVERGED = "diverged"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Nothing more will come from this run."""
        return self in FINAL

    @property
    def still(self) -> bool:
        """Nothing comes from this run of itself: it has ended, or waits to be resumed."""
        return self.final or self is State.PAUSED

    @property
    def usable(self) -> bool:
        """A final state that leaves a fitted model behind."""
        return self in USABLE


USABLE = frozenset(
    {State.STOPPED, State.CONVERGED, State.FINISHED, State.LEARNED_NOTHING, State.HIT_LIMIT}
)
FINAL = USABLE | {State.DIVERGED, State.FAILED}


@dataclass(frozen=True)
class Queued:
    """Waiting for a worker: `place` 1 is next; `seconds` estimates the wait (None: not known)."""

    place: int
    seconds: float | None = None


@dataclass(frozen=True)
class Changed:
    """The run's state changed otherwise than by `Finished`: queued, starting, pausing, …"""

    state: State
    reason: str = ""


@dataclass(frozen=True)
class Started:
    """Training begins on `device`.

    Attributes:
        device: "cpu" or "cuda".
        total_steps: The most steps there can be, over all restarts.
        step: 0, or the step of the checkpoint from which the run goes on; what was said of later
            steps is void and will be said again.
        metadata: JSON-able names that label the arrays to come (names of bands, outputs, classes).
    """

    device: str
    total_steps: int
    step: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """One optimizer step.

    Attributes:
        step: Steps taken so far, over all restarts (1, 2, 3, …).
        elbo: The objective being maximized, in nats a training row; non-finite where it diverged.
        seconds: Training time so far, pauses left out.
        best: Best `score` so far in this restart.
        score: What chooses the parameters that are kept: the validation score where the study
            has one, else the objective itself.
        restart: Which restart the step belongs to (0, 1, …); a curve is broken between restarts.
    """

    step: int
    elbo: float
    seconds: float
    best: float
    score: float
    restart: int = 0


@dataclass(frozen=True)
class Snapshot:
    """The posterior as it stands: arrays (of one dimension or more) that the catalog documents."""

    step: int
    arrays: Arrays


@dataclass(frozen=True)
class Note:
    """Something a person should know: jitter grew, a column was dropped, a worker was replaced."""

    text: str


@dataclass(frozen=True)
class Checkpoint:
    """All that is needed to go on from `step` bit by bit: a safetensors blob for `train`."""

    step: int
    blob: bytes


@dataclass(frozen=True)
class Fitted:
    """The fitted model: a safetensors blob for the study's `restore`."""

    blob: bytes


@dataclass(frozen=True)
class Metric:
    """One figure of a report: a method's value of a metric on a split, with its spread if known.

    `source` is "run" (computed now), "baseline" (computed now, another method of the study),
    "rival" (computed now, a general tool of `scant.rivals`) or "published".
    """

    method: str
    name: str
    value: float
    spread: float | None = None
    source: str = "run"


@dataclass(frozen=True)
class Report:
    """What a run came to: figures beside their baselines, arrays for the plots, notes, who wins."""

    metrics: tuple[Metric, ...] = ()
    arrays: Arrays = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None  # None in reports made before there were any


@dataclass(frozen=True)
class Finished:
    """The task has ended: a final state, or paused (its checkpoint was the event before)."""

    state: State
    reason: str
    report: Report = field(default_factory=Report)


Event = Queued | Changed | Started | Progress | Snapshot | Note | Checkpoint | Fitted | Finished
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (Queued, Changed, Started, Progress, Snapshot, Note, Checkpoint, Fitted, Finished)
}


def encode(events: Sequence[Event]) -> bytes:
    """Pack a batch of events into one message.

    Numbers and words go into the JSON header; arrays and blobs follow as raw bytes.
    """
    tensors: dict[str, np.ndarray] = {}
    rows = []
    for i, event in enumerate(events):
        row: dict[str, Any] = {"kind": type(event).__name__}
        for f in dataclasses.fields(event):
            row[f.name] = _lower(getattr(event, f.name), f"{i}.{f.name}", tensors)
        rows.append(row)
    return save(tensors, metadata={"events": json.dumps(rows)})


def decode(message: bytes) -> list[Event]:
    """The events of a message made by `encode`.

    Raises:
        ValueError: The message was not made by `encode`.
    """
    size = int.from_bytes(message[:8], "little")
    try:
        rows = json.loads(json.loads(message[8 : 8 + size])["__metadata__"]["events"])
        tensors = load(message)
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise ValueError("not a message of run events") from error
    return [_raise(row, i, tensors) for i, row in enumerate(rows)]


def _lower(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """Replace what JSON cannot hold by its place among the tensors."""
    if isinstance(value, bytes):
        tensors[name] = np.frombuffer(value, dtype=np.uint8)
        return None
    if isinstance(value, Report):
        return {
            "metrics": [dataclasses.asdict(m) for m in value.metrics],
            "arrays": _lower(value.arrays, f"{name}.arrays", tensors),
            "notes": list(value.notes),
            "verdict": value.verdict and dataclasses.asdict(value.verdict),
        }
    if isinstance(value, Mapping) and name.endswith("arrays"):
        for key, array in value.items():
            tensors[f"{name}.{key}"] = np.ascontiguousarray(array)
        return list(value)
    return value


def _raise(row: dict[str, Any], i: int, tensors: dict[str, np.ndarray]) -> Event:
    kind = _KINDS[row.pop("kind")]
    if kind is Snapshot:
        row["arrays"] = {k: tensors[f"{i}.arrays.{k}"] for k in row["arrays"]}
    elif kind in (Checkpoint, Fitted):
        row["blob"] = tensors[f"{i}.blob"].tobytes()
    elif kind is Changed:
        row["state"] = State(row["state"])
    elif kind is Finished:
        report = row["report"]
        row["state"] = State(row["state"])
        row["report"] = Report(
            metrics=tuple(Metric(**m) for m in report["metrics"]),
            arrays={k: tensors[f"{i}.report.arrays.{k}"] for k in report["arrays"]},
            notes=tuple(report["notes"]),
            verdict=read_verdict(report.get("verdict")),
        )
    return kind(**row)
