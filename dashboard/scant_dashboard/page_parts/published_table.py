"""The publication's whole table next to our results, as last measured by `scant reproduce`."""

from __future__ import annotations

from functools import cache
from html import escape

from scant.reproduce.tables import EXPLAINED, STAND_IN, as_tables, origin, read

TITLE = "The full table of our results"


@cache
def whole_table(study: str) -> str:
    """Return a study's file in `data/results` as collapsed HTML; empty if there is none."""
    rows = read(study)
    if rows is None:
        return ""
    stand_ins = [data for data in dict.fromkeys(rows["data"]) if STAND_IN in str(data)]
    note = f" Not the publication's own data: {escape('; '.join(stand_ins))}." if stand_ins else ""
    summary = f"{len(rows):,} figures of {rows['method'].nunique()} methods"
    return (
        f"<p>{escape(origin(rows))}{note}</p><details><summary>{summary}</summary>"
        f"<p class='quiet'>{EXPLAINED}</p>{as_tables(rows)}</details>"
        f"<p class='quiet'>To measure it again: <code>scant reproduce {escape(study)}</code>.</p>"
    )
