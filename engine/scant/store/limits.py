"""Queries for limits and access: runs by owner and address, times, presenters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select, update

from scant.errors import BadInput, NotFound
from scant.events import FINAL, State
from scant.store.records import new_id
from scant.store.runs import RUN_TABLES, RunRepository
from scant.store.schema import (
    LABEL_ROLES,
    LABEL_VISITORS,
    LABELS,
    RUN_ORIGINS,
    RUN_TIMES,
    RUNS,
    TRACE,
)

RESTING = tuple(s.value for s in (*FINAL, State.PAUSED))


class LimitRepository:
    """Repository for the limits and deletion of runs, with blocking methods."""

    def __init__(self, engine: Engine, runs: RunRepository) -> None:
        self.engine = engine
        self._runs = runs

    def live_runs(self, owner: str) -> int:
        """Count the queued and running runs of an owner, on all servers of this database."""
        query = select(func.count()).select_from(RUNS).where(RUNS.c.owner == owner)
        with self.engine.connect() as db:
            return int(db.execute(query.where(RUNS.c.state.not_in(RESTING))).scalar_one())

    def live_runs_from(self, address: str) -> int:
        """Count the queued and running runs from the code of an address, on all servers."""
        query = (
            select(func.count())
            .select_from(RUNS.join(RUN_ORIGINS, RUN_ORIGINS.c.run == RUNS.c.id))
            .where(RUN_ORIGINS.c.address == address, RUNS.c.state.not_in(RESTING))
        )
        with self.engine.connect() as db:
            return int(db.execute(query).scalar_one())

    def add_run_from(
        self, address: str, presenter: str, *about: Any, run_id: str | None = None, **more: Any
    ) -> str:
        """Store a new run with its origin; further arguments as in `add_run`."""
        run = run_id or new_id()
        with self.engine.begin() as db:
            db.execute(insert(RUN_ORIGINS).values(run=run, address=address, presenter=presenter))
        return self._runs.add_run(*about, **more, run_id=run)

    def origin(self, run: str) -> tuple[str, str]:
        """Return the codes of the address and presenter of a run."""
        query = select(RUN_ORIGINS.c.address, RUN_ORIGINS.c.presenter)
        with self.engine.connect() as db:
            row = db.execute(query.where(RUN_ORIGINS.c.run == run)).first()
        return (row.address, row.presenter) if row else ("", "")

    def used_seconds(self, run: str) -> float:
        """Return the worker time of a run in seconds, else its training time."""
        with self.engine.connect() as db:
            query = select(RUN_TIMES.c.seconds).where(RUN_TIMES.c.run == run)
            seconds = db.execute(query).scalar()
            if seconds is None:
                trained = select(func.max(TRACE.c.seconds)).where(TRACE.c.run == run)
                seconds = db.execute(trained).scalar()
        return (
            float(seconds) if seconds is not None and math.isfinite(seconds) else 0.0
        )  # before the first step

    def last_step(self, run: str) -> int:
        """Return the last training step of a run; 0 before the first."""
        query = select(func.max(TRACE.c.step)).where(TRACE.c.run == run)
        with self.engine.connect() as db:
            return int(db.execute(query).scalar() or 0)

    def set_used_seconds(self, seconds: Mapping[str, float]) -> None:
        """Store the worker time in seconds by run."""
        with self.engine.begin() as db:
            for run, used in seconds.items():
                statement = update(RUN_TIMES).where(RUN_TIMES.c.run == run).values(seconds=used)
                if not db.execute(statement).rowcount:
                    db.execute(insert(RUN_TIMES).values(run=run, seconds=used))

    def remove_run(self, run: str) -> None:
        """Delete a paused or finished run with all related rows and labels.

        Raises:
            NotFound: There is no such run.
            BadInput: The run is queued or running.
        """
        with self.engine.begin() as db:
            deleted = db.execute(delete(RUNS).where(RUNS.c.id == run, RUNS.c.state.in_(RESTING)))
            if not deleted.rowcount:
                state = db.execute(select(RUNS.c.state).where(RUNS.c.id == run)).scalar()
                if state is None:
                    raise NotFound(f"There is no run {run!r} here; it may have been deleted.")
                raise BadInput(f"Run {run} is {state}; stop it first, then delete it.")
            label_ids = select(LABELS.c.id).where(LABELS.c.subject == run)
            for related in (LABEL_VISITORS, LABEL_ROLES):
                db.execute(delete(related).where(related.c.label.in_(label_ids)))
            db.execute(delete(LABELS).where(LABELS.c.subject == run))
            for table in RUN_TABLES:
                db.execute(delete(table).where(table.c.run == run))
