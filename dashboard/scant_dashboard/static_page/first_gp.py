"""Handler of `/gp`, a page without a session that computes in the browser."""

from __future__ import annotations

from functools import cache

from scant_dashboard.pages.first_gp.page import TITLE, first_gp
from scant_dashboard.server.answers import Answer
from scant_dashboard.server.headers import Policy
from scant_dashboard.static_page.page import ACCOUNT, CLASSES, static_page
from scant_dashboard.translate import COOKIE, chosen, for_scripts, speaking, tr

SCRIPTS = (
    "<script id='sentences' type='application/json'>{}</script>"
    "<script src='./assets/words.js'></script>"
    "<script type='module' src='./assets/gp/page.js'></script>"
)


class FirstGP(Answer):
    """Sends the page: the same for everybody, in the visitor's theme and language."""

    def initialize(self, policy: Policy) -> None:
        """Store the server's content security policy."""
        self.policy = policy

    def get(self) -> None:
        """Send the page, light or dark, with larger type in present mode."""
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        present = self.get_query_argument("present", "0") not in ("0", "false")
        query = {"lang": self.get_query_argument("lang", "")}
        language = chosen(query, self.get_cookie(COOKIE, "") or "")
        classes = " ".join(["dark"] * (theme == "dark") + ["present"] * present)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # revalidated by ETag
        self.set_header("Vary", "Cookie")
        self.set_header("Content-Security-Policy", self.policy.static())
        self.finish(_page(present, language).replace(CLASSES, classes, 1))


@cache
def _page(present: bool, language: str) -> str:
    with speaking(language):
        main = first_gp("?present" if present else "")
        script = SCRIPTS.format(for_scripts(language))
        page = static_page(f"{tr(TITLE)} · Scant", "", main, script=script, present=present)
    return page.replace(ACCOUNT, "", 1)
