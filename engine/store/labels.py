"""Labels in the store, durable and complete."""

from __future__ import annotations

import time
from typing import Any

from scant.errors import NotAllowed
from scant.store.database import durable_transaction
from scant.store.records import Label
from scant.store.schema import LABEL_VISITORS, LABELS
from sqlalchemy import Connection, Engine, func, insert, select


class LabelRepository:
    """The labels given on runs and uploads. Methods block."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add_label(
        self, subject: str, item: int, label: str, labeler: str, visitor: str = ""
    ) -> None:
        """Put down a label; it outlives a power cut when this returns, and no earlier one is lost.

        Args:
            subject: The id of the run or upload that the item belongs to.
            item: Its row.
            label: The class given; "" takes the labeler's own label back.
            labeler: The name that is shown; of one visitor's names it tells who sat at the desk.
            visitor: Who gave it, as the server knows them; "" outside of a server.

        Raises:
            NotAllowed: There is no label of this visitor and name to take back.
        """
        row: dict[str, Any] = {
            "subject": subject,
            "item": item,
            "label": label,
            "labeller": labeler,
            "created": time.time(),
        }
        with durable_transaction(self.engine) as db:
            if not label and not _has_label(db, subject, item, labeler, visitor):
                raise NotAllowed(
                    f"There is no label of yours on patch {item} to take back; "
                    "a label is taken back by whoever gave it."
                )
            made = db.execute(insert(LABELS).values(row)).inserted_primary_key
            if visitor and made is not None:
                db.execute(insert(LABEL_VISITORS).values(label=made[0], visitor=visitor))

    def labels(self, subject: str) -> list[Label]:
        """Every label given on a run or upload, in the order given."""
        visitor = func.coalesce(LABEL_VISITORS.c.visitor, "").label("visitor")
        query = (
            select(
                LABELS.c.item,
                LABELS.c.label,
                LABELS.c.labeller.label("labeler"),
                LABELS.c.created,
                visitor,
            )
            .outerjoin(LABEL_VISITORS, LABEL_VISITORS.c.label == LABELS.c.id)
            .where(LABELS.c.subject == subject)
            .order_by(LABELS.c.id)
        )
        with self.engine.connect() as db:
            return [Label(**row._mapping) for row in db.execute(query)]


def _has_label(db: Connection, subject: str, item: int, labeler: str, visitor: str) -> bool:
    """Whether a visitor's label stands on an item under this name."""
    given = (
        select(LABELS.c.label)
        .outerjoin(LABEL_VISITORS, LABEL_VISITORS.c.label == LABELS.c.id)
        .where(LABELS.c.subject == subject, LABELS.c.item == item, LABELS.c.labeller == labeler)
        .where(func.coalesce(LABEL_VISITORS.c.visitor, "") == visitor)
        .order_by(LABELS.c.id.desc())
        .limit(1)
    )
    return bool(db.execute(given).scalar())
