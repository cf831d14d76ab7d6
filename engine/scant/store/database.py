"""Opening of and transactions on the database: SQLite by default, Postgres by URL."""

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

_LOCK = 0x5CA27  # arbitrary id of the advisory lock
BUSY_SECONDS = 3.0  # timeout for the lock of SQLite; important writes are retried
# Timeouts that detect an unreachable Postgres server: connection (seconds), unacknowledged data
# (milliseconds), and TCP keepalive.
_TIMEOUTS = {
    "connect_timeout": 3,
    "tcp_user_timeout": 8000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def connect(url: str | None = None) -> Engine:
    """Open the database and create missing tables.

    Args:
        url: SQLAlchemy URL; None for DATABASE_URL, else SQLite in the data directory.

    Raises:
        BadInput: The database cannot be opened or written.
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
        _restrict_access(address.database)
        # A cached statement keeps a copy of its last blob in each connection.
        engine = create_engine(url, connect_args={"cached_statements": 0})
        event.listen(engine, "connect", _prepare_sqlite)
    else:
        timeouts = _TIMEOUTS if address.get_backend_name() == "postgresql" else {}
        engine = create_engine(url, pool_pre_ping=True, connect_args=timeouts)
    with exclusive(engine):
        METADATA.create_all(engine)
    if engine.dialect.name == "sqlite":
        enable(engine)
    translate(engine)
    return engine


@contextmanager
def exclusive(engine: Engine) -> Iterator[None]:
    """Hold a lock against other servers on the same Postgres database."""
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
    """Open a transaction that survives a power failure after its commit.

    Other transactions on SQLite may lose the last seconds in a power failure, but not if the
    process is killed. Postgres always waits for the disk.
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


def _restrict_access(database: str | None) -> None:
    """Create an SQLite file with access for its owner only; related files inherit the mode."""
    if not database or database == ":memory:" or database.startswith("file:"):
        return
    file = Path(database)
    if file.parent.is_dir():  # else SQLite reports the error
        with suppress(OSError):  # reported by SQLite
            private_file(file)
            for companion in ("-wal", "-shm", "-journal"):
                if (related := file.with_name(file.name + companion)).exists():
                    private_file(related)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:  # for older files see `space`
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    # Readers do not wait for the writer (WAL), and deleted content is overwritten.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"busy_timeout={1000 * BUSY_SECONDS:.0f}",
        "secure_delete=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
