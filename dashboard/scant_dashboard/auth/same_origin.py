"""Host names of this server, and origins of pages that may open a websocket to it.

A page of another site could otherwise act through a visitor's browser. Allowed are the server's own
pages, under the name by which the visitor reached them (the Host header), and pages of listed
hosts. A server that listens on this machine only has no other names than the machine's and the
listed ones: any other name that resolves to it is an attack (DNS rebinding).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from bokeh.server.util import check_allowlist
from tornado.httputil import HTTPServerRequest


def allowed_hosts(port: int, address: str, further: Sequence[str]) -> list[str]:
    """Return the hosts whose pages may connect: this machine and those set by the operator."""
    given = [*further, *os.environ.get("SCANT_ALLOW_ORIGIN", "").split(",")]
    own = {"127.0.0.1", "localhost", f"[{address}]" if ":" in address else address}
    return [f"{host}:{port}" for host in sorted(own)] + [h for h in map(str.strip, given) if h]


def from_own_page(request: HTTPServerRequest, hosts: Collection[str]) -> bool:
    """Whether a websocket handshake comes from a page of this server, or of one of `hosts`.

    Browsers send the page's origin with every handshake; requests without one are no pages.
    """
    host = _netloc(request.headers.get("Origin", ""))
    return bool(host) and (host == request.host.lower() or check_allowlist(host, list(hosts)))


def names_this_machine(host: str, hosts: Collection[str]) -> bool:
    """Whether a Host header names this machine, under any port (e.g. a tunnel's), or is listed."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return on_this_machine(name) or (bool(name) and check_allowlist(host.lower(), list(hosts)))


def on_this_machine(address: str) -> bool:
    """Whether an address is reachable from this machine only."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # unbalanced brackets
        return ""
