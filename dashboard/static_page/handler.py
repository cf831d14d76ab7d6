"""A page's address answers with its static page; what asks for more gets the live one."""

from __future__ import annotations

from typing import Any

from bokeh.server.server import Server
from panel.io.server import DocHandler
from scant.dashboard.server.site import Site
from scant.dashboard.static_page.published import Published
from scant.dashboard.static_page.still import Still
from scant.dashboard.upstream.server_parts import application
from scant.studies import STUDIES
from tornado.web import authenticated

LIVE = "live"  # in an address: asks for the live page
OVER = "over"  # its value where the static page is to lie over that until it is drawn
PLAIN = {"theme"}  # what an address may say without needing a session


class StaticFirst(Still):
    """Mixed into a handler of a study's page: whoever asks for nothing in particular needs no
    session."""

    published: Published  # these are set on the class that `first_static` makes
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
        if not arguments <= (PLAIN | {LIVE, "run"} if over else PLAIN):
            return False
        look = self.look
        page = self.published.markup(self.study, look, self.user)
        if page is None:
            return False
        if over:
            self.lay_over(page)
            return False
        self.send_still(page, lambda: self.published.packed(self.study, look))
        return True


def first_static(server: Server, site: Site) -> None:
    """Put static pages before the live ones of a server.

    Args:
        server: With its addresses put up and bounded.
        site: What its pages share; without static pages nothing changes.
    """
    if site.published is None:
        return
    for rule in application(server).wildcard_router.rules:
        target: Any = rule.target
        matcher: Any = rule.matcher
        study = matcher.regex.pattern.strip("/$")
        if study in STUDIES and isinstance(target, type) and issubclass(target, DocHandler):
            shared: dict[str, Any] = {"published": site.published, "site": site, "study": study}
            rule.target = type("StaticFirstPage", (StaticFirst, target), shared)
