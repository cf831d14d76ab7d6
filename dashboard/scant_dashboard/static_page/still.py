"""What handlers share that answer with a page without a session, or lay one over the live page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bokeh.server.server import Server
from panel.io.server import DocHandler

from scant_dashboard.auth.sessions import login_user
from scant_dashboard.frame.site import Site
from scant_dashboard.server.headers import Policy
from scant_dashboard.static_page.page import overlay
from scant_dashboard.static_page.published import GALLERY, Look
from scant_dashboard.upstream.server_parts import application


class Still:
    """Mixed into a handler of a page."""

    site: Site  # set, as what a kind of its own needs, on the class that `put_before` makes
    page: str  # a study, or the gallery
    policy: Policy  # the handler's
    _over = ""  # what lies over the live page at first

    @property
    def look(self: Any) -> Look:
        """How the visitor sees a page."""
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        return Look(self.get_cookie("scant_used") is None, theme == "dark")

    @property
    def user(self: Any) -> str:
        """The name under which the visitor is logged in; "" where nobody logs in."""
        return (login_user(self.request) if self.site.logins else None) or ""

    def lay_over(self, page: str) -> None:
        """Have a page lie over the live one, which is sent next."""
        self._over = overlay(page)

    def write(self: Any, chunk: Any) -> None:
        """Lay the static page over a live one."""
        if self._over and isinstance(chunk, str) and "<body" in chunk:
            at = chunk.index(">", chunk.index("<body")) + 1
            chunk = chunk[:at] + self._over + chunk[at:]
        super().write(chunk)  # type: ignore[misc]

    def send_still(self: Any, page: str, packed: Callable[[], bytes | None]) -> None:
        """Send a page, compressed where the browser takes it so and it names nobody.

        Args:
            page: Of this visitor.
            packed: The same by gzip, as it is kept for who has no name.
        """
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # asked again, by its ETag
        self.set_header("Vary", "Accept-Encoding, Cookie")
        self.set_header("Content-Security-Policy", self.policy.static())
        if self.user or "gzip" not in self.request.headers.get("Accept-Encoding", ""):
            self.finish(page)
            return
        self.set_header("Content-Encoding", "gzip")
        self.finish(packed())


def put_before(server: Server, kind: type[Still], **shared: Any) -> None:
    """Have a kind of handler answer first at the address of every page.

    Args:
        server: With its addresses put up and bounded.
        kind: Passes on what it does not answer.
        shared: Attributes of the handlers: what the pages share, and what the kind answers from.
    """
    for rule in application(server).wildcard_router.rules:
        target: Any = rule.target
        matcher: Any = rule.matcher
        if isinstance(target, type) and issubclass(target, DocHandler):
            page = matcher.regex.pattern.strip("/$") or GALLERY
            rule.target = type(kind.__name__, (kind, target), {**shared, "page": page})
