"""What people's labels come to: which ones stand, by whom, and how far two labellers agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from engine.store.records import Label


def standing(labels: Iterable[Label]) -> dict[int, Label]:
    """The label that counts of each item: the latest, whoever gave it, unless it was taken back.

    Args:
        labels: In the order given, as `Store.labels` has them.

    Returns:
        By item, in the order in which the labels that stand were given.
    """
    found: dict[int, Label] = {}
    for label in labels:
        found.pop(label.item, None)
        if label.label:
            found[label.item] = label
    return found


def by_labeller(labels: Sequence[Label]) -> dict[str, dict[int, str]]:
    """Each labeller's own labels that stand, by item; labellers in order of their first."""
    found: dict[str, dict[int, str]] = {label.labeller: {} for label in labels}
    for label in labels:
        own = found[label.labeller]
        own.pop(label.item, None)
        if label.label:
            own[label.item] = label.label
    return {who: own for who, own in found.items() if own}


def kappa(first: Mapping[int, str], second: Mapping[int, str]) -> tuple[int, float, float]:
    """Agreement of two labellers on the items that both labelled, beyond that of chance.

    Cohen (1960), A coefficient of agreement for nominal scales. It stands here, and not only in
    scikit-learn, because the server answers it at every label and does not load scikit-learn.

    Args:
        first: Labels by item.
        second: Likewise, of the other labeller.

    Returns:
        How many items both labelled, the share on which they agree, and kappa; NaN where nothing
        was labelled by both, or where chance alone would have them agree on everything.
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
