"""Uploads and labels in the store: what people gave us, and how they take it back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import pandas as pd
from sqlalchemy import Connection, delete, func, insert, select, update

from engine.errors import BadInput, NotAllowed, NotFound
from engine.events import FINAL, Finished, decode, encode
from engine.store.quota import Quota
from engine.store.records import Label, UploadRecord, new_id
from engine.store.schema import (
    CHECKPOINTS,
    EARLIER_CHECKPOINTS,
    LABELS,
    MODELS,
    NOTES,
    REPORTS,
    RUNS,
    SNAPSHOTS,
    UPLOAD_TABLES,
    UPLOADS,
    lasting,
)
from engine.store.schema_limits import LABEL_VISITORS
from engine.store.sealed import seal, unseal

UPLOAD_DAYS = 30.0


class UploadShelf(Quota):
    """The part of the store that holds uploads and labels. Methods block."""

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
        self.check_uploads(owner, buffer.tell())
        self.check_disk(buffer.tell())
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
        return UploadRecord(**row._mapping)

    def uploads(self, owner: str) -> list[UploadRecord]:
        """The owner's uploads that are still kept, newest first."""
        query = select(UPLOADS).where(UPLOADS.c.owner == owner, UPLOADS.c.deleted.is_(None))
        with self.engine.connect() as db:
            rows = db.execute(query.order_by(UPLOADS.c.created.desc()))
            return [UploadRecord(**row._mapping) for row in rows]

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
        return pd.read_parquet(BytesIO(self.upload_parquet(upload_id)))

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
            db.execute(delete(LABEL_VISITORS).where(LABEL_VISITORS.c.label.in_(given)))
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

    def add_label(
        self, subject: str, item: int, label: str, labeller: str, visitor: str = ""
    ) -> None:
        """Put down a label; it outlives a power cut when this returns, and no earlier one is lost.

        Args:
            subject: The id of the run or upload that the item belongs to.
            item: Its row.
            label: The class given; "" takes the labeller's own label back.
            labeller: The name that is shown; of one visitor's names it tells who sat at the desk.
            visitor: Who gave it, as the server knows them; "" outside of a server.

        Raises:
            NotAllowed: There is no label of this visitor and name to take back.
        """
        row: dict[str, Any] = {
            "subject": subject,
            "item": item,
            "label": label,
            "labeller": labeller,
            "created": time.time(),
        }
        with lasting(self.engine) as db:
            if not label and not _has_label(db, subject, item, labeller, visitor):
                raise NotAllowed(
                    f"There is no label of yours on patch {item} to take back; "
                    "a label is taken back by whoever gave it."
                )
            made = db.execute(insert(LABELS).values(row)).inserted_primary_key
            if visitor and made is not None:
                db.execute(insert(LABEL_VISITORS).values(label=made[0], visitor=visitor))

    def labels(self, subject: str) -> list[Label]:
        """Every label given on a run or upload, in the order given."""
        names = ("item", "label", "labeller", "created")
        visitor = func.coalesce(LABEL_VISITORS.c.visitor, "").label("visitor")
        query = (
            select(*(LABELS.c[n] for n in names), visitor)
            .outerjoin(LABEL_VISITORS, LABEL_VISITORS.c.label == LABELS.c.id)
            .where(LABELS.c.subject == subject)
            .order_by(LABELS.c.id)
        )
        with self.engine.connect() as db:
            return [Label(**row._mapping) for row in db.execute(query)]


def _has_label(db: Connection, subject: str, item: int, labeller: str, visitor: str) -> bool:
    """Whether a visitor's label stands on an item under this name."""
    given = (
        select(LABELS.c.label)
        .outerjoin(LABEL_VISITORS, LABEL_VISITORS.c.label == LABELS.c.id)
        .where(LABELS.c.subject == subject, LABELS.c.item == item, LABELS.c.labeller == labeller)
        .where(func.coalesce(LABEL_VISITORS.c.visitor, "") == visitor)
        .order_by(LABELS.c.id.desc())
        .limit(1)
    )
    return bool(db.execute(given).scalar())


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
