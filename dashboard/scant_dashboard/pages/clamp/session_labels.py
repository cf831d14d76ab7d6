"""The labels of a session from the perspective of one person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from scant.store.label_agreement import (
    NAMELESS,
    by_labeler,
    disagreements,
    own_answers,
    shown_as,
    shown_names,
    standing,
)
from scant.store.records import ADJUDICATOR, IMPORTED, Label
from scant_dashboard.live.run_state import RunState
from scant_dashboard.translate import later, tr

LABELED = later("Label of {patch}: {label}.")
DECIDED = later("Decided on {patch}: {label}.")
LABEL_REMOVED = later("Took back the label of {patch}.")
DECISION_REMOVED = later("Took back the decision on {patch}.")


class SessionLabels:
    """Labels of the store, with display names that are unique per visitor.

    Args:
        given: Labels in the order in which they were given.
        visitor: The visitor's id.
        who: The name typed by the visitor.

    Attributes:
        every: All labels, with display names.
        me: Display name of the visitor.
    """

    def __init__(self, given: Sequence[Label] = (), visitor: str = "", who: str = NAMELESS) -> None:
        names = shown_names(given, visitor, who)
        self.me = names[visitor, who]
        self.every = shown_as(given, names)

    def __len__(self) -> int:
        return len(self.every)

    @cached_property
    def standing(self) -> dict[int, Label]:
        """The current label of each row, unsure ones included."""
        return standing(self.every)

    @cached_property
    def sure(self) -> dict[int, Label]:
        """Current labels that name a class."""
        return {row: label for row, label in self.standing.items() if not label.unsure}

    @cached_property
    def unsure(self) -> dict[int, Label]:
        """Current labels marked as unsure."""
        return {row: label for row, label in self.standing.items() if label.unsure}

    @cached_property
    def prelabels(self) -> dict[int, Label]:
        """Imported labels that nobody has confirmed or corrected."""
        return {row: label for row, label in self.standing.items() if label.role == IMPORTED}

    @cached_property
    def people(self) -> dict[str, dict[int, Label]]:
        """Answers of each labeler, without decisions on disputes."""
        return own_answers(self.every)

    @cached_property
    def by_labeler(self) -> dict[str, dict[int, str]]:
        """Classes by labeler and row, without unsure labels."""
        return by_labeler(self.every)

    @cached_property
    def own(self) -> dict[int, Label]:
        """Answers of the visitor, the latest last."""
        return {r: v for r, v in self.people.get(self.me, {}).items() if v.role != IMPORTED}

    @cached_property
    def disputes(self) -> dict[int, list[Label]]:
        """Rows with different classes by different labelers, with the answer of each."""
        return disagreements(self.every)

    @property
    def open_disputes(self) -> list[int]:
        """Disputed rows without a decision."""
        return [row for row in self.disputes if self.standing[row].role != ADJUDICATOR]

    def decided(self, row: int) -> bool:
        """Whether a decision of the visitor is the current label of a row."""
        label = self.standing.get(row)
        return label is not None and label.role == ADJUDICATOR and label.labeler == self.me

    def taught(self, classes: Sequence[str]) -> list[list[int]]:
        """Return the (row, class index) pairs from which the model learns."""
        number = {name: i for i, name in enumerate(classes)}
        return [[r, number[v.label]] for r, v in self.sure.items() if v.label in number]


def stored_message(patch: str, label: str, decision: bool) -> str:
    """Describe a label that was stored or, if it is "", removed."""
    if label:
        message = DECIDED if decision else LABELED
    else:
        message = DECISION_REMOVED if decision else LABEL_REMOVED
    return tr(message, patch=patch, label=label)


def classes_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the names of a run's classes."""
    return [str(name) for name in metadata.get("classes", ())]


def positive_class(metadata: Mapping[str, Any]) -> str:
    """Return the name of the class of interest."""
    return classes_of(metadata)[int(metadata.get("positive", 1))]


def expert_of(run: RunState) -> str:
    """Return who labels in this run: "you", "simulated", or "auto" if not resolved yet."""
    return str(run.metadata.get("expert") or run.record.settings.get("expert"))


def labeled_by_person(run: RunState) -> bool:
    """Whether a person labels in this run."""
    return expert_of(run) == "you"
