"""Handler of `/publications`, a page without a session."""

from __future__ import annotations

from functools import cache

from scant_dashboard.pages.publications.page import TITLE, publications_page
from scant_dashboard.static_page.page import ACCOUNT, static_page
from scant_dashboard.static_page.plain_handler import PlainPage
from scant_dashboard.translate import speaking, tr


class Publications(PlainPage):
    """Sends the page: the same for everybody, in the visitor's theme and language."""

    def page(self, present: bool, language: str) -> str:
        """Return the page's HTML."""
        return _page(present, language)


@cache
def _page(present: bool, language: str) -> str:
    with speaking(language):
        main = publications_page()
        page = static_page(f"{tr(TITLE)} · Scant", "", main, script="", present=present)
    return page.replace(ACCOUNT, "", 1)
