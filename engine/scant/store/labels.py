"""Labels in the store, durable and complete."""

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
    """The labels given on runs and uploads. Methods block."""

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
        """Put down a label; it outlives a power cut when this returns, and no earlier one is lost.

        Args:
            subject: The id of the run or upload that the item belongs to.
            item: Its row.
            label: The class given; "" takes the labeler's own label of this role back.
            labeler: The name that is shown; of one visitor's names it tells who sat at the desk.
            visitor: Who gave it, as the server knows them; "" outside of a server.
            role: As `Label.role`.
            unsure: Whether the labeler could not tell; the class is then not kept.

        Raises:
            NotAllowed: There is no label of this visitor, name and role to take back.
        """
        now = time.time()
        self.add_labels(subject, [Label(item, label, labeler, now, visitor, role, unsure)])

    def add_labels(self, subject: str, given: Sequence[Label]) -> None:
        """Put down labels as `add_label` does, all or none of them.

        Raises:
            NotAllowed: There is no label of this visitor, name and role to take back.
        """
        with durable_transaction(self.engine) as db:
            for label in given:
                if not label.label and not label.unsure and not _has_label(db, subject, label):
                    raise NotAllowed(
                        f"There is no label of yours on patch {label.item} to take back; "
                        "a label is taken back by whoever gave it."
                    )
            if given:
                _put_down(db, subject, given)

    def labels(self, subject: str) -> list[Label]:
        """Every label given on a run or upload, in the order given."""
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


def _put_down(db: Connection, subject: str, given: Sequence[Label]) -> None:
    rows = [
        {
            "subject": subject,
            "item": label.item,
            "label": UNSURE if label.unsure else label.label,
            "labeller": label.labeler,
            "created": label.created,
        }
        for label in given
    ]
    made = insert(LABELS).returning(LABELS.c.id, sort_by_parameter_order=True)
    pairs = list(zip(db.execute(made, rows).scalars(), given))
    visitors = [{"label": i, "visitor": v.visitor} for i, v in pairs if v.visitor]
    roles = [
        {"label": i, "role": v.role, "unsure": v.unsure} for i, v in pairs if v.role or v.unsure
    ]
    for table, beside in ((LABEL_VISITORS, visitors), (LABEL_ROLES, roles)):
        if beside:
            db.execute(insert(table), beside)


def _joined(query: Select[Any]) -> Select[Any]:
    """Labels with what stands of them in the tables beside."""
    return query.outerjoin(LABEL_VISITORS, LABEL_VISITORS.c.label == LABELS.c.id).outerjoin(
        LABEL_ROLES, LABEL_ROLES.c.label == LABELS.c.id
    )


def _has_label(db: Connection, subject: str, label: Label) -> bool:
    """Whether a label of this visitor, name and role stands on an item."""
    given = (
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
    return bool(db.execute(given).scalar())
