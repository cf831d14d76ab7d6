"""Which server has which run in its care, where several share one database.

Every server signs in under an id of its own and keeps saying that it lives. It claims the runs that
it queues and trains. A run whose server is gone may be claimed by another, once.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence

import psutil
from sqlalchemy import Connection, Engine, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from engine.events import FINAL, State
from engine.store.records import RunRecord
from engine.store.schema import CLAIMS, RUNS, SERVERS

DEAD_SECONDS = 30.0  # a server on another machine that was silent this long is gone
_BIRTH_SECONDS = 2.0  # to which the birth of a process is known, the clock being set meanwhile


class ClaimShelf:
    """The part of the store that holds servers and their claims. Methods block."""

    engine: Engine

    def sign_in(self, server: str) -> None:
        """Say that a server of this process lives; to be said again every few seconds."""
        with self.engine.begin() as db:
            said = update(SERVERS).where(SERVERS.c.id == server).values(beat=time.time())
            if not db.execute(said).rowcount:
                me = {"host": socket.gethostname(), "pid": os.getpid(), "born": _born(os.getpid())}
                db.execute(insert(SERVERS).values(id=server, beat=time.time(), **me))

    def sign_out(self, server: str) -> None:
        """A server closes; its runs may be claimed at once."""
        with self.engine.begin() as db:
            db.execute(delete(SERVERS).where(SERVERS.c.id == server))

    def claim(self, run: str, server: str) -> None:
        """Take a run into a server's care, whoever had it."""
        with self.engine.begin() as db:
            db.execute(delete(CLAIMS).where(CLAIMS.c.run == run))
            db.execute(insert(CLAIMS).values(run=run, server=server, wish=""))

    def take_over(self, server: str) -> list[RunRecord]:
        """Claim the live runs that no living server has in its care; oldest first."""
        resting = [s.value for s in (*FINAL, State.PAUSED)]
        taken = []
        with self.engine.begin() as db:
            rows = db.execute(select(SERVERS).where(SERVERS.c.id != server)).all()
            living = [row.id for row in rows if _lives(row.host, row.pid, row.born, row.beat)]
            query = (
                select(RUNS, CLAIMS.c.server)
                .outerjoin(CLAIMS, CLAIMS.c.run == RUNS.c.id)
                .where(RUNS.c.state.not_in(resting))
                .where(or_(CLAIMS.c.server.is_(None), CLAIMS.c.server.not_in([server, *living])))
                .order_by(RUNS.c.created)
            )
            for row in db.execute(query).all():
                values = dict(row._mapping)
                if _claimed(db, row.id, values.pop("server"), server):
                    taken.append(RunRecord.of(values))
            gone = [row.id for row in rows if row.id not in living]
            db.execute(delete(SERVERS).where(SERVERS.c.id.in_(gone)))
        return taken

    def attend(self, server: str, held: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """What became of a server's runs in the hands of others.

        Args:
            server: Its id.
            held: The runs that it believes to be in its care.

        Returns:
            Wishes by run, each told once; and those of `held` that another server has claimed.
        """
        mine = select(CLAIMS.c.run, CLAIMS.c.wish).where(CLAIMS.c.server == server)
        with self.engine.begin() as db:
            wishes = {row.run: row.wish for row in db.execute(mine.where(CLAIMS.c.wish != ""))}
            for run, wish in wishes.items():
                told = update(CLAIMS).where(CLAIMS.c.run == run, CLAIMS.c.wish == wish)
                db.execute(told.values(wish=""))
            theirs = select(CLAIMS.c.run).where(CLAIMS.c.server != server, CLAIMS.c.run.in_(held))
            lost = list(db.execute(theirs).scalars()) if held else []
        return wishes, lost

    def wish(self, run: str, wish: str) -> None:
        """Leave a wish ("pause", "resume" or "stop") for the server that has a run in its care."""
        with self.engine.begin() as db:
            db.execute(update(CLAIMS).where(CLAIMS.c.run == run).values(wish=wish))

    def served(self) -> bool:
        """Whether a server lives that has this database."""
        with self.engine.connect() as db:
            return bool(_living(db))

    def in_care(self, run: str) -> bool:
        """Whether a living server has a run in its care."""
        with self.engine.connect() as db:
            query = select(CLAIMS.c.server).where(CLAIMS.c.run == run)
            return db.execute(query).scalar() in _living(db)


def _living(db: Connection) -> list[str]:
    """The ids of the servers that live."""
    rows = db.execute(select(SERVERS)).all()
    return [row.id for row in rows if _lives(row.host, row.pid, row.born, row.beat)]


def _claimed(db: Connection, run: str, before: str | None, server: str) -> bool:
    """Claim a run that was in nobody's care, or in a dead server's; False: another was faster."""
    if before is not None:
        same = update(CLAIMS).where(CLAIMS.c.run == run, CLAIMS.c.server == before)
        return db.execute(same.values(server=server, wish="")).rowcount == 1
    try:
        with db.begin_nested():
            db.execute(insert(CLAIMS).values(run=run, server=server, wish=""))
    except IntegrityError:
        return False
    return True


def _lives(host: str, pid: int, born: float, beat: float) -> bool:
    """Whether a server lives: on this machine by its process, elsewhere by its last word."""
    if host == socket.gethostname():
        return abs(_born(pid) - born) < _BIRTH_SECONDS
    return time.time() - beat < DEAD_SECONDS


def _born(pid: int) -> float:
    """When a process began, in seconds since the epoch; 0 where there is none."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0
