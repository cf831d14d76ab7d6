"""Page handler that serves the static page, or the live one if the address requests it."""

from __future__ import annotations

import gzip
from typing import Any

from tornado.web import authenticated

from scant_dashboard.static_page.published import Published
from scant_dashboard.static_page.still import StaticPageMixin

LIVE = "live"  # query parameter that requests the live page
OVER = "over"  # its value if the static page is to cover the live one until that is drawn
PLAIN = {"theme"}  # query parameters that need no session
FIGURES = "figures"  # query parameter that requests the models of the static page's figures


class StaticFirst(StaticPageMixin):
    """Page-handler mixin that serves static pages for addresses without specific requests."""

    published: Published

    @authenticated
    async def get(self: Any, *args: Any, **kwargs: Any) -> None:
        """Send the static page, or the live one, initially covered by the static one."""
        if not self._send_static_page():
            await super().get(*args, **kwargs)  # type: ignore[misc]

    @authenticated
    async def head(self: Any, *args: Any, **kwargs: Any) -> None:
        """Send the headers of GET."""
        if not self._send_static_page():
            await super().head(*args, **kwargs)  # type: ignore[misc]

    def _send_static_page(self: Any) -> bool:
        """Send the static page if the address allows it; return whether it was sent."""
        arguments = set(self.request.arguments)
        if arguments == {FIGURES}:
            return self._send_figures()
        over = self.get_query_argument(LIVE, "") == OVER
        if not arguments <= (PLAIN | {LIVE, "run"} if over else PLAIN):
            return False
        if not self.english:
            return False
        dark, published = self.dark, self.published
        page = published.markup(self.page, dark, self.user)
        if page is None:
            return False
        if over:
            self.set_overlay(page, begun="run" in arguments)
            return False
        self.send_static(page, lambda: published.packed(self.page, dark))
        return True

    def _send_figures(self: Any) -> bool:
        """Send the models of the page's figures, which `assets/figures.js` draws on demand."""
        made = self.published.figures(self.page)
        if made is None:
            return False
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # revalidated by ETag
        self.set_header("Vary", "Accept-Encoding, Cookie")
        packed = "gzip" in self.request.headers.get("Accept-Encoding", "")
        if packed:
            self.set_header("Content-Encoding", "gzip")
        self.finish(made if packed else gzip.decompress(made))
        return True
