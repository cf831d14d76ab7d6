"""Labels of a file as pre-labels of a session, to be confirmed or corrected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from scant.errors import BadInput
from scant.store.label_agreement import answers, clean_name
from scant.store.records import IMPORTED, UNSURE, Label
from scant.studies.clamp.labels_out import Places, matches
from scant.tables.annotations.annotation import Annotation
from scant.tables.column_matching import listed
from scant_dashboard.translate import ntr, tr

MAX_LABELS = 20_000  # labels per file


@dataclass
class Prelabels:
    """Result of matching a file's labels to a session.

    Attributes:
        labels: Labels to store, in the file's order.
        duplicates: Number of labels that the session already has.
        unmatched: Number of labels that match no patch of the pool.
        unlabeled: Number of boxes without a label.
        others: Number of labels of each class that the session does not have.
    """

    labels: list[Label] = field(default_factory=list)
    duplicates: int = 0
    unmatched: int = 0
    unlabeled: int = 0
    others: Counter[str] = field(default_factory=Counter)

    def sentence(self, file: str) -> str:
        """Describe which labels were loaded and which were not."""
        rows, n_unsure = {v.item for v in self.labels}, sum(v.unsure for v in self.labels)
        message = ntr("{file}: {n:,} label of {rows:,} rows loaded",
                      "{file}: {n:,} labels of {rows:,} rows loaded", len(self.labels),
                      file=file, rows=len(rows))  # fmt: skip
        if n_unsure:
            message = tr("{message}, {n:,} of them unsure", message=message, n=n_unsure)
        others, names = sum(self.others.values()), listed(list(self.others))
        left = [
            tr("already here: {n:,}", n=self.duplicates) if self.duplicates else "",
            tr("not matched with a row of this pool: {n:,}", n=self.unmatched)
            if self.unmatched
            else "",
            tr("boxes without a label: {n:,}", n=self.unlabeled) if self.unlabeled else "",
            tr("of classes that this session does not have ({names}): {n:,}", names=names, n=others)
            if others
            else "",
        ]
        return "; ".join(filter(None, [message, *left])) + "."


def prelabels(
    annotations: Sequence[Annotation],
    places: Places,
    classes: Sequence[str],
    given: Sequence[Label],
    visitor: str,
    now: float,
) -> Prelabels:
    """Match the labels of a file to the pool.

    Class names are matched regardless of case. The labeler is the one named by the file, or else
    `IMPORTED`; the visitor who loads the file may remove the labels.

    Args:
        annotations: Annotations of the file.
        places: Positions of the pool's rows.
        classes: Classes of the session.
        given: Labels of the session so far, as in the store.
        visitor: The visitor who loads the file.
        now: Time of labels without a time of their own, in seconds since 1970.

    Raises:
        BadInput: There are more than `MAX_LABELS` labels.
    """
    made = Prelabels()
    if len(annotations) > MAX_LABELS:
        raise BadInput(
            f"The file has {len(annotations):,} labels and a session takes {MAX_LABELS:,} at once; "
            "split it."
        )
    names = {name.casefold(): name for name in classes} | {name: name for name in classes}
    standing = {
        (v.item, v.labeler): v.label
        for own in answers(given).values()
        for v in own
        if v.role == IMPORTED and v.visitor == visitor
    }
    matched = matches(places, annotations)
    made.unmatched = len(annotations) - len(matched)
    for row, one in matched:
        name = names.get(one.label, names.get(one.label.casefold(), ""))
        unsure = one.unsure or (not name and one.label.casefold() == UNSURE)
        if not unsure and not name:
            if one.label:
                made.others[one.label] += 1
            else:
                made.unlabeled += 1
            continue
        labeler = clean_name(one.labeler) if one.labeler.strip() else IMPORTED
        label = Label(
            row, UNSURE if unsure else name, labeler, one.created or now, visitor, IMPORTED, unsure
        )
        if standing.get((row, labeler)) == label.label:
            made.duplicates += 1
            continue
        standing[row, labeler] = label.label
        made.labels.append(label)
    return made
