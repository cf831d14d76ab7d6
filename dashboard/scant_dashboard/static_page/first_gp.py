"""Handler of `/gp`, a page without a session that computes in the browser."""

from __future__ import annotations

from functools import cache

from scant_dashboard.pages.first_gp.page import TITLE, first_gp
from scant_dashboard.static_page.page import ACCOUNT, static_page
from scant_dashboard.static_page.plain_handler import PlainPage
from scant_dashboard.translate import for_scripts, speaking, tr

SCRIPTS = (
    "<script id='sentences' type='application/json'>{}</script>"
    "<script src='./assets/words.js'></script>"
    "<script type='module' src='./assets/gp/page.js'></script>"
)


class FirstGP(PlainPage):
    """Sends the page: the same for everybody, in the visitor's theme and language."""

    def page(self, present: bool, language: str) -> str:
        """Return the page's HTML."""
        return _page(present, language)


@cache
def _page(present: bool, language: str) -> str:
    with speaking(language):
        main = first_gp("?present" if present else "")
        script = SCRIPTS.format(for_scripts(language))
        page = static_page(f"{tr(TITLE)} · Scant", "", main, script=script, present=present)
    return page.replace(ACCOUNT, "", 1)
