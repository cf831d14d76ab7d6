"""Labels of a file as labels of a session: pre-labels, which its people confirm or correct."""

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

MOST = 20_000  # labels of one file


@dataclass
class Prelabels:
    """What a file comes to.

    Attributes:
        labels: To be kept, in the file's order.
        known: How many are in the session already, as they are.
        unmatched: How many are of no patch of the pool.
        unlabeled: How many boxes have no label.
        others: Classes that the session does not have, with how many labels of each.
    """

    labels: list[Label] = field(default_factory=list)
    known: int = 0
    unmatched: int = 0
    unlabeled: int = 0
    others: Counter[str] = field(default_factory=Counter)

    def sentence(self, file: str) -> str:
        """What was taken and what was not."""
        rows, unsure = {v.item for v in self.labels}, sum(v.unsure for v in self.labels)
        said = f"{file}: {_labels(len(self.labels))} of {len(rows):,} patches loaded"
        said += f", {unsure:,} of them unsure" if unsure else ""
        rest = {
            "here already": self.known,
            "of no patch of this pool": self.unmatched,
            "boxes without a label": self.unlabeled,
            f"of classes that this session does not have ({listed(list(self.others))})": sum(
                self.others.values()
            ),
        }
        left = [f"{what}: {count:,}" for what, count in rest.items() if count]
        return "; ".join([said, *left]) + "."


def prelabels(
    annotations: Sequence[Annotation],
    places: Places,
    classes: Sequence[str],
    given: Sequence[Label],
    visitor: str,
    now: float,
) -> Prelabels:
    """The labels of a file.

    Classes are found whatever their capitals. The labeler is the one whom the file names, else
    `IMPORTED`; whoever brings the file may take them back.

    Args:
        annotations: Of the file.
        places: Of the pool's rows.
        classes: Of the session.
        given: Its labels so far, as the store has them.
        visitor: Who brings the file.
        now: The time of labels whose file says none, in seconds since 1970.

    Raises:
        BadInput: More labels than a session takes at once.
    """
    made = Prelabels()
    if len(annotations) > MOST:
        raise BadInput(
            f"The file has {len(annotations):,} labels and a session takes {MOST:,} at once; "
            "split it."
        )
    names = {name.casefold(): name for name in classes} | {name: name for name in classes}
    standing = {
        (v.item, v.labeler): v.label
        for own in answers(given).values()
        for v in own
        if v.role == IMPORTED and v.visitor == visitor
    }
    found = matches(places, annotations)
    made.unmatched = len(annotations) - len(found)
    for row, one in found:
        word = names.get(one.label, names.get(one.label.casefold(), ""))
        unsure = one.unsure or (not word and one.label.casefold() == UNSURE)
        if not unsure and not word:
            if one.label:
                made.others[one.label] += 1
            else:
                made.unlabeled += 1
            continue
        labeler = clean_name(one.labeler) if one.labeler.strip() else IMPORTED
        label = Label(
            row, UNSURE if unsure else word, labeler, one.created or now, visitor, IMPORTED, unsure
        )
        if standing.get((row, labeler)) == label.label:
            made.known += 1
            continue
        standing[row, labeler] = label.label
        made.labels.append(label)
    return made


def _labels(count: int) -> str:
    return f"{count:,} label{'s' * (count != 1)}"
