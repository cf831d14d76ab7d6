"""Base of handlers that serve a static page, or cover the live page with one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bokeh.server.server import Server
from panel.io.server import DocHandler

from scant_dashboard.auth.sessions import login_user
from scant_dashboard.frame.site import Site
from scant_dashboard.server.headers import Policy
from scant_dashboard.static_page.page import overlay
from scant_dashboard.static_page.published import GALLERY
from scant_dashboard.translate import COOKIE, ENGLISH
from scant_dashboard.upstream.server_parts import application

HOLD = (  # as in takeover.js
    "@view-transition { navigation: auto } "
    "::view-transition-group(*), ::view-transition-old(*), ::view-transition-new(*) "
    "{ animation: none }"
)
STATUS = re.compile(r"(<div role='status'[^>]*>)[^<]*")
SCRIPT = re.compile(r"<script\b.*?</script>\s*", re.DOTALL)


class StaticPageMixin:
    """Mixin for page handlers."""

    site: Site  # set by `prepend_handlers`, like the attributes of subclasses
    page: str  # name of the study, or of the gallery
    policy: Policy  # the page handler's policy
    _over = ""  # HTML that initially covers the live page

    @property
    def dark(self: Any) -> bool:
        """Whether the visitor's theme is dark."""
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        return str(theme) == "dark"

    @property
    def english(self: Any) -> bool:
        """Whether the visitor reads English, the only language of static pages."""
        return bool(self.get_cookie(COOKIE, ENGLISH) == ENGLISH)

    @property
    def user(self: Any) -> str:
        """Name of the logged-in user; "" if the server requires no login."""
        return (login_user(self.request) if self.site.logins else None) or ""

    def set_overlay(self, page: str, begun: bool = False) -> None:
        """Cover the live page, which is sent next, with this page.

        Args:
            page: The static page.
            begun: Whether a run has begun, so that the page's numbers are of an earlier one.
        """
        if begun:
            page = page.replace("<main>", "<main class='starting'>", 1)
            page = STATUS.sub(r"\g<1>starting…", page, count=1)
        self._over = overlay(page)

    def write(self: Any, chunk: Any) -> None:
        """Insert the cover into a live page."""
        if self._over and isinstance(chunk, str) and "<body" in chunk:
            chunk = covered(chunk, self._over)
        super().write(chunk)  # type: ignore[misc]

    def send_static(self: Any, page: str, packed: Callable[[], bytes | None]) -> None:
        """Send a page, compressed if the browser accepts it and the page names no user.

        Args:
            page: The page for this visitor.
            packed: Returns the page without a user's name, compressed by gzip.
        """
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # revalidated by ETag
        self.set_header("Vary", "Accept-Encoding, Cookie")
        self.set_header("Content-Security-Policy", self.policy.static())
        if self.user or "gzip" not in self.request.headers.get("Accept-Encoding", ""):
            self.finish(page)
            return
        self.set_header("Content-Encoding", "gzip")
        self.finish(packed())


def covered(page: str, cover: str) -> str:
    """Put a cover into a live page, before the scripts of its head.

    Browsers draw nothing of a body before the scripts above it are loaded; that takes a second,
    for which the page would be white. Browsers with view transitions keep the page before until
    the cover is drawn.
    """
    at = page.index(">", page.index("<body")) + 1
    head, body = SCRIPT.sub("", page[:at]), page[at:]
    head = head.replace("<head>", f"<head><style>{HOLD}</style>", 1)
    return head + cover + "".join(SCRIPT.findall(page[:at])) + body


def prepend_handlers(server: Server, kind: type[StaticPageMixin], **shared: Any) -> None:
    """Let a mixin answer first at the address of every page.

    Args:
        server: Server with its routes and limits installed.
        kind: The mixin, which passes on requests that it does not answer.
        shared: Attributes of the handlers.
    """
    for rule in application(server).wildcard_router.rules:
        target: Any = rule.target
        matcher: Any = rule.matcher
        if isinstance(target, type) and issubclass(target, DocHandler):
            page = matcher.regex.pattern.strip("/$") or GALLERY
            rule.target = type(kind.__name__, (kind, target), {**shared, "page": page})
