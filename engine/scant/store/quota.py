"""Quotas: free disk space, and stored tables per owner."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sqlalchemy import Engine, func, select

from scant.data_dir import data_dir
from scant.errors import BadInput, Unavailable
from scant.store.schema import UPLOAD_TABLES, UPLOADS

GB = 10**9
DISK_RESERVE = 1.0  # GB of disk that stay free, unless SCANT_DISK_RESERVE is set
TABLES = 20  # maximum number of tables of an owner
TABLE_BYTES = 1 * GB  # maximum stored size of the tables of an owner


def disk_reserve() -> int:
    """Return the bytes of the disk that stay free: SCANT_DISK_RESERVE (GB), else `DISK_RESERVE`.

    Raises:
        BadInput: SCANT_DISK_RESERVE is not a number of GB.
    """
    given = os.environ.get("SCANT_DISK_RESERVE", "")
    try:
        reserve = float(given) if given else DISK_RESERVE
    except ValueError:
        reserve = -1.0
    if not 0 <= reserve < float("inf"):
        raise BadInput(f"SCANT_DISK_RESERVE must be a number of GB, 0 or more; got {given!r}.")
    return round(reserve * GB)


class Quota:
    """Refuses what there is no room for. Methods block."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def check_disk(self, size: int = 0) -> None:
        """Check that `size` bytes can be written such that the reserve stays free.

        The disk is that of the SQLite database, else of the data directory.

        Raises:
            Unavailable: There is not enough space.
        """
        reserve, free = disk_reserve(), shutil.disk_usage(self._folder()).free
        if free - size < reserve:
            raise Unavailable(
                f"The disk of this server is nearly full: {free / GB:.1f} GB are free, and "
                f"{reserve / GB:.1f} GB are reserved. Nothing more is stored until its operator "
                "makes room; you can delete tables that you no longer need."
            )

    def check_uploads(self, owner: str, size: int) -> None:
        """Check that an owner may store another table of `size` bytes.

        Raises:
            BadInput: The owner has too many tables, or too large ones.
        """
        size_of = func.coalesce(func.sum(func.length(UPLOAD_TABLES.c.parquet)), 0)
        tables = UPLOADS.join(UPLOAD_TABLES, UPLOAD_TABLES.c.upload == UPLOADS.c.id)
        stored = select(func.count(), size_of).select_from(tables)
        with self.engine.connect() as db:
            count, total = db.execute(stored.where(UPLOADS.c.owner == owner)).one()
        if count >= TABLES:
            raise BadInput(
                f"You have {count} tables on this server, which is the limit; delete one first."
            )
        if total + size > TABLE_BYTES:
            raise BadInput(
                f"Your tables on this server take {total / 1e6:,.0f} MB, and this one has "
                f"{size / 1e6:,.0f} MB; the limit is {TABLE_BYTES / 1e6:,.0f} MB. Delete one first."
            )

    def _folder(self) -> Path:
        url = self.engine.url
        if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
            return Path(url.database).parent
        folder = data_dir()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
