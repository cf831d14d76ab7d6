"""Labels of several visitors: the current ones, their authors, and their agreement."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scant.store.records import ADJUDICATOR, IMPORTED, Label

LONGEST_NAME = 60  # characters of a name that is shown
NAMELESS = "me"  # what the desk calls who gives no name


def answers(labels: Iterable[Label]) -> dict[int, list[Label]]:
    """What each labeler says of each item and has not taken back, in the order in which it counts.

    A decision between labelers counts most, then a class that a person gave, then "unsure", then a
    label that came with a file; of the same rank the latest. A person who changes their mind has
    one answer, and a decision leaves the answers that it decides between.

    Args:
        labels: In the order given, as `Store.labels` has them.

    Returns:
        By item, what counts least first.
    """
    given: dict[int, dict[tuple[str, str, str], tuple[int, int, Label]]] = {}
    for number, label in enumerate(labels):
        own = given.setdefault(label.item, {})
        key = (label.visitor, label.labeler, label.role)
        own.pop(key, None)
        if label.label:
            own[key] = (_rank(label), number, label)
    return {
        item: [label for *_, label in sorted(own.values(), key=lambda entry: entry[:2])]
        for item, own in given.items()
        if own
    }


def _rank(label: Label) -> int:
    if label.role:
        return {ADJUDICATOR: 3, IMPORTED: 0}.get(label.role, 0)
    return 1 if label.unsure else 2


def standing(labels: Sequence[Label]) -> dict[int, Label]:
    """The label that counts of each item (see `answers`); it may be an unsure one.

    Args:
        labels: In the order given, as `Store.labels` has them.

    Returns:
        By item, in the order in which the labels that stand were given.
    """
    return {v.item: v for v in _in_order(labels, [own[-1] for own in answers(labels).values()])}


def disagreements(labels: Sequence[Label]) -> dict[int, list[Label]]:
    """The items that labelers take for different classes, with the answer of each labeler.

    Who is unsure disagrees with nobody, nor does a label of a file that names no labeler. A
    decision that was made is not among the answers.

    Args:
        labels: In the order given, as `Store.labels` has them.
    """
    result = {}
    for item, own in answers(labels).items():
        sure = [v for v in _own(own) if not v.unsure and v.labeler != IMPORTED]
        if len({v.label for v in sure}) > 1:
            result[item] = sure
    return result


def own_answers(labels: Sequence[Label]) -> dict[str, dict[int, Label]]:
    """Each labeler's own answer that stands, by item, the latest last; decisions are not among
    them.

    Args:
        labels: In the order given, each labeler under a name of their own (`shown_as`).

    Returns:
        By labeler, in order of their first label.
    """
    result: dict[str, dict[int, Label]] = {label.labeler: {} for label in labels}
    every = [label for own in answers(labels).values() for label in _own(own)]
    for label in _in_order(labels, every):
        result[label.labeler][label.item] = label
    return {who: own for who, own in result.items() if own}


def _own(counting: Sequence[Label]) -> list[Label]:
    """One answer of each labeler: of a label from a file that they corrected, the correction."""
    each: dict[tuple[str, str], Label] = {}
    for label in counting:  # what counts more comes later
        if label.role != ADJUDICATOR:
            each.pop((label.visitor, label.labeler), None)
            each[label.visitor, label.labeler] = label
    return list(each.values())


def _in_order(labels: Sequence[Label], some: Sequence[Label]) -> list[Label]:
    """Some of the labels in the order in which they were given."""
    wanted = {id(label) for label in some}
    return [label for label in labels if id(label) in wanted]


def clean_name(typed: str) -> str:
    """A typed name as it may be shown: one line, without signs that cannot be seen."""
    plain = unicodedata.normalize("NFKC", typed)
    visible = "".join(" " if c.isspace() else c for c in plain if c.isspace() or _visible(c))
    return " ".join(visible.split())[:LONGEST_NAME].strip() or NAMELESS


def _visible(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")


def shown_names(
    labels: Iterable[Label], visitor: str = "", name: str = ""
) -> dict[tuple[str, str], str]:
    """How each labeler is shown, by visitor and typed name: no two alike, the first as typed.

    A name is what anybody may type; who gave a label is the visitor. So of two visitors that call
    themselves Ada the second is shown as "Ada (2)", and of one visitor two names are two people at
    one desk. Who has logged in is shown by the name of the login.

    Args:
        labels: Of one subject, in the order given.
        visitor: Who is about to give one, last of all; "" for nobody.
        name: The name that they typed.
    """
    names: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    pairs = [(label.visitor, label.labeler) for label in labels]
    for pair in [*pairs, (visitor, name)] if name else pairs:
        if pair in names:
            continue
        first = shown = _with_login(*pair)
        number = 2
        while shown.casefold() in taken:
            shown, number = f"{first} ({number})", number + 1
        names[pair] = shown
        taken.add(shown.casefold())
    return names


def _with_login(visitor: str, typed: str) -> str:
    name = clean_name(typed)
    if not visitor.startswith("user:"):
        return name
    login = visitor.removeprefix("user:")
    return login if name in (NAMELESS, login) else f"{name} ({login})"


def shown_as(labels: Sequence[Label], names: Mapping[tuple[str, str], str]) -> list[Label]:
    """The labels under the names of `shown_names`, by which labelers can be told apart."""
    return [replace(v, labeler=names[v.visitor, v.labeler]) for v in labels]


def by_labeler(labels: Sequence[Label]) -> dict[str, dict[int, str]]:
    """Each labeler's own classes that stand, by item; labelers in order of their first label."""
    result = {
        who: {item: label.label for item, label in own.items() if not label.unsure}
        for who, own in own_answers(labels).items()
    }
    return {who: own for who, own in result.items() if own}


def kappa(first: Mapping[int, str], second: Mapping[int, str]) -> tuple[int, float, float]:
    """Agreement of two labelers on the items that both labeled, beyond that of chance.

    Cohen (1960), A coefficient of agreement for nominal scales. It stands here, and not only in
    scikit-learn, because the server answers it at every label and does not load scikit-learn.

    Args:
        first: Labels by item.
        second: Likewise, of the other labeler.

    Returns:
        How many items both labeled, the share on which they agree, and kappa; NaN where nothing
        was labeled by both, or where chance alone would have them agree on everything.
    """
    both = [item for item in first if item in second]
    if not both:
        return 0, math.nan, math.nan
    n = len(both)
    agreed = sum(first[i] == second[i] for i in both) / n
    classes = {first[i] for i in both} | {second[i] for i in both}
    chance = sum(
        sum(first[i] == c for i in both) * sum(second[i] == c for i in both) for c in classes
    ) / n**2  # fmt: skip
    return n, agreed, (agreed - chance) / (1 - chance) if chance < 1 else math.nan
