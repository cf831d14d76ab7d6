"""Recorded runs: one small file that is a finished run, for the demonstrations that we ship."""

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
from scant.events import Arrays, Event, Finished, Fitted, Note, Progress, Started, decode, encode
from scant.package_data import package_file
from scant.store.database import exclusive
from scant.store.events import EventRepository, evenly
from scant.store.records import RunRecord
from scant.store.runs import RunRepository
from scant.studies import STUDIES
from scant.studies.aliases import STUDIES as FORMER
from scant.studies.aliases import current_run

SUFFIX = ".scant"
# What a file may raise that is cut short, or has other bytes than it had.
_UNREADABLE = (
    BadZipFile, EOFError, IndexError, KeyError, NotImplementedError, RuntimeError, SafetensorError,
    TypeError, ValueError, zlib.error,
)  # fmt: skip

log = logging.getLogger(__name__)
_COLUMNS = ("step", "restart", "elbo", "seconds", "best", "score")


class RecordingRepository:
    """Reads and writes recordings, each a run with all that it said. Methods block."""

    def __init__(self, engine: Engine, runs: RunRepository, events: EventRepository) -> None:
        self.engine = engine
        self._runs, self._events = runs, events
        self.damaged: Mapping[str, str] = {}  # sentences by the id of a demonstration

    def run(self, run_id: str) -> RunRecord:
        """A run's row.

        Raises:
            NotFound: There is no such run, or it is a demonstration whose recording is damaged.
        """
        try:
            return self._runs.run(run_id)
        except NotFound:
            if run_id in self.damaged:
                raise NotFound(self.damaged[run_id]) from None
            raise

    def export_recording(self, run_id: str, snapshots: int = 60) -> bytes:
        """A finished run as one compressed file: row, curve, notes, snapshots, report, model.

        Args:
            run_id: The run.
            snapshots: How many snapshots to keep, evenly spread. Their arrays are only shown, and
                keep four significant digits; those of the report are kept in single precision.

        Raises:
            NotFound: There is no such run, or it is not over.
        """
        record, events = self.run(run_id), self._events
        report, model = events.report(run_id), events.model(run_id)
        if report is None or model is None:
            raise NotFound(f"Run {run_id} is {record.state} and has left no result to record.")
        shown = events.snapshots(run_id)
        kept = evenly([s.step for s in shown], snapshots)
        shown = [replace(s, arrays=_rounded(s.arrays)) for s in shown if s.step in kept]
        report = replace(report, arrays=_single(report.arrays))
        end = Finished(record.state, record.reason, report)
        trace = asdict(events.trace(run_id))
        buffer = BytesIO()
        with ZipFile(buffer, "w", ZIP_DEFLATED, compresslevel=9) as file:
            file.writestr("run.json", _header(record, events.notes(run_id)))
            file.writestr("trace.safetensors", save(trace))
            file.writestr("snapshots.safetensors", encode(shown))
            file.writestr("end.safetensors", encode([end]))
            file.writestr("model.safetensors", model)
        return buffer.getvalue()

    def import_recording(self, recording: bytes, run_id: str | None = None) -> str:
        """Put a recording down as a demonstration run, in the place of an older one.

        Args:
            recording: What `export_recording` returned.
            run_id: Its id here; None: "demo-<study>".

        Raises:
            BadInput: It is no recording.
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
        """Put down the recordings of studies that come with the package; returns their ids.

        One that is damaged is passed over; `run` then says so of its id.
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
                        "damaged, so there is none to show; train one, or install Scant again."
                    )
        for former in FORMER:  # of a database that 0.1.0 filled
            self._runs.delete_run(f"demo-{former}")
        self.damaged = damaged
        return results


def _header(record: RunRecord, notes: Sequence[str]) -> str:
    """A run's row and notes as JSON; `metadata` keeps the key that recordings of 0.1.0 have."""
    row = asdict(record)
    row["words"] = row.pop("metadata")
    return json.dumps({**row, "notes": notes})


def _single(arrays: Arrays) -> dict[str, np.ndarray]:
    return {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in arrays.items()
    }


def _rounded(arrays: Arrays) -> dict[str, np.ndarray]:
    """In single precision with half of the mantissa zero, which compresses well."""
    return {
        name: (np.ascontiguousarray(array).view(np.uint32) & 0xFFFFF800).view(np.float32)
        if array.dtype == np.float32
        else array
        for name, array in _single(arrays).items()
    }


def _read(recording: bytes) -> tuple[Mapping[str, Any], Sequence[Event]]:
    """A recording's row, and what its run said, in order."""
    try:
        with ZipFile(BytesIO(recording)) as file:
            header = json.loads(file.read("run.json"))
            trace = load(file.read("trace.safetensors"))
            snapshots = decode(file.read("snapshots.safetensors"))
            end = decode(file.read("end.safetensors"))
            model = file.read("model.safetensors")
        return header, _events(header, trace, snapshots, end, model)
    except _UNREADABLE as error:
        raise BadInput("This file is no recording of a run; record it anew.") from error


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
    return [started, *notes, *steps, *snapshots, Fitted(model), *end]
