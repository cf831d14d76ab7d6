"""Base class of handlers of pages that need no session."""

from __future__ import annotations

import asyncio
import gzip

from tornado.web import HTTPError

from scant_dashboard.server.answers import Answer
from scant_dashboard.server.headers import Policy
from scant_dashboard.static_page.page import CLASSES
from scant_dashboard.translate import COOKIE, chosen


class PlainPage(Answer):
    """Sends a page that is the same for everybody, in the visitor's theme and language."""

    def initialize(self, policy: Policy) -> None:
        """Store the server's content security policy."""
        self.policy = policy

    def page(self, present: bool, language: str) -> str:
        """Return the page's HTML, with `CLASSES` in place of the visitor's classes.

        Args:
            present: Whether type is larger, for a projector.
            language: Language of the page.
        """
        raise NotImplementedError

    def figures(self, name: str, present: bool, language: str) -> str | None:
        """Return the models of figures as HTML, an element per figure; None without such a name.

        Args:
            name: Name of the figures, as `data-figures` around their places.
            present: Whether they are larger.
            language: Language of the page.
        """
        return None

    async def get(self) -> None:
        """Send the page, light or dark, with larger type in present mode; or figures of it.

        Raises:
            HTTPError: 404 if there are no such figures.
        """
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        present = self.get_query_argument("present", "0") not in ("0", "false")
        query = {"lang": self.get_query_argument("lang", "")}
        language = chosen(query, self.get_cookie(COOKIE, "") or "")
        classes = " ".join(["dark"] * (theme == "dark") + ["present"] * present)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # revalidated by ETag
        self.set_header("Vary", "Accept-Encoding, Cookie")
        self.set_header("Content-Security-Policy", self.policy.static())
        if "figures" in self.request.arguments:
            # In a thread: the first time, a figure takes up to a second.
            name = self.get_query_argument("figures")
            made = await asyncio.to_thread(self.figures, name, present, language)
            if made is None:
                raise HTTPError(404)
        else:
            made = self.page(present, language).replace(CLASSES, classes, 1)
        if "gzip" not in self.request.headers.get("Accept-Encoding", ""):
            self.finish(made)
            return
        self.set_header("Content-Encoding", "gzip")
        self.finish(gzip.compress(made.encode(), 6, mtime=0))
