"""Checkpoints in the store, from which further attempts of a run continue."""

from __future__ import annotations

import logging
import time
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, update

from scant.events import Checkpoint
from scant.store.claims import check_claim
from scant.store.schema import CHECKPOINTS, EARLIER_CHECKPOINTS, RUNS
from scant.store.sealed import Damaged, unseal

GENERATIONS = (CHECKPOINTS, EARLIER_CHECKPOINTS)

log = logging.getLogger(__name__)


class CheckpointRepository:
    """Repository of the last two checkpoints of each run, with blocking methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def begin_attempt(self, run_id: str, server: str = "") -> tuple[int, Checkpoint | None, str]:
        """Count a new attempt of a run.

        Returns:
            Number of the attempt, checkpoint to continue from, and a message on damaged checkpoints
            or "".

        Raises:
            TakenOver: The run belongs to another server than `server`.
        """
        with self.engine.begin() as db:
            db.execute(
                update(RUNS)
                .where(RUNS.c.id == run_id)
                .values(attempt=RUNS.c.attempt + 1, heartbeat=time.time())
            )
            check_claim(db, run_id, server, None)
            attempt = db.execute(select(RUNS.c.attempt).where(RUNS.c.id == run_id)).scalar_one()
        return attempt, *self._whole_checkpoint(run_id)

    def checkpoint(self, run_id: str) -> Checkpoint | None:
        """Return the latest checkpoint of a run that is not damaged.

        None before the first checkpoint and after the end of the run.
        """
        return self._whole_checkpoint(run_id)[0]

    def _whole_checkpoint(self, run_id: str) -> tuple[Checkpoint | None, str]:
        """Return the latest checkpoint that is not damaged, and a message on damaged ones."""
        rows: list[Any] = []
        with self.engine.connect() as db:
            for table in GENERATIONS:
                query = select(table.c.step, table.c.blob).where(table.c.run == run_id)
                rows += db.execute(query).all()
        damaged: list[int] = []
        intact = None
        for row in rows:
            try:
                blob = unseal(row.blob, f"The checkpoint of step {row.step} of run {run_id}")
            except Damaged as error:
                log.warning("%s", error)
                damaged.append(row.step)
            else:
                intact = Checkpoint(row.step, blob)
                break
        if not damaged:
            return intact, ""
        steps = " and ".join(f"step {step}" for step in sorted(damaged))
        which = "The checkpoint of" if len(damaged) == 1 else "The checkpoints of"
        consequence = f"the run goes on from the one before, of step {intact.step}" if intact else (
            "the run starts again from the beginning")  # fmt: skip
        verb = "is" if len(damaged) == 1 else "are"
        return intact, f"{which} {steps} {verb} damaged in the database; {consequence}."


def keep_earlier(db: Connection, run: str, step: int) -> None:
    """Move the current checkpoint to the earlier ones, unless it is about to be stored again."""
    now = select(CHECKPOINTS.c.run, CHECKPOINTS.c.step, CHECKPOINTS.c.blob)
    now = now.where(CHECKPOINTS.c.run == run, CHECKPOINTS.c.step != step)
    if db.execute(now.with_only_columns(CHECKPOINTS.c.step)).first() is not None:
        table = EARLIER_CHECKPOINTS
        db.execute(delete(table).where(table.c.run == run))
        db.execute(insert(table).from_select(["run", "step", "blob"], now))
