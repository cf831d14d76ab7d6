"""Claims of runs by servers that share a database.

Every server registers with an id, sends heartbeats, and claims the runs that it queues and trains.
The run of a server that is gone may be claimed by another server, exactly once.
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

DEAD_SECONDS = 30.0  # without heartbeats, after which a server on another machine is gone
_BIRTH_SECONDS = 2.0  # tolerance of the start time of a process after changes of the clock

# By the clock of the database, since those of machines may differ by minutes.
_SILENCE = select(SERVERS, (now() - SERVERS.c.beat).label("silence"))


class TakenOver(RuntimeError):
    """Error for writing to a run of another server; nothing was written."""


class ClaimRepository:
    """Repository of servers and their claims, with blocking methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def sign_in(self, server: str) -> None:
        """Register a server of this process, or update its heartbeat."""
        with self.engine.begin() as db:
            statement = update(SERVERS).where(SERVERS.c.id == server).values(beat=now())
            if not db.execute(statement).rowcount:
                process = {
                    "host": socket.gethostname(),
                    "pid": os.getpid(),
                    "born": _born(os.getpid()),
                }
                db.execute(insert(SERVERS).values(id=server, beat=now(), **process))

    def sign_out(self, server: str) -> None:
        """Remove a server, so that its runs can be claimed at once."""
        with self.engine.begin() as db:
            db.execute(delete(SERVERS).where(SERVERS.c.id == server))

    def claim(self, run: str, server: str) -> None:
        """Claim a run for a server, regardless of earlier claims."""
        with self.engine.begin() as db:
            db.execute(delete(CLAIMS).where(CLAIMS.c.run == run))
            db.execute(insert(CLAIMS).values(run=run, server=server, wish=""))

    def acquire_orphans(self, server: str, held: Collection[str] | None = None) -> list[RunRecord]:
        """Claim the live runs that no living server has claimed, oldest first.

        Args:
            server: Id of the claiming server.
            held: Runs that the server knows as its own. Other runs with its claim are returned,
                since the confirmation of the claim was lost. None for all runs with its claim.
        """
        inactive = [s.value for s in (*FINAL, State.PAUSED)]
        acquired = []
        other_servers = _SILENCE.where(SERVERS.c.id != server)
        with self.engine.begin() as db:
            rows = db.execute(other_servers).all()
            living = [row.id for row in rows if _lives(row.host, row.pid, row.born, row.silence)]
            claiming = [*living, *([server] if held is None else [])]
            query = (
                select(RUNS, CLAIMS.c.server)
                .outerjoin(CLAIMS, CLAIMS.c.run == RUNS.c.id)
                .where(RUNS.c.state.not_in(inactive))
                .where(or_(CLAIMS.c.server.is_(None), CLAIMS.c.server.not_in(claiming)))
                .order_by(RUNS.c.created)
            )
            if held:
                query = query.where(RUNS.c.id.not_in(list(held)))
            for row in db.execute(query).all():
                values = dict(row._mapping)
                if _claimed(db, row.id, values.pop("server"), server):
                    acquired.append(RunRecord.of(values))
            dead = [row.id for row in rows if row.id not in living]
            db.execute(delete(SERVERS).where(SERVERS.c.id.in_(dead)))
        return acquired

    def read_requests(self, server: str, held: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """Read requests of other servers for the runs of a server, and lost claims.

        Args:
            server: Id of the server.
            held: Runs that the server knows as its own.

        Returns:
            Requests by run, each returned once, and the runs in `held` with claims of other
            servers.
        """
        own = select(CLAIMS.c.run, CLAIMS.c.wish).where(CLAIMS.c.server == server)
        with self.engine.begin() as db:
            wishes = {row.run: row.wish for row in db.execute(own.where(CLAIMS.c.wish != ""))}
            for run, wish in wishes.items():
                statement = update(CLAIMS).where(CLAIMS.c.run == run, CLAIMS.c.wish == wish)
                db.execute(statement.values(wish=""))
            taken = select(CLAIMS.c.run).where(CLAIMS.c.server != server, CLAIMS.c.run.in_(held))
            lost_claims = list(db.execute(taken).scalars()) if held else []
        return wishes, lost_claims

    def wish(self, run: str, wish: str) -> None:
        """Store a request ("pause", "resume" or "stop") for the server of a run."""
        with self.engine.begin() as db:
            db.execute(update(CLAIMS).where(CLAIMS.c.run == run).values(wish=wish))

    def served(self) -> bool:
        """Return True if there is a living server on this database."""
        with self.engine.connect() as db:
            return bool(_living(db))

    def is_claimed(self, run: str) -> bool:
        """Return True if a living server has claimed a run."""
        with self.engine.connect() as db:
            query = select(CLAIMS.c.server).where(CLAIMS.c.run == run)
            return db.execute(query).scalar() in _living(db)


def _living(db: Connection) -> list[str]:
    """Return the ids of the living servers."""
    rows = db.execute(_SILENCE).all()
    return [row.id for row in rows if _lives(row.host, row.pid, row.born, row.silence)]


def check_claim(db: Connection, run: str, server: str, ending: tuple[str, str] | None) -> None:
    """Check within a transaction that a run belongs to the server that writes to it.

    Args:
        db: Transaction, which must have written before, since SQLite is locked only then.
        run: Id of the run.
        server: Id of the writing server; "" for no check.
        ending: State and reason of an end that an earlier call may have stored without
            confirmation; the end of a run removes its claim.

    Raises:
        TakenOver: The run does not belong to the server.
    """
    if not server:
        return
    claim = select(CLAIMS.c.server).where(CLAIMS.c.run == run).with_for_update()
    if db.execute(claim).scalar() == server:
        return
    state = select(RUNS.c.state, RUNS.c.reason).where(RUNS.c.id == run)
    row = db.execute(state).first()
    if ending is None or row is None or tuple(row) != ending:
        raise TakenOver(run)


def _claimed(db: Connection, run: str, before: str | None, server: str) -> bool:
    """Claim a run without a claim or of a dead server; False if another server was faster."""
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
    """Return True if a server lives: by process on this machine, else by heartbeat."""
    if host == socket.gethostname():
        return abs(_born(pid) - born) < _BIRTH_SECONDS
    return silence < DEAD_SECONDS


def _born(pid: int) -> float:
    """Return the start time of a process in seconds since the epoch; 0 if it does not exist."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0
