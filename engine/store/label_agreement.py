"""Labels of several visitors: the current ones, their authors, and their agreement."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scant.store.records import Label

LONGEST_NAME = 60  # characters of a name that is shown
NAMELESS = "me"  # what the desk calls who gives no name


def standing(labels: Iterable[Label]) -> dict[int, Label]:
    """The label that counts of each item: the latest that its giver has not taken back.

    Args:
        labels: In the order given, as `Store.labels` has them.

    Returns:
        By item, in the order in which the labels that stand were given.
    """
    given: dict[int, dict[tuple[str, str], tuple[int, Label]]] = {}
    for number, label in enumerate(labels):
        own = given.setdefault(label.item, {})
        own.pop((label.visitor, label.labeler), None)
        if label.label:
            own[label.visitor, label.labeler] = (number, label)
    latest = [next(reversed(own.values())) for own in given.values() if own]
    return {label.item: label for _, label in sorted(latest, key=lambda entry: entry[0])}


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
    """Each labeler's own labels that stand, by item; labelers in order of their first."""
    result: dict[str, dict[int, str]] = {label.labeler: {} for label in labels}
    for label in labels:
        own = result[label.labeler]
        own.pop(label.item, None)
        if label.label:
            own[label.item] = label.label
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
