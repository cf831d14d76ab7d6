"""Events of runs in the store: curves, snapshots, notes, reports and models."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Table, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from scant.events import (
    Changed,
    Checkpoint,
    Event,
    Finished,
    Fitted,
    Note,
    Phase,
    Progress,
    Report,
    Snapshot,
    Started,
    decode,
    encode,
)
from scant.store.checkpoints import GENERATIONS, keep_earlier
from scant.store.claims import check_claim
from scant.store.records import Trace
from scant.store.runs import update_row
from scant.store.schema import (
    CHECKPOINTS,
    CLAIMS,
    MODELS,
    NOTES,
    REPORTS,
    RUNS,
    SNAPSHOTS,
    TRACE,
)
from scant.store.sealed import Damaged, seal, unseal

SNAPSHOTS_KEPT = 120  # maximum number of snapshots of a run

log = logging.getLogger(__name__)


class EventRepository:
    """Repository of the events of runs, with blocking methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def write(
        self, run_id: str, events: Sequence[Event], data_hash: str = "", server: str = ""
    ) -> list[Event]:
        """Store events of a run in one transaction; safe to repeat.

        Args:
            run_id: Id of the run.
            events: Events in order.
            data_hash: SHA-256 of the table, or "" if unknown.
            server: Id of the server of the run; "" for no check.

        Returns:
            Events to publish, without checkpoints, models and repeated notes.

        Raises:
            TakenOver: The run belongs to another server.
        """
        columns: dict[str, Any] = {"heartbeat": time.time()}
        if data_hash:
            columns["data_hash"] = data_hash
        written: list[Event] = []
        ending = next(((e.state.value, e.reason) for e in events if isinstance(e, Finished)), None)
        with self.engine.begin() as db:
            update_row(db, run_id, columns)
            check_claim(db, run_id, server, ending)
            for group in _grouped(events):
                written += _write(db, run_id, group)
        return written

    def trace(self, run_id: str, first: int = 0) -> Trace:
        """Return the training curve of a run from step `first` on."""
        columns = [c for c in TRACE.c if c.name != "run"]
        query = select(*columns).where(TRACE.c.run == run_id, TRACE.c.step >= first)
        query = query.order_by(TRACE.c.step)
        with self.engine.connect() as db:
            return Trace.of([tuple(row) for row in db.execute(query)])

    def snapshots(self, run_id: str) -> list[Snapshot]:
        """Return the snapshots of a run, evenly thinned, with the first and the latest.

        Damaged snapshots are left out.
        """
        query = select(SNAPSHOTS.c.blob).where(SNAPSHOTS.c.run == run_id)
        with self.engine.connect() as db:
            blobs = list(db.execute(query.order_by(SNAPSHOTS.c.step)).scalars())
        shots = (_snapshot(blob, run_id) for blob in blobs)
        return [shot for shot in shots if shot is not None]

    def latest_snapshot(self, run_id: str) -> Snapshot | None:
        """Return the latest snapshot that is not damaged; None before the first."""
        query = select(SNAPSHOTS.c.blob).where(SNAPSHOTS.c.run == run_id)
        with self.engine.connect() as db:
            for blob in db.execute(query.order_by(SNAPSHOTS.c.step.desc())).scalars():
                if (shot := _snapshot(blob, run_id)) is not None:
                    return shot
        return None

    def notes(self, run_id: str) -> list[str]:
        """Return the notes of a run in order."""
        query = select(NOTES.c.text).where(NOTES.c.run == run_id).order_by(NOTES.c.id)
        with self.engine.connect() as db:
            return list(db.execute(query).scalars())

    def report(self, run_id: str) -> Report | None:
        """Return the report of a run; None before its end.

        Raises:
            Damaged: The report is damaged in the database.
        """
        with self.engine.connect() as db:
            blob = db.execute(select(REPORTS.c.blob).where(REPORTS.c.run == run_id)).scalar()
        if blob is None:
            return None
        report: Report = _one(blob, f"The report of run {run_id}").report
        return report

    def model(self, run_id: str) -> bytes | None:
        """Return the fitted model as safetensors; None if there is none.

        Raises:
            Damaged: The model is damaged in the database.
        """
        with self.engine.connect() as db:
            blob = db.execute(select(MODELS.c.blob).where(MODELS.c.run == run_id)).scalar()
        return None if blob is None else unseal(blob, f"The model of run {run_id}")


def _one(blob: bytes, what: str) -> Any:
    """Decode the event in a stored blob. Raises Damaged if it is damaged."""
    try:
        return decode(unseal(blob, what))[0]
    except (ValueError, IndexError, TypeError) as error:
        if isinstance(error, Damaged):
            raise
        raise Damaged(f"{what} is damaged in the database and cannot be used.") from error


def _snapshot(blob: bytes, run: str) -> Snapshot | None:
    try:
        shot: Snapshot = _one(blob, f"A snapshot of run {run}")
    except Damaged as error:
        log.warning("%s", error)
        return None
    return shot


def _grouped(events: Sequence[Event]) -> list[list[Event]]:
    """Group consecutive progress events, to insert them at once."""
    groups: list[list[Event]] = []
    for event in events:
        if isinstance(event, Progress) and groups and isinstance(groups[-1][0], Progress):
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups


def _write(db: Connection, run: str, group: list[Event]) -> list[Event]:
    """Store one group and return the events to publish."""
    event = group[0]
    match event:
        case Progress():
            names = ("step", "restart", "elbo", "seconds", "best", "score")
            rows = [{"run": run, **{n: getattr(e, n) for n in names}} for e in group]
            _insert_steps(db, rows)
        case Snapshot():
            _replace(
                db, SNAPSHOTS, run, SNAPSHOTS.c.step == event.step, step=event.step, blob=event
            )
            _thin(db, run)
        case Started():
            _start(db, run, event)
        case Note():
            known = select(NOTES.c.id).where(NOTES.c.run == run, NOTES.c.text == event.text)
            if db.execute(known).first():
                return []  # repeated by a resumed attempt
            db.execute(insert(NOTES).values(run=run, text=event.text))
        case Checkpoint():
            keep_earlier(db, run, event.step)
            _replace(db, CHECKPOINTS, run, step=event.step, blob=event.blob)
            return []
        case Fitted():
            _replace(db, MODELS, run, blob=event.blob)
            return []
        case Phase():
            update_row(db, run, {"reason": event.sentence})
        case Changed():
            update_row(db, run, {"state": event.state, "reason": event.reason})
        case Finished():
            _finish(db, run, event)
    return group


def _start(db: Connection, run: str, event: Started) -> None:
    """Delete the events of later steps, which will be repeated."""
    for table in (TRACE, SNAPSHOTS, *GENERATIONS):
        db.execute(delete(table).where(table.c.run == run, table.c.step > event.step))
    values = {
        "device": event.device,
        "total_steps": event.total_steps,
        "words": dict(event.metadata),
        "started": func.coalesce(RUNS.c.started, time.time()),
    }
    db.execute(update(RUNS).where(RUNS.c.id == run).values(values))


def _finish(db: Connection, run: str, event: Finished) -> None:
    columns: dict[str, Any] = {"state": event.state, "reason": event.reason}
    if event.state.final:
        columns["finished"] = time.time()
        _replace(db, REPORTS, run, blob=event)
        for table in GENERATIONS:
            db.execute(delete(table).where(table.c.run == run))
    db.execute(delete(CLAIMS).where(CLAIMS.c.run == run))
    update_row(db, run, columns)


def _replace(
    db: Connection, table: Table, run: str, *where: Any, blob: Any, **columns: Any
) -> None:
    """Replace the stored blob by another blob or encoded event."""
    db.execute(delete(table).where(table.c.run == run, *where))
    packed = blob if isinstance(blob, bytes) else encode([blob])
    # As parameters: SQLAlchemy caches statements with their values.
    db.execute(insert(table), {"run": run, "blob": seal(packed), **columns})


def _insert_steps(db: Connection, rows: list[dict[str, Any]]) -> None:
    """Insert points of the training curve, or update them in a repeated write."""
    dialect: Any = sqlite if db.dialect.name == "sqlite" else postgresql
    put = dialect.insert(TRACE)
    names = [c.name for c in TRACE.c if not c.primary_key]
    db.execute(
        put.on_conflict_do_update(
            index_elements=["run", "step"], set_={name: put.excluded[name] for name in names}
        ),
        rows,
    )


def _thin(db: Connection, run: str) -> None:
    """Thin the snapshots to half the maximum, evenly over the steps, if there are too many."""
    query = select(SNAPSHOTS.c.step).where(SNAPSHOTS.c.run == run).order_by(SNAPSHOTS.c.step)
    steps = list(db.execute(query).scalars())
    if len(steps) > SNAPSHOTS_KEPT:
        drop = set(steps) - evenly(steps, SNAPSHOTS_KEPT // 2)
        db.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.run == run, SNAPSHOTS.c.step.in_(drop)))


def evenly(steps: Sequence[int], count: int) -> set[int]:
    """Choose at most `count` of the sorted steps evenly, with the first and the last."""
    span = steps[-1] - steps[0]
    targets = [steps[0] + span * i / (count - 1) for i in range(count)]
    return {min(steps, key=lambda s: abs(s - t)) for t in targets}
