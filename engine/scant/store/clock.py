"""Clock of the database, which is the same for all its servers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class now(FunctionElement[float]):  # noqa: N801 - used like SQLAlchemy's functions
    """SQL expression for the time of the database in seconds since the epoch."""

    type = Double()
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite(_element: Any, _compiler: Any, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgres(_element: Any, _compiler: Any, **_: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"
