"""The client that a request counts against: a network address and, if known, a visitor."""

from __future__ import annotations

from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from tornado.httputil import HTTPServerRequest

from scant.runs.addresses import network
from scant_dashboard.auth.visitor_cookie import COOKIE, verify


class Busy(Exception):
    """A client has too much going on, or the server has; the sentence says what to do.

    Attributes:
        status: 429 where the client itself is the cause, else 503.
        seconds: After how long it is worth trying again.
    """

    def __init__(self, sentence: str, status: int = 429, seconds: int = 5) -> None:
        super().__init__(sentence)
        self.status, self.seconds = status, seconds


@dataclass(frozen=True)
class Client:
    """Attributes:
    address: The network address; of an IPv6 address the network of one subscriber.
    visitor: The id of the visitor's cookie; "" for a request that brought none of ours.
    """

    address: str
    visitor: str = ""

    @classmethod
    def of(cls, request: HTTPServerRequest, key: str) -> Client:
        """The client of a request, whose visitor cookie is signed with `key`.

        The cookie is read from the header: `visitor_cookie.transform` gives each request without
        one a new visitor, by which nothing can be counted.
        """
        return cls(network(request.remote_ip or ""), _visitor(request, key))


def _visitor(request: HTTPServerRequest, key: str) -> str:
    try:
        cookies = SimpleCookie(request.headers.get("Cookie", ""))
    except CookieError:
        return ""
    value = cookies[COOKIE].value if COOKIE in cookies else None
    return verify(value, key) or ""
