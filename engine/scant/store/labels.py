"""Labels in the store, with durable writes and full history."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Select, false, func, insert, select

from scant.errors import NotAllowed
from scant.store.database import durable_transaction
from scant.store.records import UNSURE, Label
from scant.store.schema import LABEL_ROLES, LABEL_VISITORS, LABELS


class LabelRepository:
    """Repository of the labels of runs and uploads, with blocking methods."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add_label(
        self,
        subject: str,
        item: int,
        label: str,
        labeler: str,
        visitor: str = "",
        *,
        role: str = "",
        unsure: bool = False,
    ) -> None:
        """Store a label durably; earlier labels are kept.

        Args:
            subject: Id of the run or upload.
            item: Row of the item.
            label: Class; "" to take back the label of this annotator and role.
            labeler: Displayed name, which distinguishes people who share a computer.
            visitor: Visitor id; "" without a server.
            role: Role as in `Label`.
            unsure: True if the annotator was uncertain; the class is then not stored.

        Raises:
            NotAllowed: There is no label of this visitor, name and role to take back.
        """
        now = time.time()
        self.add_labels(subject, [Label(item, label, labeler, now, visitor, role, unsure)])

    def add_labels(self, subject: str, new_labels: Sequence[Label]) -> None:
        """Store labels as in `add_label`, in one transaction.

        Raises:
            NotAllowed: There is no label of this visitor, name and role to take back.
        """
        with durable_transaction(self.engine) as db:
            for label in new_labels:
                if not label.label and not label.unsure and not _has_label(db, subject, label):
                    raise NotAllowed(
                        f"You have no label on patch {label.item} to take back; only the person "
                        "who gave a label can take it back."
                    )
            if new_labels:
                _insert(db, subject, new_labels)

    def labels(self, subject: str) -> list[Label]:
        """Return all labels of a run or upload in order of time."""
        visitor = func.coalesce(LABEL_VISITORS.c.visitor, "").label("visitor")
        role = func.coalesce(LABEL_ROLES.c.role, "").label("role")
        unsure = func.coalesce(LABEL_ROLES.c.unsure, false()).label("unsure")
        query = (
            _joined(
                select(
                    LABELS.c.item,
                    LABELS.c.label,
                    LABELS.c.labeller.label("labeler"),
                    LABELS.c.created,
                    visitor,
                    role,
                    unsure,
                )
            )
            .where(LABELS.c.subject == subject)
            .order_by(LABELS.c.id)
        )
        with self.engine.connect() as db:
            return [Label(**row._mapping) for row in db.execute(query)]


def _insert(db: Connection, subject: str, new_labels: Sequence[Label]) -> None:
    rows = [
        {
            "subject": subject,
            "item": label.item,
            "label": UNSURE if label.unsure else label.label,
            "labeller": label.labeler,
            "created": label.created,
        }
        for label in new_labels
    ]
    statement = insert(LABELS).returning(LABELS.c.id, sort_by_parameter_order=True)
    pairs = list(zip(db.execute(statement, rows).scalars(), new_labels))
    visitors = [{"label": i, "visitor": v.visitor} for i, v in pairs if v.visitor]
    roles = [
        {"label": i, "role": v.role, "unsure": v.unsure} for i, v in pairs if v.role or v.unsure
    ]
    for table, values in ((LABEL_VISITORS, visitors), (LABEL_ROLES, roles)):
        if values:
            db.execute(insert(table), values)


def _joined(query: Select[Any]) -> Select[Any]:
    """Join labels with visitors and roles."""
    return query.outerjoin(LABEL_VISITORS, LABEL_VISITORS.c.label == LABELS.c.id).outerjoin(
        LABEL_ROLES, LABEL_ROLES.c.label == LABELS.c.id
    )


def _has_label(db: Connection, subject: str, label: Label) -> bool:
    """Return True if an item has a label of this visitor, name and role."""
    latest = (
        _joined(select(LABELS.c.label))
        .where(
            LABELS.c.subject == subject,
            LABELS.c.item == label.item,
            LABELS.c.labeller == label.labeler,
            func.coalesce(LABEL_VISITORS.c.visitor, "") == label.visitor,
            func.coalesce(LABEL_ROLES.c.role, "") == label.role,
        )
        .order_by(LABELS.c.id.desc())
        .limit(1)
    )
    return bool(db.execute(latest).scalar())
