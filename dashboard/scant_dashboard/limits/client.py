"""The client of a request for the limits: a network address and, if known, a visitor."""

from __future__ import annotations

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from tornado.httputil import HTTPServerRequest

from scant.runs.addresses import network
from scant_dashboard.auth.visitor_cookie import COOKIE, verify


class Busy(Exception):
    """The client or the server has too many requests; the message says what to do.

    Attributes:
        status: HTTP status: 429 if the client is the cause, otherwise 503.
        seconds: Recommended delay before a retry.
    """

    def __init__(self, sentence: str, status: int = 429, seconds: int = 5) -> None:
        super().__init__(sentence)
        self.status, self.seconds = status, seconds


@dataclass(frozen=True)
class Client:
    """The client of a request.

    Attributes:
        address: Network address; for IPv6, the subscriber's network.
        visitor: Visitor id from the cookie; "" without a valid cookie.
    """

    address: str
    visitor: str = ""

    @classmethod
    def of(cls, request: HTTPServerRequest, key: str) -> Client:
        """Return the client of a request, whose visitor cookie is signed with `key`.

        The cookie is read from the header, because `visitor_cookie.transform` gives every request
        without one a new visitor, which is useless for counting.
        """
        return cls(network(request.remote_ip or ""), _visitor(request, key))


def _visitor(request: HTTPServerRequest, key: str) -> str:
    try:
        cookies = SimpleCookie(request.headers.get("Cookie", ""))
    except CookieError:
        return ""
    value = cookies[COOKIE].value if COOKIE in cookies else None
    return verify(value, key) or ""
