"""Every table and figure stands on the page, with its status and the reason."""

from __future__ import annotations

import re
from html import escape, unescape

import pytest

from scant.reproduce.claims import every_claim
from scant.reproduce.items import Status, items, publications
from scant.studies import STUDIES, entry
from scant.studies.published import settings
from scant_dashboard.page_parts.conclusions import place
from scant_dashboard.pages.publications.page import publications_page
from scant_dashboard.translate import speaking


@pytest.fixture(scope="module")
def markup() -> str:
    """The page's HTML."""
    return str(publications_page()[0].object)


def words(markup: str) -> str:
    """Return the words of a piece of HTML."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", markup)))


def test_every_table_and_figure_has_its_status_and_a_reason(markup: str) -> None:
    for publication in publications():
        start = markup.index(f"<h2>{escape(publication.name)}</h2>")
        part = markup[start : start + 1 + markup[start + 1 :].find("<h2>")]
        own = [one for one in items() if one.publication == publication.key]
        assert part.count("<div class='item'>") == len(own)
        for item in own:
            head = f"<b>{item.name}</b> <span class='quiet'>{item.section}</span>"
            row = part[part.index(head) :]
            row = row[: row.find("<div class='item'>")]
            (status,) = re.findall(r"<span class='status [^']*'>(.*?)</span>", row)
            assert status == item.status, item.name
            assert escape(item.title) in row
            assert escape(item.reason) in row
            if item.claims and item.status != Status.NOT_YET:
                hold = sum(claim.holds is True for claim in item.claims)
                assert f"{hold} of {len(item.claims)} conclusions hold." in row


def test_what_is_not_confirmed_is_said_with_our_scores_and_their_data(markup: str) -> None:
    text = words(markup)
    for verdict in (False, None):
        claims = [c for c in every_claim() if c.holds is verdict and c.measured]
        assert claims
        for claim in claims:
            own = text[text.index(f"{claim.text} {place(claim.where)}") :]
            one = claim.with_verdict(verdict)[0]
            assert one.ours is not None
            first, second = (f"{score.mean:.3g}" for score in one.ours)
            assert re.match(rf".{{0,600}}{re.escape(one.better)} {first}.*?{second}", own)
            assert own.index(f"Data: {one.data}") < 1500


def test_conclusions_on_other_data_are_not_held_against_the_publication(markup: str) -> None:
    parts = re.findall(r"<h3>Did not reproduce</h3><ul class='conclusions'>(.*?)</ul>", markup)
    assert parts
    for claim in every_claim():
        if claim.on_other_data:
            assert not any(escape(claim.text) in part for part in parts)


def test_settings_as_published_stand_beside_the_defaults(markup: str) -> None:
    for study in map(entry, STUDIES):
        heading = f"<summary>{escape(study.title)}: {len(settings(study.name))} settings</summary>"
        part = markup[markup.index(heading) :]
        part = part[: part.index("</details>")]
        for name, stated in settings(study.name).items():
            setting = study.settings.param[name]
            row = part[part.index(f">{escape(str(setting.label))}</th>") :]
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row)[:3]
            assert cells[2] == escape(stated.where)
            for cell, value in zip(cells, (stated.value, setting.default)):
                if isinstance(value, int | float) and not isinstance(value, bool):
                    assert float(cell.replace(",", "")) == value
                elif isinstance(value, str):
                    assert unescape(cell) == (value or "–")


def test_the_page_is_german_where_that_is_spoken() -> None:
    with speaking("de"):
        german = str(publications_page()[0].object)
    for english in (*Status, "Did not reproduce", "Tables and figures"):
        assert f">{english}<" not in german
    for item in items():
        if len(item.title.split()) > 3:
            assert f">{item.title}<" not in german, item.title
