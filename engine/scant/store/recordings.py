"""Recordings of finished runs as small files, for the examples in the package."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from sqlalchemy import Engine

from scant.errors import BadInput, NotFound
from scant.events import (
    Arrays,
    Event,
    Finished,
    Fitted,
    Note,
    Progress,
    Snapshot,
    Started,
    decode,
    encode,
)
from scant.package_data import package_file
from scant.store.database import exclusive
from scant.store.events import EventRepository, evenly
from scant.store.records import RunRecord
from scant.store.runs import RunRepository
from scant.studies import STUDIES
from scant.studies.aliases import STUDIES as FORMER
from scant.studies.aliases import current_run

SUFFIX = ".scant"
# Exceptions for truncated or damaged files.
_UNREADABLE = (
    BadZipFile, EOFError, IndexError, KeyError, NotImplementedError, RuntimeError, SafetensorError,
    TypeError, ValueError, zlib.error,
)  # fmt: skip

log = logging.getLogger(__name__)
_COLUMNS = ("step", "restart", "elbo", "seconds", "best", "score")


class RecordingRepository:
    """Import and export of recordings of runs with their events, with blocking methods."""

    def __init__(self, engine: Engine, runs: RunRepository, events: EventRepository) -> None:
        self.engine = engine
        self._runs, self._events = runs, events
        self.damaged: Mapping[str, str] = {}  # messages by run id

    def run(self, run_id: str) -> RunRecord:
        """Return the record of a run.

        Raises:
            NotFound: There is no such run, or its recording in the package is damaged.
        """
        try:
            return self._runs.run(run_id)
        except NotFound:
            if run_id in self.damaged:
                raise NotFound(self.damaged[run_id]) from None
            raise

    def export_recording(self, run_id: str, snapshots: int = 60) -> bytes:
        """Export a finished run as a compressed file: record, events, report and model.

        Args:
            run_id: Id of the run.
            snapshots: Maximum number of snapshots, evenly spread. Their arrays are rounded to four
                significant digits, and those of the report to single precision.

        Raises:
            NotFound: There is no such run, or it has not finished.
        """
        record, events = self.run(run_id), self._events
        report, model = events.report(run_id), events.model(run_id)
        if report is None or model is None:
            raise NotFound(f"Run {run_id} is {record.state} and has left no result to record.")
        selected = events.snapshots(run_id)
        steps = evenly([s.step for s in selected], snapshots)
        selected = [replace(s, arrays=_rounded(s.arrays)) for s in selected if s.step in steps]
        report = replace(report, arrays=_single(report.arrays))
        finished = Finished(record.state, record.reason, report)
        trace = asdict(events.trace(run_id))
        buffer = BytesIO()
        with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=9) as file:
            file.writestr("run.json", _header(record, events.notes(run_id)))
            file.writestr("trace.safetensors", save(trace))
            file.writestr("snapshots.safetensors", encode(selected))
            file.writestr("end.safetensors", encode([finished]))
            file.writestr("model.safetensors", model)
        return buffer.getvalue()

    def import_recording(self, recording: bytes, run_id: str | None = None) -> str:
        """Import a recording as an example run, replacing an older version.

        Args:
            recording: Content of a file from `export_recording`.
            run_id: Id of the run; None for "demo-<study>".

        Raises:
            BadInput: The content is not a recording.
        """
        header, events = _read(recording)
        run_id = current_run(run_id or f"demo-{header['study']}")
        try:
            if self.run(run_id).created == header["created"]:
                return run_id
            self._runs.delete_run(run_id)
        except NotFound:
            pass
        about = {name: header[name] for name in ("study", "settings", "data")}
        self._runs.add_run(**about, owner="", run_id=run_id, demonstration=True)
        self._events.write(run_id, events, header["data_hash"])
        names = ("created", "started", "finished", "version")
        self._runs.update_run(run_id, **{name: header[name] for name in names})
        return run_id

    def import_shipped(self, studies: Sequence[str] = STUDIES) -> list[str]:
        """Import the recordings in the package and return the run ids.

        Damaged recordings are skipped and reported by `run`.
        """
        results, damaged = [], {}
        with exclusive(self.engine):
            for study in studies:
                file = package_file("recordings", study + SUFFIX)
                if not file.is_file():
                    continue
                try:
                    results.append(self.import_recording(file.read_bytes()))
                except (BadInput, OSError) as error:
                    log.error("the recording of %s cannot be read: %s", study, error)
                    damaged[f"demo-{study}"] = (
                        "The recorded demonstration that came with this installation of Scant is "
                        "damaged and cannot be shown; train a run, or install Scant again."
                    )
        for former in FORMER:  # from version 0.1.0
            self._runs.delete_run(f"demo-{former}")
        self.damaged = damaged
        return results


def _header(record: RunRecord, notes: Sequence[str]) -> str:
    """Encode a record and notes as JSON; `metadata` has the key of version 0.1.0."""
    row = asdict(record)
    row["words"] = row.pop("metadata")
    return json.dumps({**row, "notes": notes})


def _single(arrays: Arrays) -> dict[str, np.ndarray]:
    return {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in arrays.items()
    }


def _rounded(arrays: Arrays) -> dict[str, np.ndarray]:
    """Round to single precision with half of the mantissa zero, for better compression."""
    return {
        name: (np.ascontiguousarray(array).view(np.uint32) & 0xFFFFF800).view(np.float32)
        if array.dtype == np.float32
        else array
        for name, array in _single(arrays).items()
    }


def _read(recording: bytes) -> tuple[Mapping[str, Any], Sequence[Event]]:
    """Read the record and the events of a recording in order."""
    try:
        with ZipFile(BytesIO(recording)) as file:
            header = json.loads(file.read("run.json"))
            trace = load(file.read("trace.safetensors"))
            snapshots = decode(file.read("snapshots.safetensors"))
            end = decode(file.read("end.safetensors"))
            model = file.read("model.safetensors")
        return header, _events(header, trace, snapshots, end, model)
    except _UNREADABLE as error:
        raise BadInput("This file is not a recording of a run; record it again.") from error


def _events(
    header: Mapping[str, Any],
    trace: Mapping[str, np.ndarray],
    snapshots: Sequence[Event],
    end: Sequence[Event],
    model: bytes,
) -> Sequence[Event]:
    started = Started(header["device"], header["total_steps"], 0, header["words"])
    columns = [trace[name].tolist() for name in _COLUMNS]
    steps = [
        Progress(step, elbo, seconds, best, score, restart)
        for step, restart, elbo, seconds, best, score in zip(*columns)
    ]
    notes = [Note(text) for text in header["notes"]]
    return [started, *notes, *steps, *_unrounded(snapshots, end), Fitted(model), *end]


def _unrounded(snapshots: Sequence[Event], end: Sequence[Event]) -> Sequence[Event]:
    """Return the snapshots, the last one with the arrays that it shares with the report.

    The figures of training and those of the result then agree to the last digit.
    """
    last, finished = (events[-1] if events else None for events in (snapshots, end))
    if not isinstance(last, Snapshot) or not isinstance(finished, Finished):
        return snapshots
    exact = {
        name: array
        for name, array in finished.report.arrays.items()
        if name in last.arrays and last.arrays[name].shape == array.shape
    }
    return [*snapshots[:-1], replace(last, arrays={**last.arrays, **exact})]
