"""Tables beside those of `schema`: who may steer a run, what it has used, who gave a label.

They stand apart because tables may be added to a database of an earlier version, columns may not.
"""

from __future__ import annotations

from scant.store.schema import METADATA
from sqlalchemy import Column, Double, Integer, String, Table

# Where a run was submitted from. Both are one-way codes (`scant.runs.access`), "" where unknown.
RUN_ORIGINS = Table(
    "run_origins",
    METADATA,
    Column("run", String(64), primary_key=True),
    Column("address", String(64), nullable=False, index=True),
    Column("presenter", String(64), nullable=False),
)

# Seconds that a run has held a worker, all its attempts together.
RUN_TIMES = Table(
    "run_times",
    METADATA,
    Column("run", String(64), primary_key=True),
    Column("seconds", Double, nullable=False),
)

# The visitor who gave a label, as the server knows them; the name in `labels` is only shown.
LABEL_VISITORS = Table(
    "label_visitors",
    METADATA,
    Column("label", Integer, primary_key=True, autoincrement=False),
    Column("visitor", String(128), nullable=False),
)
