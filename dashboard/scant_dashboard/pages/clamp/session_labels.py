"""The labels of a session as one person at one widget sees them."""

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


class SessionLabels:
    """Labels as the store has them, each under a name that is nobody else's.

    Args:
        given: In the order given.
        visitor: Who looks at them, as the server knows them.
        who: The name that they typed.

    Attributes:
        every: The labels under the names that are shown.
        me: The name under which the person at this widget is shown.
    """

    def __init__(self, given: Sequence[Label] = (), visitor: str = "", who: str = NAMELESS) -> None:
        names = shown_names(given, visitor, who)
        self.me = names[visitor, who]
        self.every = shown_as(given, names)

    def __len__(self) -> int:
        return len(self.every)

    @cached_property
    def standing(self) -> dict[int, Label]:
        """The label that counts of each row, unsure ones included."""
        return standing(self.every)

    @cached_property
    def sure(self) -> dict[int, Label]:
        """Those that tell a class."""
        return {row: label for row, label in self.standing.items() if not label.unsure}

    @cached_property
    def unsure(self) -> dict[int, Label]:
        """Those that do not: to be looked at again."""
        return {row: label for row, label in self.standing.items() if label.unsure}

    @cached_property
    def prelabels(self) -> dict[int, Label]:
        """Labels that came with a file and that nobody has answered to."""
        return {row: label for row, label in self.standing.items() if label.role == IMPORTED}

    @cached_property
    def people(self) -> dict[str, dict[int, Label]]:
        """Each labeler's own answers, decisions between labelers apart."""
        return own_answers(self.every)

    @cached_property
    def by_labeler(self) -> dict[str, dict[int, str]]:
        """Their classes, without the patches that they are unsure of."""
        return by_labeler(self.every)

    @cached_property
    def own(self) -> dict[int, Label]:
        """The answers of the person at this widget, the latest last."""
        return {r: v for r, v in self.people.get(self.me, {}).items() if v.role != IMPORTED}

    @cached_property
    def disputes(self) -> dict[int, list[Label]]:
        """The rows that labelers take for different classes, with the answer of each."""
        return disagreements(self.every)

    @property
    def open_disputes(self) -> list[int]:
        """Those that nobody has decided."""
        return [row for row in self.disputes if self.standing[row].role != ADJUDICATOR]

    def decided(self, row: int) -> bool:
        """Whether a decision of the person at this widget stands on a row."""
        label = self.standing.get(row)
        return label is not None and label.role == ADJUDICATOR and label.labeler == self.me

    def taught(self, classes: Sequence[str]) -> list[list[int]]:
        """Pairs of row and class index that the model learns."""
        number = {name: i for i, name in enumerate(classes)}
        return [[r, number[v.label]] for r, v in self.sure.items() if v.label in number]


def classes_of(metadata: Mapping[str, Any]) -> list[str]:
    """The names of a run's classes."""
    return [str(name) for name in metadata.get("classes", ())]


def positive_class(metadata: Mapping[str, Any]) -> str:
    """The name of the class of interest, which probabilities are of."""
    return classes_of(metadata)[int(metadata.get("positive", 1))]


def expert_of(run: RunState) -> str:
    """Who labels in this run: "you", "simulated", or "auto" until the run has settled that."""
    return str(run.metadata.get("expert") or run.record.settings.get("expert"))


def by_a_person(run: RunState) -> bool:
    """Whether a person labels in this run."""
    return expert_of(run) == "you"
