"""The gallery: what the pages are about, each one click from its finished demonstration."""

from __future__ import annotations

import html

from scant.dashboard.frame.session import SessionContext
from scant.dashboard.frame.template import PageContent, text
from scant.studies import STUDIES, Entry, entry

# What a card's picture shows; scripts/card_pictures.py draws it from the recorded run.
PICTURES = {
    "aggregation": "Birth rates by age and year on single cells, with the boxes of five years by "
    "five of which only the averages were known.",
    "clamp": "Patches as dots in a plane, the asked ones framed; beside them F1 by labels, higher "
    "where patches are asked about than where they are drawn at random.",
    "multiview": "Dots of two kinds in eight lanes, one for each view of a cell: some lanes keep "
    "the kinds apart, and bars beside them say how far the model goes by each.",
    "genes": "Curves of three simulated genes in four embryos with their bands; rings are values "
    "that the model has not seen.",
    "mitosis": "Cells as dots in a plane, few that divide among many that do not; beside them six "
    "of each kind that the model has drawn.",
    "omniglot": "A matrix of squares, white where invented characters are alike, beside "
    "nine characters that the model had not seen.",
    "redshift": "Predicted against true redshift of test galaxies: a cloud around the diagonal.",
}


def gallery(visit: SessionContext) -> PageContent:
    """The first page: one sentence on what this is, and a card for every study."""
    cards = "".join(_card(entry(name), visit) for name in STUDIES)
    return PageContent(
        "Scant",
        [
            text(
                "<div class='sheet'><h1>Gaussian processes for scarce data</h1>"
                "<p class='lede'>Watch a model learn from little, live in this window: what it "
                "believes, how sure it is, and what more data would buy.</p>"
                f"<div class='cards'>{cards}</div></div>"
            )
        ],
    )


def _card(study: Entry, visit: SessionContext) -> str:
    present = "?present" if visit.present else ""
    return (
        f"<a class='card' href='./{study.name}{present}'>{_picture(study.name)}"
        f"<h2>{html.escape(study.title)}</h2>"
        f"<p>{html.escape(study.question)}</p><span class='go'>Open the finished run</span></a>"
    )


def _picture(study: str) -> str:
    if study not in PICTURES:
        return ""
    alt = html.escape(PICTURES[study], quote=True)
    return f"<img src='./assets/cards/{study}.svg' alt='{alt}' width='330' height='170'>"
