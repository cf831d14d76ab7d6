"""How a database is opened and written: SQLite by default, Postgres by its address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, make_url, select

from scant.data_dir import data_dir
from scant.store.opening import opening
from scant.store.private_files import private_file, private_folder
from scant.store.schema import METADATA
from scant.store.space import enable
from scant.store.trouble import translate

_LOCK = 0x5CA27  # any number that is nobody else's
BUSY_SECONDS = 3.0  # that a statement waits for SQLite's lock; what must be written tries again
# A Postgres that has vanished is noticed: seconds to connect, seconds without an answer to data
# sent (in milliseconds) and to a sign of life.
_LIVELY = {
    "connect_timeout": 3,
    "tcp_user_timeout": 8000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def connect(url: str | None = None) -> Engine:
    """Open the database and make what tables it lacks.

    Args:
        url: An address as in DATABASE_URL, or None: that variable, else SQLite in the data
            directory.

    Raises:
        BadInput: There is no database that can be written.
    """
    url = url or os.environ.get("DATABASE_URL") or ""
    with opening(url):
        return _connect(url or _default_url())


def _connect(url: str) -> Engine:
    for old in ("postgres://", "postgresql://"):
        if url.startswith(old):
            url = "postgresql+psycopg://" + url.removeprefix(old)
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        _close_to_others(address.database)
        engine = create_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
    else:
        lively = _LIVELY if address.get_backend_name() == "postgresql" else {}
        engine = create_engine(url, pool_pre_ping=True, connect_args=lively)
    with exclusive(engine):
        METADATA.create_all(engine)
    if engine.dialect.name == "sqlite":
        enable(engine)
    translate(engine)
    return engine


@contextmanager
def exclusive(engine: Engine) -> Iterator[None]:
    """Let no other server on the same Postgres do what must be done once, in the meantime."""
    if engine.dialect.name == "sqlite":
        yield
        return
    with engine.connect() as db:
        db.execute(select(func.pg_advisory_lock(_LOCK)))
        try:
            yield
        finally:
            db.execute(select(func.pg_advisory_unlock(_LOCK)))


@contextmanager
def durable_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that is on the disk itself when it is over, come a power cut or not.

    Elsewhere SQLite leaves the moment of writing to the system, which loses the last seconds when
    the power fails (not when a process is killed); Postgres waits for the disk anyway.
    """
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as db:
        if sqlite:
            db.exec_driver_sql("PRAGMA synchronous=FULL")
            db.commit()
        try:
            with db.begin():
                yield db
        finally:
            if sqlite:
                db.exec_driver_sql("PRAGMA synchronous=NORMAL")


def _default_url() -> str:
    folder = data_dir()
    private_folder(folder)
    return f"sqlite:///{folder / 'scant.db'}"


def _close_to_others(database: str | None) -> None:
    """Make an SQLite file before SQLite does, closed to other users; its companions follow it."""
    if not database or database == ":memory:" or database.startswith("file:"):
        return
    file = Path(database)
    if file.parent.is_dir():  # else SQLite says what is wrong
        with suppress(OSError):  # likewise
            private_file(file)
            for companion in ("-wal", "-shm", "-journal"):
                if (beside := file.with_name(file.name + companion)).exists():
                    private_file(beside)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:  # see `space` of an older file
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    # Readers never wait for the writer (WAL); what is deleted is overwritten, not only unlinked.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"busy_timeout={1000 * BUSY_SECONDS:.0f}",
        "secure_delete=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
