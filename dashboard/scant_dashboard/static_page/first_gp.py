"""Handler of `/gp`, a page without a session that computes in the browser."""

from __future__ import annotations

from functools import cache

from scant_dashboard.pages.first_gp.page import TITLE, first_gp
from scant_dashboard.server.answers import Answer
from scant_dashboard.server.headers import Policy
from scant_dashboard.static_page.page import ACCOUNT, CLASSES, static_page

SCRIPT = "<script type='module' src='./assets/gp/page.js'></script>"


class FirstGP(Answer):
    """Sends the page: the same for everybody, in the visitor's theme."""

    def initialize(self, policy: Policy) -> None:
        """Store the server's content security policy."""
        self.policy = policy

    def get(self) -> None:
        """Send the page, light or dark, with larger type in present mode."""
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        present = self.get_query_argument("present", "0") not in ("0", "false")
        classes = " ".join(["dark"] * (theme == "dark") + ["present"] * present)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # revalidated by ETag
        self.set_header("Vary", "Cookie")
        self.set_header("Content-Security-Policy", self.policy.static())
        self.finish(_page(present).replace(CLASSES, classes, 1))


@cache
def _page(present: bool) -> str:
    main = first_gp("?present" if present else "")
    page = static_page(f"{TITLE} · Scant", "", main, script=SCRIPT, present=present)
    return page.replace(ACCOUNT, "", 1)
