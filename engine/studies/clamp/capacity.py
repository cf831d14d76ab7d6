"""Sizes of a labeling session's classifier for a table that nobody tuned it for."""

from __future__ import annotations

from scant.studies.auto import Choice, Choices
from scant.studies.base import Counts
from scant.studies.clamp.table import PLACE, TABLE

OWN_COLUMNS = 40  # up to which no component is dropped
COMPONENTS = 20  # of more columns, and of features of images, as published


def capacity(settings: object, rows: int, columns: int, counts: Counts) -> Choices:
    """Values for settings that are `auto` (see `Entry.capacity`)."""
    known = {*PLACE, *(column.name for column in TABLE.columns)}
    features = len(set(counts) - known) if counts else 0
    if 0 < features <= OWN_COLUMNS:
        return {"n_components": Choice(features, f"as many as columns of {rows:,} rows")}
    why = f"for {features:,} columns" if features else "for features of images"
    return {"n_components": Choice(COMPONENTS, why)}
