"""A page's address answers with its static page; what asks for more gets the live one."""

from __future__ import annotations

from typing import Any

from tornado.web import authenticated

from scant_dashboard.static_page.published import Published
from scant_dashboard.static_page.still import Still

LIVE = "live"  # in an address: asks for the live page
OVER = "over"  # its value where the static page is to lie over that until it is drawn
PLAIN = {"theme"}  # what an address may say without needing a session


class StaticFirst(Still):
    """Mixed into a handler of a page: whoever asks for nothing in particular needs no session."""

    published: Published

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
        look, published = self.look, self.published
        page = published.markup(self.page, look, self.user)
        if page is None:
            return False
        if over:
            self.lay_over(page)
            return False
        self.send_still(page, lambda: published.packed(self.page, look))
        return True
