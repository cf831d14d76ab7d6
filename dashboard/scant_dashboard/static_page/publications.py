"""Handler of `/publications`, a page without a session."""

from __future__ import annotations

from functools import cache

from scant.reproduce.figures import drawn_items
from scant_dashboard.pages.publications.figure import plot_of
from scant_dashboard.pages.publications.page import TITLE, publications_page
from scant_dashboard.static_page.markup import Markup
from scant_dashboard.static_page.page import ACCOUNT, static_page
from scant_dashboard.static_page.pictures import apart
from scant_dashboard.static_page.plain_handler import PlainPage
from scant_dashboard.translate import speaking, tr

FRAME = "<script type='module' src='./assets/gp/frame.js'></script>"  # theme and language
LARGER = 1.6  # figures in present mode, as its type


class Publications(PlainPage):
    """Sends the page: the same for everybody, in the visitor's theme and language."""

    def page(self, present: bool, language: str) -> str:
        """Return the page's HTML."""
        return _page(present, language)

    def figures(self, name: str, present: bool, language: str) -> str | None:
        """Return the panels of a figure, such as "M23 Figure 3.4"."""
        return _figures(name, present, language) if name in drawn_items() else None


@cache
def _page(present: bool, language: str) -> str:
    with speaking(language):
        main = publications_page(LARGER if present else 1.0)
        page = static_page(f"{tr(TITLE)} · Scant", "", main, script=FRAME, present=present)
    return page.replace(ACCOUNT, "", 1)


@cache
def _figures(name: str, present: bool, language: str) -> str:
    with speaking(language):
        figure = plot_of(drawn_items()[name], LARGER if present else 1.0)
        return apart(Markup().of(figure.panel))[1]
