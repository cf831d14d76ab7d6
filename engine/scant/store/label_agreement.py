"""Current labels of several annotators, displayed names, and agreement."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scant.store.records import ADJUDICATOR, IMPORTED, Label

MAX_CHARACTERS = 60  # of a displayed name
NAMELESS = "me"  # displayed name of a visitor without a name


def answers(labels: Iterable[Label]) -> dict[int, list[Label]]:
    """Return the current labels of each item in increasing order of precedence.

    Decisions of an adjudicator take precedence over classes, then "unsure", then imported labels;
    later labels take precedence over earlier ones. Each annotator has one current label per item
    and role, without those taken back. A decision does not replace the labels it decides between.

    Args:
        labels: Labels in order of time, as from `Store.labels`.

    Returns:
        Labels by item.
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
    """Return the label of each item with precedence (see `answers`), which may be uncertain.

    Args:
        labels: Labels in order of time, as from `Store.labels`.

    Returns:
        Label by item, in order of time.
    """
    return {v.item: v for v in _in_order(labels, [own[-1] for own in answers(labels).values()])}


def disagreements(labels: Sequence[Label]) -> dict[int, list[Label]]:
    """Return the items with conflicting labels, with the label of each annotator.

    Uncertain labels, imported labels without an annotator, and decisions are not considered.

    Args:
        labels: Labels in order of time, as from `Store.labels`.
    """
    result = {}
    for item, own in answers(labels).items():
        certain = [v for v in _own(own) if not v.unsure and v.labeler != IMPORTED]
        if len({v.label for v in certain}) > 1:
            result[item] = certain
    return result


def own_answers(labels: Sequence[Label]) -> dict[str, dict[int, Label]]:
    """Return the current labels of each annotator by item in order of time, without decisions.

    Args:
        labels: Labels in order of time, with unique names of annotators (`shown_as`).

    Returns:
        Labels by annotator, in order of their first label.
    """
    result: dict[str, dict[int, Label]] = {label.labeler: {} for label in labels}
    every = [label for own in answers(labels).values() for label in _own(own)]
    for label in _in_order(labels, every):
        result[label.labeler][label.item] = label
    return {who: own for who, own in result.items() if own}


def _own(counting: Sequence[Label]) -> list[Label]:
    """Return one label per annotator; corrections replace imported labels."""
    each: dict[tuple[str, str], Label] = {}
    for label in counting:  # in increasing precedence
        if label.role != ADJUDICATOR:
            each.pop((label.visitor, label.labeler), None)
            each[label.visitor, label.labeler] = label
    return list(each.values())


def _in_order(labels: Sequence[Label], subset: Sequence[Label]) -> list[Label]:
    """Sort a subset of the labels by time."""
    selected = {id(label) for label in subset}
    return [label for label in labels if id(label) in selected]


def clean_name(typed: str) -> str:
    """Normalize a name to one line without invisible characters."""
    plain = unicodedata.normalize("NFKC", typed)
    visible = "".join(" " if c.isspace() else c for c in plain if c.isspace() or _visible(c))
    return " ".join(visible.split())[:MAX_CHARACTERS].strip() or NAMELESS


def _visible(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")


def shown_names(
    labels: Iterable[Label], visitor: str = "", name: str = ""
) -> dict[tuple[str, str], str]:
    """Return unique displayed names of annotators by visitor and typed name.

    Annotators are identified by visitor and name. The second of two visitors with the name Ada is
    displayed as "Ada (2)"; two names of a visitor are two people at one computer. Logged-in
    visitors are displayed with their user name.

    Args:
        labels: Labels of one subject in order of time.
        visitor: Visitor to add last; "" for none.
        name: Typed name of this visitor.
    """
    names: dict[tuple[str, str], str] = {}
    used: set[str] = set()
    pairs = [(label.visitor, label.labeler) for label in labels]
    for pair in [*pairs, (visitor, name)] if name else pairs:
        if pair in names:
            continue
        first = display_name = _with_login(*pair)
        number = 2
        while display_name.casefold() in used:
            display_name, number = f"{first} ({number})", number + 1
        names[pair] = display_name
        used.add(display_name.casefold())
    return names


def _with_login(visitor: str, typed: str) -> str:
    name = clean_name(typed)
    if not visitor.startswith("user:"):
        return name
    login = visitor.removeprefix("user:")
    return login if name in (NAMELESS, login) else f"{name} ({login})"


def shown_as(labels: Sequence[Label], names: Mapping[tuple[str, str], str]) -> list[Label]:
    """Replace the names of annotators by those of `shown_names`, which are unique."""
    return [replace(v, labeler=names[v.visitor, v.labeler]) for v in labels]


def by_labeler(labels: Sequence[Label]) -> dict[str, dict[int, str]]:
    """Return the current classes of each annotator by item, without uncertain labels."""
    result = {
        who: {item: label.label for item, label in own.items() if not label.unsure}
        for who, own in own_answers(labels).items()
    }
    return {who: own for who, own in result.items() if own}


def kappa(first: Mapping[int, str], second: Mapping[int, str]) -> tuple[int, float, float]:
    """Compute Cohen's kappa on the items that two annotators labeled.

    Cohen (1960), A coefficient of agreement for nominal scales. Implemented here since the server
    computes it after every label without loading scikit-learn.

    Args:
        first: Labels of the first annotator by item.
        second: Labels of the second annotator by item.

    Returns:
        Number of common items, observed agreement, and kappa, which is NaN without common items or
        if the expected agreement is 1.
    """
    common = [item for item in first if item in second]
    if not common:
        return 0, math.nan, math.nan
    n = len(common)
    observed = sum(first[i] == second[i] for i in common) / n
    classes = {first[i] for i in common} | {second[i] for i in common}
    expected = sum(
        sum(first[i] == c for i in common) * sum(second[i] == c for i in common) for c in classes
    ) / n**2  # fmt: skip
    return n, observed, (observed - expected) / (1 - expected) if expected < 1 else math.nan
