"""Sizes of a labeling session's classifier for a table that nobody tuned it for."""

from __future__ import annotations

from collections.abc import Mapping

from scant.studies.auto import AUTO, Choice, Choices
from scant.studies.base import Counts
from scant.studies.clamp.table import PLACE, TABLE
from scant.tables.images.kinds import JOINED, NETWORK, automatic

OWN_COLUMNS = 40  # up to which no component is dropped
COMPONENTS = 20  # of more columns, and of features of images, as published
DEEP = 50  # of a network's, which say more


LABELED = 0.5  # share of the rows whose labels can answer for an expert
EACH = 5  # rows of two classes at least


def expert_for(label: Mapping[str, int], rows: int) -> Choice:
    """Who answers: the table's labels, where they are many enough, or a person.

    Args:
        label: Rows of each class.
        rows: Of the table.
    """
    enough = sum(count >= EACH for count in label.values()) > 1
    total = sum(label.values())
    if enough and total >= LABELED * rows:
        return Choice("simulated", f"{total:,} of {rows:,} rows have a label")
    some = f"only {total:,}" if total else "none"
    return Choice("you", f"{some} of {rows:,} rows have a label")


def capacity(settings: object, rows: int, columns: int, counts: Counts) -> Choices:
    """Values for settings that are `auto` (see `Entry.capacity`)."""
    chosen = dict(components(settings, rows, counts))
    if counts:
        chosen["expert"] = expert_for(counts.get("label", {}), rows)
    return chosen


def components(settings: object, rows: int, counts: Counts) -> Choices:
    """How many principal components are kept."""
    known = {*PLACE, *(column.name for column in TABLE.columns)}
    features = len(set(counts) - known) if counts else 0
    if 0 < features <= OWN_COLUMNS:
        return {"n_components": Choice(features, f"as many as columns of {rows:,} rows")}
    if features:
        return {"n_components": Choice(COMPONENTS, f"for {features:,} columns")}
    asked = getattr(settings, "feature_extractor", AUTO)
    kind = automatic() if asked == AUTO else asked
    if kind in (NETWORK, JOINED):
        return {"n_components": Choice(DEEP, "for features of a network")}
    return {"n_components": Choice(COMPONENTS, "for features of images")}
