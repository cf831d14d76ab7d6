"""A page's address answers with its static page; what asks for more gets the live one."""

from __future__ import annotations

from typing import Any

from bokeh.server.server import Server
from panel.io.server import DocHandler
from scant.dashboard.auth.sessions import login_user
from scant.dashboard.server.headers import Policy
from scant.dashboard.server.site import Site
from scant.dashboard.static_page.page import overlay
from scant.dashboard.static_page.published import Look, Published
from scant.dashboard.upstream.server_parts import application
from scant.studies import STUDIES
from tornado.web import authenticated

LIVE = "live"  # in an address: asks for the live page
OVER = "over"  # its value where the static page is to lie over that until it is drawn
PLAIN = {"theme"}  # what an address may say without needing a session


class StaticFirst:
    """Mixed into a handler of a study's page: whoever asks for nothing in particular needs no
    session."""

    published: Published  # these are set on the class that `first_static` makes
    site: Site
    static_policy: Policy
    study: str

    @authenticated
    async def get(self: Any, *args: Any, **kwargs: Any) -> None:
        """Send the static page, or the live one, over which it lies until that is drawn."""
        if not self._answered_still():
            await super().get(*args, **kwargs)  # type: ignore[misc]

    @authenticated
    async def head(self: Any, *args: Any, **kwargs: Any) -> None:
        """What GET would answer."""
        if not self._answered_still():
            await super().head(*args, **kwargs)  # type: ignore[misc]

    def _answered_still(self: Any) -> bool:
        """Send the static page where it is what was asked for."""
        arguments = set(self.request.arguments)
        over = self.get_query_argument(LIVE, "") == OVER
        user = (login_user(self.request) if self.site.logins else None) or ""
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        look = Look(self.get_cookie("scant_used") is None, theme == "dark")
        if not arguments <= (PLAIN | {LIVE, "run"} if over else PLAIN):
            return False
        page = self.published.markup(self.study, look, user)
        if page is None:
            return False
        if over:
            self._over = overlay(page)
            return False
        self._send_static(page, None if user else look)
        return True

    def write(self: Any, chunk: Any) -> None:
        """Lay the static page over a live one."""
        over = getattr(self, "_over", "")
        if over and isinstance(chunk, str) and "<body" in chunk:
            at = chunk.index(">", chunk.index("<body")) + 1
            chunk = chunk[:at] + over + chunk[at:]
        super().write(chunk)  # type: ignore[misc]

    def _send_static(self: Any, page: str, look: Look | None) -> None:
        """Send a page, compressed where it is kept so."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # asked again, by its ETag
        self.set_header("Vary", "Accept-Encoding, Cookie")
        self.set_header("Content-Security-Policy", self.static_policy.static())
        if look is not None and "gzip" in self.request.headers.get("Accept-Encoding", ""):
            self.set_header("Content-Encoding", "gzip")
            self.finish(self.published.packed(self.study, look))
        else:
            self.finish(page)


def first_static(server: Server, site: Site, policy: Policy) -> None:
    """Put static pages before the live ones of a server.

    Args:
        server: With its addresses put up and bounded.
        site: What its pages share; without static pages nothing changes.
        policy: What pages may load.
    """
    if site.published is None:
        return
    for rule in application(server).wildcard_router.rules:
        target: Any = rule.target
        study = rule.matcher.regex.pattern.strip("/$")
        if study in STUDIES and isinstance(target, type) and issubclass(target, DocHandler):
            shared: dict[str, Any] = {
                "published": site.published, "site": site, "static_policy": policy, "study": study,
            }  # fmt: skip
            rule.target = type("StaticFirstPage", (StaticFirst, target), shared)
