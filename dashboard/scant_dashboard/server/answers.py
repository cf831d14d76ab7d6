"""Base class of request handlers: HEAD like GET, and errors as one sentence."""

from __future__ import annotations

import html
import logging
import secrets
from functools import cache
from string import Template
from typing import Any

from tornado.web import RequestHandler

from scant_dashboard.server import prefix

log = logging.getLogger(__name__)

SENTENCES = {
    404: ("There is no page here", "No page has this address; check the spelling."),
    405: ("This cannot be done here", "This address does not support this kind of request."),
    503: (
        "The server cannot answer at the moment",
        "The database is unavailable or the server is busy. Try again in a minute; "
        "nothing was changed.",
    ),
}
REFUSED = ("This was refused", "The request was not accepted; go back and try again.")
FAULT = (
    "The server failed",
    "The error is logged as {id}. Try again, or go back to the gallery.",
)


class Answer(RequestHandler):
    """The last base class of every handler; added by `answering` if missing."""

    def head(self, *args: Any, **kwargs: Any) -> Any:
        """Handle HEAD like GET; tornado omits the body."""
        return self.get(*args, **kwargs)

    def redirect(self, url: str, permanent: bool = False, status: int | None = None) -> None:
        """Redirect; own addresses get the server's prefix."""
        if url.startswith("/"):
            url = prefix.of(self.request) + url
        super().redirect(url, permanent, status)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send an error page without tracebacks, paths or library messages."""
        title, sentence = SENTENCES.get(status_code, REFUSED)
        if status_code >= 500 and status_code not in SENTENCES:
            name = secrets.token_hex(4)
            log.error("fault %s: %d at %s", name, status_code, self.request.path)
            title, sentence = FAULT[0], FAULT[1].format(id=name)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(plain_page(title, sentence, prefix.of(self.request)))


class Missing(Answer):
    """Handler of unknown addresses."""

    def prepare(self) -> None:
        """Send 404 for every request."""
        self.send_error(404)


def answering(handler: type[RequestHandler]) -> type[RequestHandler]:
    """Return the handler with `Answer` as a further base class."""
    if issubclass(handler, Answer):
        return handler
    return type(handler.__name__, (handler, Answer), {"__module__": handler.__module__})


def plain_page(title: str, sentence: str, under: str = "") -> str:
    """Return a page without scripts that shows one message, for a server under a prefix."""
    return html_page(title, f"<p>{html.escape(sentence)}</p>", under)


def html_page(title: str, body: str, under: str = "") -> str:
    """Return a page without scripts, with `body` as HTML, for a server under a prefix."""
    fields = {"title": html.escape(title), "body": body, "under": html.escape(under)}
    return _template().substitute(fields)


@cache
def _template() -> Template:
    from scant_dashboard.template import assets

    return Template((assets() / "html" / "plain.html").read_text(encoding="utf-8"))
