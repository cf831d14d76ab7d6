"""Events of a run, the interface between engine and dashboard.

Events are sent from worker to server, stored, and published in the same form. `encode` packs a
batch into one safetensors message with JSON in the header and arrays as bytes, without pickle.
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
TRAINING_ENDED = (
    "Training has ended; the report is being made, and general tools are fitted to the same rows."
)
# Steps that always have a snapshot, 0 for the prior, so that a page can show the beginning.
OPENING = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50, 60, 75, 90, 110)
ON_ALL_ROWS = "The report is ready; the model is now fitted to all rows, for predictions."


class State(StrEnum):
    """State of a run."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    CONVERGED = "converged"
    FINISHED = "finished"  # all steps are done; convergence is unknown
    LEARNED_NOTHING = "learned nothing"
    HIT_LIMIT = "hit limit"
    DIVERGED = "diverged"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """True if the run has ended."""
        return self in FINAL

    @property
    def still(self) -> bool:
        """True if the run has ended or is paused."""
        return self.final or self is State.PAUSED

    @property
    def usable(self) -> bool:
        """True if the run has ended with a fitted model."""
        return self in USABLE


USABLE = frozenset(
    {State.STOPPED, State.CONVERGED, State.FINISHED, State.LEARNED_NOTHING, State.HIT_LIMIT}
)
FINAL = USABLE | {State.DIVERGED, State.FAILED}


@dataclass(frozen=True)
class Queued:
    """Position `place` in the queue from 1, and estimated waiting time in seconds or None."""

    place: int
    seconds: float | None = None


@dataclass(frozen=True)
class Changed:
    """Change of the state, except by `Finished`: queued, starting, pausing, …"""

    state: State
    reason: str = ""


@dataclass(frozen=True)
class Started:
    """Start of training.

    Attributes:
        device: "cpu" or "cuda".
        total_steps: Maximum number of steps over all restarts.
        step: 0, or the step of the checkpoint from which the run continues; events of later steps
            are void and will be repeated.
        metadata: Labels of the following arrays as JSON types (names of bands, outputs, classes).
    """

    device: str
    total_steps: int
    step: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """Optimizer step.

    Attributes:
        step: Number of steps so far over all restarts (1, 2, 3, …).
        elbo: Objective in nats per training row; non-finite after divergence.
        seconds: Training time so far without pauses.
        best: Best `score` so far in this restart.
        score: Criterion for the selected parameters: validation score if the study has one, else
            the objective.
        restart: Index of the restart (0, 1, …).
    """

    step: int
    elbo: float
    seconds: float
    best: float
    score: float
    restart: int = 0


@dataclass(frozen=True)
class Snapshot:
    """Current posterior as arrays, which are described in the catalog."""

    step: int
    arrays: Arrays


@dataclass(frozen=True)
class Note:
    """Note for the user, such as on increased jitter, a dropped column or a replaced worker."""

    text: str


@dataclass(frozen=True)
class Phase:
    """Work after the last step, which may take longer than training.

    Attributes:
        name: Description of the work, such as "comparing with other methods".
        done: Units of it that are done.
        total: All units; 0 if it has none.
        seconds: Expected time left for the others, by that of the former; None if none is done.
    """

    name: str
    done: int = 0
    total: int = 0
    seconds: float | None = None

    @property
    def sentence(self) -> str:
        """The phase with its progress, for people."""
        parts = [self.name]
        if self.total:
            parts.append(f"{self.done} of {self.total} done")
        if self.seconds is not None:
            parts.append(f"about {max(self.seconds, 1):.0f} s left")
        return ", ".join(parts)


@dataclass(frozen=True)
class Checkpoint:
    """State to continue from `step` with identical results, as a safetensors blob for `train`."""

    step: int
    blob: bytes


@dataclass(frozen=True)
class Fitted:
    """Fitted model as a safetensors blob for `restore` of the study."""

    blob: bytes


@dataclass(frozen=True)
class Metric:
    """Value of a metric for a method, with its standard deviation if known.

    `source` is "run" for this run, "baseline" for another method of the study, "rival" for a
    general method of `scant.learners`, or "published".
    """

    method: str
    name: str
    value: float
    spread: float | None = None
    source: str = "run"


@dataclass(frozen=True)
class Report:
    """Result of a run: metrics with baselines, arrays for plots, notes, and a verdict.

    Attributes:
        limits: The methods that predict with their weights, then their limits in this run; limits
            of the study follow (`Entry.limits`). Empty in reports of earlier versions.
    """

    metrics: tuple[Metric, ...] = ()
    arrays: Arrays = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None  # None in reports of earlier versions
    limits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Results:
    """The report of a run as far as it is known before other methods are fitted; not stored."""

    report: Report


@dataclass(frozen=True)
class Finished:
    """End of an attempt with a final state, or paused after a checkpoint event."""

    state: State
    reason: str
    report: Report = field(default_factory=Report)


Event = (
    Queued
    | Changed
    | Started
    | Progress
    | Snapshot
    | Note
    | Phase
    | Results
    | Checkpoint
    | Fitted
    | Finished
)
_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Queued,
        Changed,
        Started,
        Progress,
        Snapshot,
        Note,
        Phase,
        Results,
        Checkpoint,
        Fitted,
        Finished,
    )
}


def encode(events: Sequence[Event]) -> bytes:
    """Pack a batch of events into one message.

    Numbers and text are in the JSON header; arrays and blobs follow as raw bytes.
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
    """Unpack the events of a message from `encode`.

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
    """Move values that JSON cannot represent to `tensors`."""
    if isinstance(value, bytes):
        tensors[name] = np.frombuffer(value, dtype=np.uint8)
        return None
    if isinstance(value, Report):
        return {
            "metrics": [dataclasses.asdict(m) for m in value.metrics],
            "arrays": _lower(value.arrays, f"{name}.arrays", tensors),
            "notes": list(value.notes),
            "verdict": value.verdict and dataclasses.asdict(value.verdict),
            "limits": list(value.limits),
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
    elif kind in (Results, Finished):
        report = row["report"]
        if kind is Finished:
            row["state"] = State(row["state"])
        row["report"] = Report(
            metrics=tuple(Metric(**m) for m in report["metrics"]),
            arrays={k: tensors[f"{i}.report.arrays.{k}"] for k in report["arrays"]},
            notes=tuple(report["notes"]),
            verdict=read_verdict(report.get("verdict")),
            limits=tuple(report.get("limits", ())),
        )
    return kind(**row)
