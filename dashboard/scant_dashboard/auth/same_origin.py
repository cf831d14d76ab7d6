"""Under which names this server answers, and from which pages a browser may open a websocket to it.

A page of another site could otherwise speak through a visitor's browser. The server's own pages
may, under the name by which the visitor reached them, which is what the Host header says; and so
may pages of the hosts that are listed. A server that only this machine reaches has no other names
than the machine's and those listed: any other name that leads here was pointed here by somebody
else (DNS rebinding).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from bokeh.server.util import check_allowlist
from tornado.httputil import HTTPServerRequest


def listed(port: int, address: str, further: Sequence[str]) -> list[str]:
    """The hosts whose pages may connect: this machine, and those given by the operator."""
    given = [*further, *os.environ.get("SCANT_ALLOW_ORIGIN", "").split(",")]
    own = {"127.0.0.1", "localhost", f"[{address}]" if ":" in address else address}
    return [f"{host}:{port}" for host in sorted(own)] + [h for h in map(str.strip, given) if h]


def from_own_page(request: HTTPServerRequest, hosts: Collection[str]) -> bool:
    """Whether a browser sends a handshake for a page of this server, or of one of `hosts`.

    Browsers name the page's site in every handshake of a websocket; without it there is no page.
    """
    host = _netloc(request.headers.get("Origin", ""))
    return bool(host) and (host == request.host.lower() or check_allowlist(host, list(hosts)))


def names_this_machine(host: str, hosts: Collection[str]) -> bool:
    """Whether a Host header names this machine, under any port (that of a tunnel), or is listed."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return on_this_machine(name) or (bool(name) and check_allowlist(host.lower(), list(hosts)))


def on_this_machine(address: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # an address of brackets that do not match
        return ""
