"""Every table and figure stands on the page, with what became of it and why."""

from __future__ import annotations

import re
from html import unescape

import pytest

from scant.reproduce.claims import every_claim
from scant.reproduce.items import Status, items, publications
from scant.studies import STUDIES, entry
from scant.studies.published import settings
from scant_dashboard.pages.publications.page import publications_page
from scant_dashboard.translate import speaking


@pytest.fixture(scope="module")
def words() -> str:
    """The page's words, without its markup."""
    markup = publications_page()[0].object
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", markup)))


def test_no_table_or_figure_is_without_a_status_and_a_reason(words: str) -> None:
    for publication in publications():
        start = words.index(publication.citation)
        for item in (one for one in items() if one.publication == publication.key):
            place = words.index(f"{item.name} {item.section} {item.title}", start)
            own = words[place : place + 1000]
            assert item.status in own
            if not item.experiments:
                assert item.reason in own
            elif item.claims:
                hold = sum(claim.holds is True for claim in item.claims)
                assert f"{hold} of {len(item.claims)} conclusions hold." in own


def test_what_did_not_reproduce_is_said_with_our_scores(words: str) -> None:
    against = [claim for claim in every_claim() if claim.holds is False]
    assert against
    for claim in against:
        own = words[words.index(f"{claim.text} {claim.where}") :]
        one = claim.against[0]
        assert one.ours is not None
        first, second = (f"{score.mean:.3g}" for score in one.ours)
        assert re.match(rf".{{0,500}}{re.escape(one.better)} {first}.*?{second}", own)


def test_settings_as_published_stand_beside_the_defaults(words: str) -> None:
    for study in STUDIES:
        for name, stated in settings(study).items():
            label = str(entry(study).settings.param[name].label)
            assert f"{label} " in words
            assert stated.where in words


def test_the_page_is_german_where_that_is_spoken() -> None:
    with speaking("de"):
        markup = publications_page()[0].object
    for english in (*Status, "Did not reproduce", "conclusions hold", "Tables and figures"):
        assert f">{english}<" not in markup
    for item in items():
        if len(item.title.split()) > 3:
            assert f">{item.title}<" not in markup, item.title
