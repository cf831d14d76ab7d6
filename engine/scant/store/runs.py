"""Records of runs in the store, and their deletion with related rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, or_, select, update

from scant import __version__
from scant.errors import NotFound
from scant.events import USABLE, State
from scant.store.checkpoints import GENERATIONS
from scant.store.records import TEMPORARY, RunRecord, new_id
from scant.store.schema import (
    CLAIMS,
    MODELS,
    NOTES,
    REPORTS,
    RUN_ORIGINS,
    RUN_TIMES,
    RUNS,
    SNAPSHOTS,
    TRACE,
)

RUN_TABLES = (
    TRACE, SNAPSHOTS, NOTES, *GENERATIONS, REPORTS, MODELS, CLAIMS, RUN_ORIGINS, RUN_TIMES
)  # fmt: skip
TEMPORARY_SECONDS = 60.0  # in which the server of an ended temporary run deletes it


class RunRepository:
    """Repository of runs, with blocking methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add_run(
        self,
        study: str,
        settings: Mapping[str, Any],
        data: str,
        owner: str,
        *,
        run_id: str | None = None,
        data_hash: str = "",
        demonstration: bool = False,
        server: str = "",
    ) -> str:
        """Store a new, queued run, with a claim of `server` unless "", and return its id."""
        run_id = run_id or new_id()
        row = {
            "id": run_id,
            "study": study,
            "settings": dict(settings),
            "data": data,
            "data_hash": data_hash,
            "owner": owner,
            "state": State.QUEUED.value,
            "reason": "",
            "attempt": 0,
            "losses": 0,
            "created": time.time(),
            "version": __version__,
            "demonstration": demonstration,
            "total_steps": 0,
            "device": "",
            "words": {},
        }
        with self.engine.begin() as db:
            db.execute(insert(RUNS).values(row))
            if server:
                db.execute(insert(CLAIMS).values(run=run_id, server=server, wish=""))
        return run_id

    def run(self, run_id: str) -> RunRecord:
        """Return the record of a run.

        Raises:
            NotFound: There is no such run.
        """
        with self.engine.connect() as db:
            row = db.execute(select(RUNS).where(RUNS.c.id == run_id)).first()
        if row is None:
            raise NotFound(f"There is no run {run_id!r} here; it may have been deleted.")
        return RunRecord.of(row._mapping)

    def runs(self, owner: str | None = None) -> list[RunRecord]:
        """Return the runs of an owner and examples, newest first; None for all runs."""
        query = select(RUNS).order_by(RUNS.c.created.desc())
        if owner is not None:
            query = query.where(or_(RUNS.c.owner == owner, RUNS.c.demonstration))
        with self.engine.connect() as db:
            return [RunRecord.of(row._mapping) for row in db.execute(query)]

    def delete_run(self, run_id: str) -> None:
        """Delete a run and related rows."""
        with self.engine.begin() as db:
            db.execute(delete(RUNS).where(RUNS.c.id == run_id))
            for table in RUN_TABLES:
                db.execute(delete(table).where(table.c.run == run_id))

    def delete_temporary_runs(self) -> None:
        """Delete ended runs of `TEMPORARY` owners that an earlier server has left behind."""
        query = select(RUNS.c.id).where(
            RUNS.c.owner.startswith(TEMPORARY), RUNS.c.finished < time.time() - TEMPORARY_SECONDS
        )
        with self.engine.connect() as db:
            left = list(db.execute(query).scalars())
        for run_id in left:
            self.delete_run(run_id)

    def update_run(self, run_id: str, **columns: Any) -> None:
        """Update columns of a run."""
        with self.engine.begin() as db:
            update_row(db, run_id, columns)

    def typical_seconds(self, study: str) -> float | None:
        """Return the median seconds of the last five runs of a study; None if unknown."""
        query = (
            select(RUNS.c.started, RUNS.c.finished)
            .where(RUNS.c.study == study, RUNS.c.attempt == 1, RUNS.c.finished.is_not(None))
            .where(RUNS.c.state.in_([s.value for s in USABLE - {State.STOPPED}]))
            .order_by(RUNS.c.finished.desc())
            .limit(5)
        )
        with self.engine.connect() as db:
            spans = [row.finished - row.started for row in db.execute(query)]
        return median(spans) if spans else None


def update_row(db: Connection, run_id: str, columns: Mapping[str, Any]) -> None:
    """Update columns of a run within a transaction."""
    values = {k: v.value if isinstance(v, State) else v for k, v in columns.items()}
    db.execute(update(RUNS).where(RUNS.c.id == run_id).values(values))
