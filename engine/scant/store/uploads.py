"""Uploads in the store: the tables that people gave us, and how they take them back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO

import pandas as pd
from sqlalchemy import Connection, Engine, delete, insert, select, update

from scant.errors import BadInput, NotAllowed, NotFound
from scant.events import FINAL, Finished, decode, encode
from scant.store.quota import Quota
from scant.store.records import UploadRecord, new_id
from scant.store.schema import (
    CHECKPOINTS,
    EARLIER_CHECKPOINTS,
    LABEL_ROLES,
    LABEL_VISITORS,
    LABELS,
    MODELS,
    NOTES,
    REPORTS,
    RUNS,
    SNAPSHOTS,
    UPLOAD_TABLES,
    UPLOADS,
)
from scant.store.sealed import seal, unseal

UPLOAD_DAYS = 30.0


class UploadRepository:
    """The tables that visitors uploaded, as many as the quota has room for. Methods block."""

    def __init__(self, engine: Engine, quota: Quota) -> None:
        self.engine = engine
        self._quota = quota

    def add_upload(
        self,
        frame: pd.DataFrame,
        *,
        owner: str,
        name: str,
        study: str,
        sha256: str = "",
        notes: Sequence[str] = (),
    ) -> str:
        """Keep a table that was read without problems; returns its unguessable id.

        Raises:
            BadInput: The owner has too many tables here already, or too large ones.
            Unavailable: The disk has no room for it.
        """
        upload_id = new_id()
        buffer = BytesIO()
        frame.to_parquet(buffer, index=False)
        self._quota.check_uploads(owner, buffer.tell())
        self._quota.check_disk(buffer.tell())
        row = {
            "id": upload_id,
            "owner": owner,
            "name": name,
            "study": study,
            "rows": len(frame),
            "columns": [str(c) for c in frame.columns],
            "sha256": sha256,
            "created": time.time(),
            "notes": list(notes),
        }
        with self.engine.begin() as db:
            db.execute(insert(UPLOADS).values(row))
            db.execute(insert(UPLOAD_TABLES).values(upload=upload_id, parquet=buffer.getvalue()))
        return upload_id

    def upload(self, upload_id: str) -> UploadRecord:
        """An upload's record, which outlives its table.

        Raises:
            NotFound: There was no such upload.
        """
        with self.engine.connect() as db:
            row = db.execute(select(UPLOADS).where(UPLOADS.c.id == upload_id)).first()
        if row is None:
            raise NotFound(f"There is no upload {upload_id!r} here.")
        return UploadRecord.of(row._mapping)

    def uploads(self, owner: str) -> list[UploadRecord]:
        """The owner's uploads that are still kept, newest first."""
        query = select(UPLOADS).where(UPLOADS.c.owner == owner, UPLOADS.c.deleted.is_(None))
        with self.engine.connect() as db:
            rows = db.execute(query.order_by(UPLOADS.c.created.desc()))
            return [UploadRecord.of(row._mapping) for row in rows]

    def upload_parquet(self, upload_id: str) -> bytes:
        """An upload's table as Parquet.

        Raises:
            NotFound: There was no such upload, or it was deleted.
        """
        record = self.upload(upload_id)
        query = select(UPLOAD_TABLES.c.parquet).where(UPLOAD_TABLES.c.upload == upload_id)
        with self.engine.connect() as db:
            blob = db.execute(query).scalar()
        if blob is None:
            raise NotFound(f"The table {record.name!r} was deleted; upload it again to use it.")
        return bytes(blob)

    def upload_table(self, upload_id: str) -> pd.DataFrame:
        """An upload's table. Raises as `upload_parquet` does."""
        return pd.read_parquet(BytesIO(self.upload_parquet(upload_id)), use_threads=False)

    def delete_upload(self, upload_id: str, owner: str | None) -> None:
        """Delete an upload's table and every row of it that hangs on its runs.

        The runs' records, curves and figures stay, with a note; their models, checkpoints,
        snapshots and the arrays of their reports go, for these were made from the table's rows.

        Args:
            upload_id: The upload.
            owner: Who asks, as `upload` knows its owner; None: the server itself, or its operator.

        Raises:
            NotFound: There was no such upload.
            NotAllowed: It is somebody else's.
            BadInput: A run is still using it.
        """
        name = self.upload(upload_id).name
        with self.engine.begin() as db:
            theirs = select(UPLOADS.c.owner).where(UPLOADS.c.id == upload_id)
            if owner is not None and (not owner or db.execute(theirs).scalar() != owner):
                raise NotAllowed(
                    f"The table {name!r} can be deleted only by the visitor who uploaded it; "
                    "ask them, or this server's operator."
                )
            query = select(RUNS.c.id, RUNS.c.state).where(RUNS.c.data == f"upload:{upload_id}")
            runs = db.execute(query).all()
            for run in runs:
                if run.state not in FINAL:
                    raise BadInput(
                        f"The table {name!r} is in use by a run that is {run.state}; "
                        "stop that run first, then delete the table."
                    )
            db.execute(delete(UPLOAD_TABLES).where(UPLOAD_TABLES.c.upload == upload_id))
            given = select(LABELS.c.id).where(LABELS.c.subject == upload_id)
            for beside in (LABEL_VISITORS, LABEL_ROLES):
                db.execute(delete(beside).where(beside.c.label.in_(given)))
            db.execute(delete(LABELS).where(LABELS.c.subject == upload_id))
            db.execute(update(UPLOADS).where(UPLOADS.c.id == upload_id).values(deleted=time.time()))
            for run in runs:
                _strip(db, run.id, name)

    def purge_uploads(self, days: float = UPLOAD_DAYS) -> int:
        """Delete uploads older than `days` days; returns how many. One in use waits its turn."""
        query = select(UPLOADS.c.id).where(
            UPLOADS.c.deleted.is_(None), UPLOADS.c.created < time.time() - days * 86400
        )
        with self.engine.connect() as db:
            old = list(db.execute(query).scalars())
        purged = 0
        for upload_id in old:
            try:
                self.delete_upload(upload_id, owner=None)
            except BadInput:
                continue
            purged += 1
        return purged


def _strip(db: Connection, run: str, name: str) -> None:
    """Take from a finished run all that was made from the rows of its deleted table."""
    blob = db.execute(select(REPORTS.c.blob).where(REPORTS.c.run == run)).scalar()
    if blob is not None:
        try:
            finished = decode(unseal(blob, f"The report of run {run}"))[0]
        except ValueError:  # what is damaged goes altogether
            db.execute(delete(REPORTS).where(REPORTS.c.run == run))
        else:
            assert isinstance(finished, Finished)
            bare = replace(finished, report=replace(finished.report, arrays={}))
            sealed = seal(encode([bare]))
            db.execute(update(REPORTS).where(REPORTS.c.run == run).values(blob=sealed))
    for table in (CHECKPOINTS, EARLIER_CHECKPOINTS, MODELS, SNAPSHOTS):
        db.execute(delete(table).where(table.c.run == run))
    text = f"The table {name!r} of this run was deleted; its curve and its figures remain."
    db.execute(insert(NOTES).values(run=run, text=text))
