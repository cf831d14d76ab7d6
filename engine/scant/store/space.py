"""Return of unused disk space of SQLite to the system.

SQLite keeps free pages of deleted rows and a large write-ahead log for reuse. With checkpoints of
tens of megabytes every few seconds, these grow to gigabytes. Postgres returns space by itself.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

PAGES = 4096  # returned at once (16 MiB), to limit the waiting time of other writers
MIGRATED_BYTES = 100e6  # maximum size of a file to rewrite on opening, within seconds
INCREMENTAL = 2

log = logging.getLogger(__name__)


def enable(engine: Engine) -> None:
    """Enable the return of pages for a database of an earlier version, if it is small and unused.

    A larger database requires a manual `VACUUM`, which the log names: it locks the database for
    minutes and needs as much disk again.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        mode, pages, size = (
            int(db.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("auto_vacuum", "page_count", "page_size")
        )
        if mode == INCREMENTAL:
            return
        if pages * size > MIGRATED_BYTES:
            log.warning(
                "The database of an earlier version keeps the disk space of what is deleted; to "
                'free it, stop the server and run: sqlite3 %s "PRAGMA auto_vacuum=2; VACUUM"',
                engine.url.database,
            )
        else:
            with suppress(OperationalError):  # locked, read-only or full: skip
                db.exec_driver_sql(f"PRAGMA auto_vacuum={INCREMENTAL}")
                db.exec_driver_sql("VACUUM")


def give_back(engine: Engine) -> bool:
    """Return some free pages and the unused write-ahead log to the system.

    Returns:
        True if there are more free pages.
    """
    if engine.dialect.name != "sqlite":
        return False
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        is_enabled = int(db.exec_driver_sql("PRAGMA auto_vacuum").scalar_one()) == INCREMENTAL
        if is_enabled:
            # The pragma frees one page per step, and only a script runs it to the end.
            raw: Any = db.connection.driver_connection
            raw.executescript(f"PRAGMA incremental_vacuum({PAGES})")
        db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
        return is_enabled and int(db.exec_driver_sql("PRAGMA freelist_count").scalar_one()) > 0
