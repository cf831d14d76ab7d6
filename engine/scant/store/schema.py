"""Tables of the store.

A later version may add tables to a database of an earlier one, not columns: hence those at the end.
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

# Where a run was submitted from. Both are one-way codes (`scant.runs.access`), "" where unknown.
RUN_ORIGINS = Table(
    "run_origins",
    METADATA,
    _run_key(),
    Column("address", String(64), nullable=False, index=True),
    Column("presenter", String(64), nullable=False),
)

# Seconds that a run has held a worker, all its attempts together.
RUN_TIMES = Table(
    "run_times",
    METADATA,
    _run_key(),
    Column("seconds", Double, nullable=False),
)

# The visitor who gave a label, as the server knows them; the name in `labels` is only shown.
LABEL_VISITORS = Table(
    "label_visitors",
    METADATA,
    Column("label", Integer, primary_key=True, autoincrement=False),
    Column("visitor", String(128), nullable=False),
)

# What kind of label it is, where it is not plainly the answer of a person who was sure.
LABEL_ROLES = Table(
    "label_roles",
    METADATA,
    Column("label", Integer, primary_key=True, autoincrement=False),
    Column("role", String(16), nullable=False),
    Column("unsure", Boolean, nullable=False),
)
