"""Which server has which run in its care, where several share one database.

Every server signs in under an id of its own and keeps saying that it lives. It claims the runs that
it queues and trains. A run whose server is gone may be claimed by another, once.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Sequence

import psutil
from sqlalchemy import Connection, Engine, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from scant.events import FINAL, State
from scant.store.clock import now
from scant.store.records import RunRecord
from scant.store.schema import CLAIMS, RUNS, SERVERS

DEAD_SECONDS = 30.0  # a server on another machine that was silent this long is gone
_BIRTH_SECONDS = 2.0  # to which the birth of a process is known, the clock being set meanwhile

# By the database's clock alone: those of two machines may differ by minutes.
_SILENCE = select(SERVERS, (now() - SERVERS.c.beat).label("silence"))


class TakenOver(RuntimeError):
    """A run that a server writes of is in another server's care by now; nothing was written."""


class ClaimRepository:
    """The servers and their claims. Methods block."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def sign_in(self, server: str) -> None:
        """Say that a server of this process lives; to be said again every few seconds."""
        with self.engine.begin() as db:
            statement = update(SERVERS).where(SERVERS.c.id == server).values(beat=now())
            if not db.execute(statement).rowcount:
                me = {"host": socket.gethostname(), "pid": os.getpid(), "born": _born(os.getpid())}
                db.execute(insert(SERVERS).values(id=server, beat=now(), **me))

    def sign_out(self, server: str) -> None:
        """A server closes; its runs may be claimed at once."""
        with self.engine.begin() as db:
            db.execute(delete(SERVERS).where(SERVERS.c.id == server))

    def claim(self, run: str, server: str) -> None:
        """Take a run into a server's care, whoever had it."""
        with self.engine.begin() as db:
            db.execute(delete(CLAIMS).where(CLAIMS.c.run == run))
            db.execute(insert(CLAIMS).values(run=run, server=server, wish=""))

    def acquire_orphans(self, server: str, held: Collection[str] | None = None) -> list[RunRecord]:
        """Claim the live runs that no living server has in its care; oldest first.

        Args:
            server: Who claims.
            held: The runs that it knows to be in its care. Others that it has claimed are among
                the result: whoever claimed them heard no answer. None: all that it has claimed.
        """
        resting = [s.value for s in (*FINAL, State.PAUSED)]
        taken = []
        others = _SILENCE.where(SERVERS.c.id != server)
        with self.engine.begin() as db:
            rows = db.execute(others).all()
            living = [row.id for row in rows if _lives(row.host, row.pid, row.born, row.silence)]
            cared_for = [*living, *([server] if held is None else [])]
            query = (
                select(RUNS, CLAIMS.c.server)
                .outerjoin(CLAIMS, CLAIMS.c.run == RUNS.c.id)
                .where(RUNS.c.state.not_in(resting))
                .where(or_(CLAIMS.c.server.is_(None), CLAIMS.c.server.not_in(cared_for)))
                .order_by(RUNS.c.created)
            )
            if held:
                query = query.where(RUNS.c.id.not_in(list(held)))
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
                statement = update(CLAIMS).where(CLAIMS.c.run == run, CLAIMS.c.wish == wish)
                db.execute(statement.values(wish=""))
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
    rows = db.execute(_SILENCE).all()
    return [row.id for row in rows if _lives(row.host, row.pid, row.born, row.silence)]


def check_claim(db: Connection, run: str, server: str, ending: tuple[str, str] | None) -> None:
    """See that a run is in a server's care, within the transaction that writes of it.

    Args:
        db: The transaction; on SQLite it must have written already, for only then it is alone.
        run: The run.
        server: Who writes; "" is nobody, and not checked.
        ending: The state and the reason of an end that may have been written already, by the same
            write whose answer was lost: an end takes the claim with it.

    Raises:
        TakenOver: It is not, or not any more.
    """
    if not server:
        return
    mine = select(CLAIMS.c.server).where(CLAIMS.c.run == run).with_for_update()
    if db.execute(mine).scalar() == server:
        return
    state = select(RUNS.c.state, RUNS.c.reason).where(RUNS.c.id == run)
    row = db.execute(state).first()
    if ending is None or row is None or tuple(row) != ending:
        raise TakenOver(run)


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


def _lives(host: str, pid: int, born: float, silence: float) -> bool:
    """Whether a server lives: on this machine by its process, elsewhere by its last word."""
    if host == socket.gethostname():
        return abs(_born(pid) - born) < _BIRTH_SECONDS
    return silence < DEAD_SECONDS


def _born(pid: int) -> float:
    """When a process began, in seconds since the epoch; 0 where there is none."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0
