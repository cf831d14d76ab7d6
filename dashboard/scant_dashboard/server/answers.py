"""The base class of request handlers: HEAD as GET, and errors as one sentence."""

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
REFUSED = ("This was refused", "The request could not be taken; go back and try it again.")
FAULT = (
    "The server failed",
    "The error is logged as {id}. Try again, or go back to the gallery.",
)


class Answer(RequestHandler):
    """The last base of every handler; `answering` adds it where it is not."""

    def head(self, *args: Any, **kwargs: Any) -> Any:
        """As GET; tornado leaves the body out."""
        return self.get(*args, **kwargs)

    def redirect(self, url: str, permanent: bool = False, status: int | None = None) -> None:
        """Lead elsewhere; an address of ours is one under the prefix of the server."""
        if url.startswith("/"):
            url = prefix.of(self.request) + url
        super().redirect(url, permanent, status)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with a page of ours: never a traceback, a path or a library's words."""
        title, sentence = SENTENCES.get(status_code, REFUSED)
        if status_code >= 500 and status_code not in SENTENCES:
            name = secrets.token_hex(4)
            log.error("fault %s: %d at %s", name, status_code, self.request.path)
            title, sentence = FAULT[0], FAULT[1].format(id=name)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(plain_page(title, sentence, prefix.of(self.request)))


class Missing(Answer):
    """An address that leads nowhere."""

    def prepare(self) -> None:
        """Whatever the request is."""
        self.send_error(404)


def answering(handler: type[RequestHandler]) -> type[RequestHandler]:
    """The handler with the faults and the HEAD of `Answer`, where it has none of its own."""
    if issubclass(handler, Answer):
        return handler
    return type(handler.__name__, (handler, Answer), {"__module__": handler.__module__})


def plain_page(title: str, sentence: str, under: str = "") -> str:
    """A page without scripts that says one thing, of a server under a prefix."""
    words = {"title": html.escape(title), "sentence": html.escape(sentence)}
    return _template().substitute(words, under=html.escape(under))


@cache
def _template() -> Template:
    from scant_dashboard.template import assets

    return Template((assets() / "html" / "plain.html").read_text(encoding="utf-8"))
