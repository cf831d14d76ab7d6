"""Summary of a column: kind, range and number of distinct values."""

from __future__ import annotations

import numpy as np

from scant.tables.cells import Cells
from scant.tables.dates import are_dates
from scant.tables.headers import unit
from scant.tables.schema import ColumnPreview
from scant.tables.wide import samples

_COUNTED = 100_000  # maximum number of cells inspected


def profile(cells: Cells) -> ColumnPreview:
    """Summarize the kind, range and distinct values of a column."""
    missing, name = int(cells.empty.sum()), cells.name
    if missing == len(cells.empty):
        return ColumnPreview(name, "empty", missing, unit=unit(name))
    if cells.is_text:
        kind = "date" if are_dates(cells) else "text"
        levels, filled = cells.levels, len(cells.empty) - missing
        distinct = levels == filled > 2
        samples_named = (
            distinct
            and kind == "text"
            and levels <= _COUNTED
            and len({s.replica for s in samples([str(w) for w in cells.labels()]) or ()}) > 1
        )
        return ColumnPreview(
            name,
            kind,
            missing,
            levels=levels,
            distinct=distinct,
            samples=samples_named,
            unit=unit(name),
        )
    observed = cells.values[~np.isnan(cells.values)]
    if not len(observed):
        return ColumnPreview(name, "text", missing, levels=cells.levels, unit=unit(name))
    steps = np.unique(observed[:_COUNTED])
    with np.errstate(over="ignore"):  # overflowing numbers are rejected later
        counts = len(steps) > 2 and bool((np.diff(observed[:_COUNTED]) == 1).all())
    return ColumnPreview(
        name,
        "number",
        missing,
        float(observed.min()),
        float(observed.max()),
        levels=len(steps),
        distinct=len(steps) == len(observed) > 2,
        whole=bool((steps == np.round(steps)).all()),
        counts_rows=counts,
        unit=unit(name),
    )
