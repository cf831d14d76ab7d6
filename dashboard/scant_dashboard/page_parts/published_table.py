"""The publication's whole table next to our results, as last measured by `scant reproduce`."""

from __future__ import annotations

from functools import cache
from html import escape

from scant.reproduce.claims import claims
from scant.reproduce.tables import EXPLAINED, STAND_IN, as_tables, origin, read
from scant_dashboard.page_parts.conclusions import not_confirmed
from scant_dashboard.translate import later, ntr, spoken, tr

TITLE = later("The full table of our results")


def whole_table(study: str) -> str:
    """Return a study's file in `data/results` as collapsed HTML; empty if there is none."""
    return _whole_table(study, spoken())


@cache
def _whole_table(study: str, language: str) -> str:
    rows = read(study)
    if rows is None:
        return ""
    stand_ins = [data for data in dict.fromkeys(rows["data"]) if STAND_IN in str(data)]
    source = escape(origin(rows))
    if stand_ins:
        data = "; ".join(stand_ins)
        source += " " + escape(tr("Not the publication's own data: {data}.", data=data))
    summary = ntr(
        "{figures:,} numbers of {n} method",
        "{figures:,} numbers of {n} methods",
        rows["method"].nunique(),
        figures=len(rows),
    )
    command = f"<code>scant reproduce {escape(study)}</code>"
    listed = tr("All tables and figures of the publications")
    return (
        f"<p>{source}</p>{not_confirmed(claims(study))}"
        f"<details><summary>{summary}</summary>"
        f"<p class='quiet'>{EXPLAINED}</p>{as_tables(rows)}</details>"
        f"<p class='quiet'>{tr('To measure it again: {command}.', command=command)} "
        f"<a href='./publications'>{listed}</a></p>"
    )
