"""Conversion of temporary database failures to one error with a message without SQL.

The operation can be retried. The failed transaction was not stored, unless the connection was lost
between commit and confirmation; writes of runs are therefore safe to repeat.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from scant.errors import Unavailable

LOCKED = "its database is locked by another program"
FULL = "the disk of its database is full"
READ_ONLY = "its database may only be read"
DISK = "the disk of its database cannot be read or written"
CLOSED = "its database cannot be opened"
BROKEN = "its database is damaged"
SILENT = "its database does not answer"

# By primary result code of SQLite (https://sqlite.org/rescode.html).
_SQLITE = {
    5: LOCKED,
    6: LOCKED,
    7: SILENT,  # out of memory
    8: READ_ONLY,
    9: SILENT,  # interrupted
    10: DISK,
    11: BROKEN,
    13: FULL,
    14: CLOSED,
    15: LOCKED,  # the locking protocol
    26: BROKEN,  # not a database
}
# By SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_POSTGRES = {"25006": READ_ONLY, "53100": FULL, "55P03": LOCKED}

log = logging.getLogger(__name__)


class StoreTrouble(Unavailable):
    """Error for a database that cannot be reached or written at the moment.

    Args:
        why: Reason, one of the constants of this module such as `FULL`.
    """

    def __init__(self, why: str = SILENT) -> None:
        super().__init__(
            f"The server cannot store anything at the moment, because {why}; try again later."
        )
        self.why = why


def trouble_of(error: BaseException | None, disconnected: bool = False) -> str:
    """Return the reason for a database failure; "" if the statement is invalid.

    Args:
        error: Exception of the driver or SQLAlchemy.
        disconnected: True if the connection was lost.
    """
    if isinstance(error, StoreTrouble):
        return error.why
    if isinstance(error, NoConnection):
        return SILENT
    if isinstance(error, sqlite3.Error):
        return _SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "")
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        return trouble_of(original)
    state = getattr(original if original is not None else error, "sqlstate", None)
    if state in _POSTGRES:
        return _POSTGRES[state]
    if isinstance(error, OperationalError | InterfaceError):
        return SILENT
    # Errors of psycopg, which may not be installed.
    names = {kind.__name__ for kind in type(error).__mro__}
    psycopg = type(error).__module__.startswith("psycopg")
    return SILENT if disconnected or (psycopg and names & {"OperationalError", "InterfaceError"}) \
        else ""  # fmt: skip


def translate(engine: Engine) -> None:
    """Raise `StoreTrouble` instead of exceptions for temporary database failures."""
    event.listen(engine, "handle_error", _raise_trouble)


def _raise_trouble(context: ExceptionContext) -> Any:
    reason = trouble_of(context.original_exception, bool(context.is_disconnect))
    reason = reason or (trouble_of(context.sqlalchemy_exception) if context.is_disconnect else "")
    if reason and not context.is_pre_ping:
        log.debug("%s: %s", reason, context.original_exception)
        raise StoreTrouble(reason) from context.original_exception
