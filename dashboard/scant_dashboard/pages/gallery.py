"""The gallery: a card for the first Gaussian process, and one for each study's finished run."""

from __future__ import annotations

import html

from panel.viewable import Viewable

from scant.studies import STUDIES, entry
from scant_dashboard.controls.own_table import OwnTable
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.pages.first_gp.page import TITLE
from scant_dashboard.template import PageContent, text
from scant_dashboard.translate import later, tr

FIRST = later("What do a few points say about a curve, and where does it stay uncertain?")
HEADING = later("Gaussian processes for scarce data")
LEDE = later(
    "Watch a model learn from few data, live in this window: its predictions, its uncertainty, "
    "and the value of more data."
)
# What a card's picture shows; scripts/card_pictures.py draws it from the recorded run.
PICTURES = {
    "gp": later(
        "A curve through five points in its band, which is narrow at the points and wide between "
        "them."
    ),
    "aggregation": later(
        "Birth rates by age and year in single cells, with boxes of five by five years "
        "where only averages were known."
    ),
    "clamp": later(
        "Patches as dots in a plane, the selected ones framed; beside them F1 against labels,"
        " higher for active than for random sampling."
    ),
    "multiview": later(
        "Dots of two kinds in eight rows, one for each view of a cell; bars show the "
        "relevance of each view."
    ),
    "genes": later(
        "Curves of three simulated genes in four embryos with their bands; rings are values "
        "hidden from the model."
    ),
    "mitosis": later(
        "Cells as dots in a plane, few dividing among many others; beside them six "
        "generated cells of each kind."
    ),
    "omniglot": later(
        "A matrix of squares, white where characters are similar, beside nine held-out characters."
    ),
    "redshift": later(
        "Predicted against true redshift of test galaxies: a cloud around the diagonal."
    ),
}
# A page's main part would shrink to the window.
WHOLE = ":host, :host > * { flex: none !important; height: auto !important; }"


def gallery(visit: SessionContext) -> PageContent:
    """Return the first page: an introductory sentence, a card for every page, and own tables."""
    if visit.present:
        return PageContent("Scant", [cards("?present")])
    return PageContent("Scant", [column(cards(), OwnTable(visit).panel, css=WHOLE)])


def cards(query: str = "") -> Viewable:
    """Return a card for every page, with links that have this query."""
    first = _card("gp", TITLE, FIRST, later("Click your own points"), query)
    every = "".join(
        _card(study.name, study.title, study.question, later("Open the finished run"), query)
        for study in map(entry, STUDIES)
    )
    return text(
        f"<div class='sheet'><h1>{html.escape(tr(HEADING))}</h1>"
        f"<p class='lede'>{html.escape(tr(LEDE))}</p>"
        f"<div class='cards'>{first}{every}</div></div>"
    )


def _card(page: str, title: str, question: str, invitation: str, query: str) -> str:
    return (
        f"<a class='card' href='./{page}{query}'>{_picture(page)}<h2>{html.escape(tr(title))}</h2>"
        f"<p>{html.escape(tr(question))}</p>"
        f"<span class='go'>{html.escape(tr(invitation))}</span></a>"
    )


def _picture(page: str) -> str:
    if page not in PICTURES:
        return ""
    alt = html.escape(tr(PICTURES[page]), quote=True)
    return f"<img src='./assets/cards/{page}.svg' alt='{alt}' width='330' height='170'>"
