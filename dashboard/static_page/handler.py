"""A page's address answers with its static page; what asks for more gets the live one."""

from __future__ import annotations

from typing import Any

from bokeh.server.server import Server
from panel.io.server import DocHandler
from scant.dashboard.auth.sessions import login_user
from scant.dashboard.server.headers import Policy
from scant.dashboard.server.site import Site
from scant.dashboard.static_page.page import overlay
from scant.dashboard.static_page.published import Published
from scant.dashboard.upstream.server_parts import application
from scant.studies import STUDIES
from tornado.web import authenticated

LIVE = "live"  # in an address: the static page asks for its live one
PLAIN = {"theme"}  # what else an address may say without needing a session


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
        arguments = self.request.arguments
        live = LIVE in arguments
        plain = set(arguments) <= {LIVE, *PLAIN}
        user = (login_user(self.request) if self.site.logins else None) or ""
        theme = self.get_query_argument("theme", "") or self.get_cookie("scant_theme", "")
        shown = (self.study, self.get_cookie("scant_used") is not None, theme == "dark")
        if not plain or self.published.markup(*shown) is None:
            await super().get(*args, **kwargs)  # type: ignore[misc]
        elif live:
            self._over = overlay(self.published.markup(*shown, user) or "")
            await super().get(*args, **kwargs)  # type: ignore[misc]
        else:
            self._send_static(shown, user)

    def write(self: Any, chunk: Any) -> None:
        """Lay the static page over a live one."""
        over = getattr(self, "_over", "")
        if over and isinstance(chunk, str) and "<body" in chunk:
            at = chunk.index(">", chunk.index("<body")) + 1
            chunk = chunk[:at] + over + chunk[at:]
        super().write(chunk)  # type: ignore[misc]

    def _send_static(self: Any, shown: tuple[str, bool, bool], user: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "private, no-cache")  # asked again, by its ETag
        self.set_header("Vary", "Accept-Encoding, Cookie")
        self.set_header("Content-Security-Policy", self.static_policy.static())
        body: str | bytes | None = None
        if not user and "gzip" in self.request.headers.get("Accept-Encoding", ""):
            body = self.published.packed(*shown)
            self.set_header("Content-Encoding", "gzip")
        self.finish(body or self.published.markup(*shown, user))


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
        matcher: Any = rule.matcher
        study = matcher.regex.pattern.strip("/$")
        if study in STUDIES and isinstance(target, type) and issubclass(target, DocHandler):
            shared: dict[str, Any] = {
                "published": site.published, "site": site, "static_policy": policy, "study": study,
            }  # fmt: skip
            rule.target = type("StaticFirstPage", (StaticFirst, target), shared)
