"""Tables of the store.

Later versions may add tables to existing databases, but not columns; hence the tables at the end.
"""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

METADATA = MetaData()


class Real(TypeDecorator[float]):
    """Double with NaN stored as NULL, as SQLite does."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Any) -> float | None:
        return None if value is None or math.isnan(value) else float(value)

    def process_result_value(self, value: float | None, dialect: Any) -> float:
        return math.nan if value is None else value


def _run_key() -> Column[str]:
    return Column("run", String(64), primary_key=True)


# Columns have the names of version 0.1.0: `words` is `RunRecord.metadata`, `labeller` is
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

# The checkpoint before the latest, in case the latest is damaged.
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

# Separate from their records, so that lists of uploads do not load the tables.
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

# Login sessions of users; the id is the hash of the cookie.
LOGINS = Table(
    "logins",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("user", Text, nullable=False),
    Column("credential", String(64), nullable=False),
    Column("created", Double, nullable=False),
    Column("used", Double, nullable=False),
)

# Servers that share the database, with heartbeats, and their claims of runs.
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

# Origin of a run as one-way codes (`scant.runs.access`), "" if unknown.
RUN_ORIGINS = Table(
    "run_origins",
    METADATA,
    _run_key(),
    Column("address", String(64), nullable=False, index=True),
    Column("presenter", String(64), nullable=False),
)

# Total worker time of a run in seconds.
RUN_TIMES = Table(
    "run_times",
    METADATA,
    _run_key(),
    Column("seconds", Double, nullable=False),
)

# Visitor who gave a label; the name in `labels` is only displayed.
LABEL_VISITORS = Table(
    "label_visitors",
    METADATA,
    Column("label", Integer, primary_key=True, autoincrement=False),
    Column("visitor", String(128), nullable=False),
)

# Role and uncertainty of labels, other than ordinary certain ones.
LABEL_ROLES = Table(
    "label_roles",
    METADATA,
    Column("label", Integer, primary_key=True, autoincrement=False),
    Column("role", String(16), nullable=False),
    Column("unsure", Boolean, nullable=False),
)
