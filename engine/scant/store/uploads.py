"""Uploaded tables in the store, and their deletion."""

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

UPLOAD_DAYS = 30.0  # after which uploads are deleted by default


class UploadRepository:
    """Repository of uploaded tables within quotas, with blocking methods."""

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
        """Store a checked table and return its secret id.

        Raises:
            BadInput: The owner would exceed the quota.
            Unavailable: There is not enough disk space.
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
            table = {"upload": upload_id, "parquet": buffer.getvalue()}
            db.execute(insert(UPLOAD_TABLES), table)  # statements are cached with their values
        return upload_id

    def upload(self, upload_id: str) -> UploadRecord:
        """Return the record of an upload, which exists even after its table is deleted.

        Raises:
            NotFound: There was no such upload.
        """
        with self.engine.connect() as db:
            row = db.execute(select(UPLOADS).where(UPLOADS.c.id == upload_id)).first()
        if row is None:
            raise NotFound(f"There is no upload {upload_id!r} here.")
        return UploadRecord.of(row._mapping)

    def uploads(self, owner: str) -> list[UploadRecord]:
        """Return the uploads of an owner that are not deleted, newest first."""
        query = select(UPLOADS).where(UPLOADS.c.owner == owner, UPLOADS.c.deleted.is_(None))
        with self.engine.connect() as db:
            rows = db.execute(query.order_by(UPLOADS.c.created.desc()))
            return [UploadRecord.of(row._mapping) for row in rows]

    def upload_parquet(self, upload_id: str) -> bytes:
        """Return the table of an upload as Parquet.

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
        """Return the table of an upload. Raises as `upload_parquet` does."""
        return pd.read_parquet(BytesIO(self.upload_parquet(upload_id)), use_threads=False)

    def delete_upload(self, upload_id: str, owner: str | None) -> None:
        """Delete the table of an upload and everything derived from its rows.

        Models, checkpoints, snapshots and arrays of reports of its runs are deleted. Records,
        training curves and figures of the runs remain, with a note.

        Args:
            upload_id: Id of the upload.
            owner: Visitor who requests the deletion; None for the server or its operator.

        Raises:
            NotFound: There was no such upload.
            NotAllowed: The upload belongs to another visitor.
            BadInput: The table is in use by a run.
        """
        name = self.upload(upload_id).name
        with self.engine.begin() as db:
            owner_query = select(UPLOADS.c.owner).where(UPLOADS.c.id == upload_id)
            if owner is not None and (not owner or db.execute(owner_query).scalar() != owner):
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
            label_ids = select(LABELS.c.id).where(LABELS.c.subject == upload_id)
            for related in (LABEL_VISITORS, LABEL_ROLES):
                db.execute(delete(related).where(related.c.label.in_(label_ids)))
            db.execute(delete(LABELS).where(LABELS.c.subject == upload_id))
            db.execute(update(UPLOADS).where(UPLOADS.c.id == upload_id).values(deleted=time.time()))
            for run in runs:
                _strip(db, run.id, name)

    def purge_uploads(self, days: float = UPLOAD_DAYS) -> int:
        """Delete uploads older than `days` days unless they are in use, and return their number."""
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
    """Delete everything of a finished run that was derived from the rows of its table."""
    blob = db.execute(select(REPORTS.c.blob).where(REPORTS.c.run == run)).scalar()
    if blob is not None:
        try:
            finished = decode(unseal(blob, f"The report of run {run}"))[0]
        except ValueError:  # damaged reports are deleted
            db.execute(delete(REPORTS).where(REPORTS.c.run == run))
        else:
            assert isinstance(finished, Finished)
            stripped = replace(finished, report=replace(finished.report, arrays={}))
            sealed = seal(encode([stripped]))
            db.execute(update(REPORTS).where(REPORTS.c.run == run).values(blob=sealed))
    for table in (CHECKPOINTS, EARLIER_CHECKPOINTS, MODELS, SNAPSHOTS):
        db.execute(delete(table).where(table.c.run == run))
    text = f"The table {name!r} of this run was deleted; its curve and its figures remain."
    db.execute(insert(NOTES).values(run=run, text=text))
