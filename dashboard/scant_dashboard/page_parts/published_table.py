"""The publication's whole table beside ours, as `scant reproduce` last measured it in full."""

from __future__ import annotations

from functools import cache
from html import escape

from scant.reproduce.tables import EXPLAINED, STAND_IN, as_tables, origin, read

TITLE = "The full table of our results"


@cache
def whole_table(study: str) -> str:
    """The rows of a study's file in `data/results`, folded, as HTML; empty where there is none."""
    rows = read(study)
    if rows is None:
        return ""
    strange = [data for data in dict.fromkeys(rows["data"]) if STAND_IN in str(data)]
    named = f" Not the publication's own data: {escape('; '.join(strange))}." if strange else ""
    many = f"{len(rows):,} figures of {rows['method'].nunique()} methods"
    return (
        f"<p>{escape(origin(rows))}{named}</p><details><summary>{many}</summary>"
        f"<p class='quiet'>{EXPLAINED}</p>{as_tables(rows)}</details>"
        f"<p class='quiet'>To measure it again: <code>scant reproduce {escape(study)}</code>.</p>"
    )
