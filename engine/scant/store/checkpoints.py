"""Checkpoints in the store: where a run goes on from when it is attempted once more."""

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
    """The last two checkpoints of each run. Methods block; a server calls them off its loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def begin_attempt(self, run_id: str, server: str = "") -> tuple[int, Checkpoint | None, str]:
        """Count one more attempt of a run, now starting.

        Returns:
            Its number, where it goes on from, and what was damaged of that, in a sentence or "".

        Raises:
            TakenOver: The run is in the care of another than `server`.
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
        """Where the run can go on from, None before the first checkpoint and after the end.

        Where the latest is damaged it is the one before.
        """
        return self._whole_checkpoint(run_id)[0]

    def _whole_checkpoint(self, run_id: str) -> tuple[Checkpoint | None, str]:
        """The latest checkpoint that is whole, and a sentence on those that are not."""
        rows: list[Any] = []
        with self.engine.connect() as db:
            for table in GENERATIONS:
                query = select(table.c.step, table.c.blob).where(table.c.run == run_id)
                rows += db.execute(query).all()
        damaged: list[int] = []
        whole = None
        for row in rows:
            try:
                blob = unseal(row.blob, f"The checkpoint of step {row.step} of run {run_id}")
            except Damaged as error:
                log.warning("%s", error)
                damaged.append(row.step)
            else:
                whole = Checkpoint(row.step, blob)
                break
        if not damaged:
            return whole, ""
        where = " and ".join(f"step {step}" for step in sorted(damaged))
        which = "The checkpoint of" if len(damaged) == 1 else "The checkpoints of"
        then = f"the run goes on from the one before, of step {whole.step}" if whole else (
            "the run begins anew")  # fmt: skip
        are = "is" if len(damaged) == 1 else "are"
        return whole, f"{which} {where} {are} damaged in the database; {then}."


def keep_earlier(db: Connection, run: str, step: int) -> None:
    """Let the present checkpoint be the one before, unless it is the one that is put down again."""
    now = select(CHECKPOINTS.c.run, CHECKPOINTS.c.step, CHECKPOINTS.c.blob)
    now = now.where(CHECKPOINTS.c.run == run, CHECKPOINTS.c.step != step)
    if db.execute(now.with_only_columns(CHECKPOINTS.c.step)).first() is not None:
        table = EARLIER_CHECKPOINTS
        db.execute(delete(table).where(table.c.run == run))
        db.execute(insert(table).from_select(["run", "step", "blob"], now))
