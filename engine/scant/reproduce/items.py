"""Tables and figures of the publications, each with its status here.

`data/published/items.csv` lists them all. Those with experiments are compared with our results;
for the others the file says why there is no result. Its column `alike` is "yes" for results that
were made like the publication's, on its data and with its settings; the reason is then a remark.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from scant.package_data import package_rows
from scant.reproduce.claims import Claim, claims
from scant.reproduce.tables import STAND_IN, at_least_as_good, differ, read

PUBLICATIONS, ITEMS = "publications.csv", "items.csv"


class Status(StrEnum):
    """Status of a table or figure."""

    REPRODUCED = "reproduced"
    CONCLUSIONS_HOLD = "conclusions hold"
    DIFFERS = "differs"
    UNCLEAR = "no clear difference"
    SHOWN = "shown, not compared"
    SHOWN_LIVE = "shown live"
    NOT_YET = "not yet"
    NOT_POSSIBLE = "not possible here"
    NO_RESULT = "no result"


class Item(NamedTuple):
    """A table or figure of a publication.

    Attributes:
        publication: Key of the publication.
        name: Such as "Table 6.7".
        section: Section that it is in.
        title: What it shows.
        study: Study that it concerns; "" for none.
        experiments: Experiments in our results that show the same.
        reason: Why there is no result, how ours differs, or a remark, as a sentence; or "".
        status: Its status.
        reached: Printed scores that ours reach, and their number; only on the publication's data.
        claims: Conclusions from it that our results can test.
    """

    publication: str
    name: str
    section: str
    title: str
    study: str
    experiments: tuple[str, ...]
    reason: str
    status: Status
    reached: tuple[int, int]
    claims: tuple[Claim, ...]

    @property
    def full_name(self) -> str:
        """Its name with the key of the publication, such as "M23 Figure 3.4"."""
        return f"{self.publication} {self.name}"


class Publication(NamedTuple):
    """A publication: its key in our files, its short name, and how it is cited."""

    key: str
    name: str
    citation: str


@cache
def publications() -> tuple[Publication, ...]:
    """Return the publications."""
    return tuple(Publication(*row.values()) for row in package_rows("published", PUBLICATIONS))


@cache
def items() -> tuple[Item, ...]:
    """Return all tables and figures, in the order of the publications."""
    return tuple(_item(**row) for row in package_rows("published", ITEMS))


def _item(
    publication: str,
    item: str,
    section: str,
    title: str,
    study: str,
    experiments: str,
    alike: str,
    reason: str,
) -> Item:
    names = tuple(experiments.split(" | ")) if experiments else ()
    own = tuple(c for c in (claims(study) if study else ()) if _concerns(c, publication, item))
    reached = (0, 0)
    if names:
        status, reached = _compared(study, names, own, alike=alike == "yes")
    else:
        kind, _, reason = reason.partition(": ")
        status = Status(kind.removeprefix("illustration, "))
    if reason:
        reason = f"{reason[0].upper()}{reason[1:].removesuffix('.')}."
    return Item(publication, item, section, title, study, names, reason, status, reached, own)


def _concerns(claim: Claim, publication: str, item: str) -> bool:
    """Whether a place such as "5.3, Figure 5.2; YSA19, Figure 2" names an item."""
    own, _, others = claim.where.partition("; ")
    named = own if publication == claim.publication else ""
    for other in others.split("; "):
        key, _, place = other.partition(", ")
        named += f", {place}" if key == publication else ""
    return re.search(rf"\b{re.escape(item)}(?![\d.])", named) is not None


def _compared(
    study: str, names: tuple[str, ...], own: tuple[Claim, ...], alike: bool
) -> tuple[Status, tuple[int, int]]:
    """Return the status of an item with results, and how many printed scores are reached.

    Args:
        study: Study that it concerns.
        names: Its experiments.
        own: Its conclusions.
        alike: Whether ours was made like the publication's.
    """
    rows = read(study)
    assert rows is not None
    rows = rows[rows["experiment"].isin(names)]
    ours = rows[rows["ours"].notna()]
    printed = rows[rows["published"].notna() & ~rows["data"].str.contains(STAND_IN)]
    measured = printed[printed["ours"].notna()]
    reached = sum(reaches(row) for row in measured.itertuples())
    missing = (
        len(measured) < len(printed)
        or not all(claim.measured for claim in own)
        or not set(names) <= set(ours["experiment"])
    )
    verdicts = {claim.holds for claim in own}
    if reached < len(measured) or False in verdicts:
        status = Status.DIFFERS
    elif missing:
        status = Status.NOT_YET
    elif not (len(printed) or own):
        status = Status.SHOWN
    elif None in verdicts:
        status = Status.UNCLEAR
    else:
        status = Status.REPRODUCED if alike else Status.CONCLUSIONS_HOLD
    return status, (reached, len(printed))


def reaches(row: Any) -> bool:
    """Whether our score of a row is at least as good as the printed one, or not clearly worse."""
    better = at_least_as_good(row.metric, row.ours, row.published)
    return better or not differ(row.ours - row.published, row.spread, row.published_spread)
