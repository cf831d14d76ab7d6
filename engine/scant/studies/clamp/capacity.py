"""Sizes of a labeling session's classifier for tables without tuned settings."""

from __future__ import annotations

from collections.abc import Mapping

from scant.studies.auto import AUTO, Choice, Choices
from scant.studies.base import Counts
from scant.studies.clamp.table import PLACE, TABLE
from scant.tables.images.kinds import JOINED, NETWORK, automatic

OWN_COLUMNS = 40  # up to which all components are used
COMPONENTS = 20  # for more columns, and for features of images, as published
DEEP = 50  # for a network's features, which are more informative


LABELED = 0.5  # minimum share of labeled rows for a simulated expert
EACH = 5  # minimum rows of each of two classes


def expert_for(label: Mapping[str, int], rows: int) -> Choice:
    """Choose the expert: the table's labels if there are enough, or a person.

    Args:
        label: Number of rows of each class.
        rows: Number of rows of the table.
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
    """Number of principal components."""
    reserved = {*PLACE, *(column.name for column in TABLE.columns)}
    features = len(set(counts) - reserved) if counts else 0
    if 0 < features <= OWN_COLUMNS:
        return {"n_components": Choice(features, f"as many as columns of {rows:,} rows")}
    if features:
        return {"n_components": Choice(COMPONENTS, f"for {features:,} columns")}
    requested = getattr(settings, "feature_extractor", AUTO)
    kind = automatic() if requested == AUTO else requested
    if kind in (NETWORK, JOINED):
        return {"n_components": Choice(DEEP, "for features of a network")}
    return {"n_components": Choice(COMPONENTS, "for features of images")}
