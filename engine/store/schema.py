"""Tables of the store, and how a database is opened: SQLite by default, Postgres by its address."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from scant.store.opening import opening
from scant.store.private_files import private_file, private_folder
from scant.store.trouble import translate
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    create_engine,
    event,
    func,
    make_url,
    select,
)

METADATA = MetaData()
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


class Real(TypeDecorator[float]):
    """A double whose NaN survives: SQLite makes it NULL, so NULL is what stands for it."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Any) -> float | None:
        return None if value is None or math.isnan(value) else float(value)

    def process_result_value(self, value: float | None, dialect: Any) -> float:
        return math.nan if value is None else value


def _run_key() -> Column[str]:
    return Column("run", String(64), primary_key=True)


# Columns keep the names that 0.1.0 gave them: `words` are `RunRecord.metadata`, `labeller` is
# `Label.labeler`.
RUNS = Table(
    "runs",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("study", String(64), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("data", String(128), nullable=False),
    Column("data_hash", String(64), nullable=False),
    Column("owner", String(128), nullable=False, index=True),
    Column("state", String(16), nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("finished", Double),
    Column("heartbeat", Double),
    Column("version", String(32), nullable=False),
    Column("demonstration", Boolean, nullable=False),
    Column("total_steps", Integer, nullable=False),
    Column("device", String(16), nullable=False),
    Column("words", JSON, nullable=False),
)

TRACE = Table(
    "trace",
    METADATA,
    _run_key(),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("restart", Integer, nullable=False),
    Column("elbo", Real),
    Column("seconds", Real),
    Column("best", Real),
    Column("score", Real),
)

SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    _run_key(),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("blob", LargeBinary, nullable=False),
)

NOTES = Table(
    "notes",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("run", String(64), nullable=False, index=True),
    Column("text", Text, nullable=False),
)

CHECKPOINTS = Table(
    "checkpoints",
    METADATA,
    _run_key(),
    Column("step", Integer, nullable=False),
    Column("blob", LargeBinary, nullable=False),
)

# The checkpoint before the latest: a damaged one costs its steps, not the run.
EARLIER_CHECKPOINTS = Table(
    "earlier_checkpoints",
    METADATA,
    _run_key(),
    Column("step", Integer, nullable=False),
    Column("blob", LargeBinary, nullable=False),
)

REPORTS = Table("reports", METADATA, _run_key(), Column("blob", LargeBinary, nullable=False))
MODELS = Table("models", METADATA, _run_key(), Column("blob", LargeBinary, nullable=False))

UPLOADS = Table(
    "uploads",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("owner", String(128), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("study", String(64), nullable=False),
    Column("rows", Integer, nullable=False),
    Column("columns", JSON, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("created", Double, nullable=False),
    Column("deleted", Double),
    Column("notes", JSON, nullable=False),
)

# Apart from their records, so that a list of uploads does not drag the tables along.
UPLOAD_TABLES = Table(
    "upload_tables",
    METADATA,
    Column("upload", String(64), primary_key=True),
    Column("parquet", LargeBinary, nullable=False),
)

LABELS = Table(
    "labels",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("subject", String(64), nullable=False),
    Column("item", Integer, nullable=False),
    Column("label", Text, nullable=False),
    Column("labeller", String(128), nullable=False),
    Column("created", Double, nullable=False),
    Index("labels_by_subject", "subject", "id"),
)

# Login sessions, where users log in. The id is the hash of what the browser's cookie holds.
LOGINS = Table(
    "logins",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("user", Text, nullable=False),
    Column("credential", String(64), nullable=False),
    Column("created", Double, nullable=False),
    Column("used", Double, nullable=False),
)

# Where several servers share the database: which of them live, and which has which run.
SERVERS = Table(
    "servers",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("born", Double, nullable=False),
    Column("beat", Double, nullable=False),
)

CLAIMS = Table(
    "claims",
    METADATA,
    _run_key(),
    Column("server", String(64), nullable=False, index=True),
    Column("wish", String(16), nullable=False),
)


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
    from scant.data_sources.open import data_dir

    folder = Path(data_dir())
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
    # Readers never wait for the writer (WAL); what is deleted is overwritten, not only unlinked.
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"busy_timeout={1000 * BUSY_SECONDS:.0f}",
        "secure_delete=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
