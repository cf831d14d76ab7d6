"""Disk space that SQLite no longer needs goes back to the system.

Deleted rows leave free pages in the file, and a large transaction a large write-ahead log; SQLite
keeps both for later use. A checkpoint of tens of megabytes every few seconds makes that gigabytes.
Postgres does this by itself.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

PAGES = 4096  # given back at once (16 MiB): other writers wait for no more
MIGRATED_BYTES = 100e6  # a file up to this is rewritten when it is opened, within a second or two
INCREMENTAL = 2


def enable(engine: Engine) -> None:
    """Let a database of an earlier version give pages back, if it is small and nobody else uses it.

    A larger one goes on as before, until somebody has `VACUUM` run by hand.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        mode, pages, size = (
            int(db.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("auto_vacuum", "page_count", "page_size")
        )
        if mode != INCREMENTAL and pages * size <= MIGRATED_BYTES:
            with suppress(OperationalError):  # locked, read-only or full: then later, or never
                db.exec_driver_sql(f"PRAGMA auto_vacuum={INCREMENTAL}")
                db.exec_driver_sql("VACUUM")


def give_back(engine: Engine) -> bool:
    """Give back some of the pages that are free, and the log as far as nobody reads it.

    Returns:
        Whether there are more.
    """
    if engine.dialect.name != "sqlite":
        return False
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        gives = int(db.exec_driver_sql("PRAGMA auto_vacuum").scalar_one()) == INCREMENTAL
        if gives:
            # It gives back a page a step, and only a script goes on to the last one.
            raw: Any = db.connection.driver_connection
            raw.executescript(f"PRAGMA incremental_vacuum({PAGES})")
        db.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all()
        return gives and int(db.exec_driver_sql("PRAGMA freelist_count").scalar_one()) > 0
