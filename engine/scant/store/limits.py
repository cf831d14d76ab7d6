"""Queries for limits and access: runs by owner and address, times, presenters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, delete, func, insert, select, update

from scant.errors import BadInput, NotFound
from scant.events import FINAL, State
from scant.store.records import new_id
from scant.store.runs import HANGS_ON_RUN, RunRepository
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
    """What limits count, and what operators delete. Methods block."""

    def __init__(self, engine: Engine, runs: RunRepository) -> None:
        self.engine = engine
        self._runs = runs

    def live_runs(self, owner: str) -> int:
        """How many runs of an owner are queued or running, on all servers of this database."""
        query = select(func.count()).select_from(RUNS).where(RUNS.c.owner == owner)
        with self.engine.connect() as db:
            return int(db.execute(query.where(RUNS.c.state.not_in(RESTING))).scalar_one())

    def live_runs_from(self, address: str) -> int:
        """How many runs from an address (its code) are queued or running, on all servers."""
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
        """Put down a new run with where it was submitted from; the rest as `add_run` takes it."""
        run = run_id or new_id()
        with self.engine.begin() as db:
            db.execute(insert(RUN_ORIGINS).values(run=run, address=address, presenter=presenter))
        return self._runs.add_run(*about, **more, run_id=run)

    def origin(self, run: str) -> tuple[str, str]:
        """The codes of the address that a run was submitted from and of its lesson's presenter."""
        query = select(RUN_ORIGINS.c.address, RUN_ORIGINS.c.presenter)
        with self.engine.connect() as db:
            row = db.execute(query.where(RUN_ORIGINS.c.run == run)).first()
        return (row.address, row.presenter) if row else ("", "")

    def used_seconds(self, run: str) -> float:
        """How long a run has held a worker; of one that nobody has timed, how long it trained."""
        with self.engine.connect() as db:
            query = select(RUN_TIMES.c.seconds).where(RUN_TIMES.c.run == run)
            timed = db.execute(query).scalar()
            if timed is None:
                trained = select(func.max(TRACE.c.seconds)).where(TRACE.c.run == run)
                timed = db.execute(trained).scalar()
        return float(timed) if timed is not None and math.isfinite(timed) else 0.0  # no step yet

    def last_step(self, run: str) -> int:
        """The last step of a run's curve, 0 before the first."""
        query = select(func.max(TRACE.c.step)).where(TRACE.c.run == run)
        with self.engine.connect() as db:
            return int(db.execute(query).scalar() or 0)

    def put_used(self, seconds: Mapping[str, float]) -> None:
        """Put down how long runs have held a worker, by run."""
        with self.engine.begin() as db:
            for run, used in seconds.items():
                known = update(RUN_TIMES).where(RUN_TIMES.c.run == run).values(seconds=used)
                if not db.execute(known).rowcount:
                    db.execute(insert(RUN_TIMES).values(run=run, seconds=used))

    def remove_run(self, run: str) -> None:
        """Delete a run that rests or is over, and all that hangs on it, labels too.

        Raises:
            NotFound: There is no such run.
            BadInput: It is queued or running.
        """
        with self.engine.begin() as db:
            gone = db.execute(delete(RUNS).where(RUNS.c.id == run, RUNS.c.state.in_(RESTING)))
            if not gone.rowcount:
                state = db.execute(select(RUNS.c.state).where(RUNS.c.id == run)).scalar()
                if state is None:
                    raise NotFound(f"There is no run {run!r} here; it may have been deleted.")
                raise BadInput(f"Run {run} is {state}; stop it first, then delete it.")
            given = select(LABELS.c.id).where(LABELS.c.subject == run)
            for beside in (LABEL_VISITORS, LABEL_ROLES):
                db.execute(delete(beside).where(beside.c.label.in_(given)))
            db.execute(delete(LABELS).where(LABELS.c.subject == run))
            for table in HANGS_ON_RUN:
                db.execute(delete(table).where(table.c.run == run))
