"""From which pages a browser may open a websocket to this server.

A page of another site could otherwise speak through a visitor's browser. The hosts that are listed
may; and, where the server listens on a network, so may its own pages under whatever name visitors
reached it, which is what the Host header says. On this machine only the list counts: a strange name
that leads here is somebody's trick.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit


def listed(port: int, address: str, further: Sequence[str]) -> list[str]:
    """The hosts whose pages may connect: this machine, and those given by the operator."""
    given = [*further, *os.environ.get("SCANT_ALLOW_ORIGIN", "").split(",")]
    own = {"127.0.0.1", "localhost", f"[{address}]" if ":" in address else address}
    return [f"{host}:{port}" for host in sorted(own)] + [h for h in map(str.strip, given) if h]


def same_host(origin: str, host: str) -> bool:
    """Whether the page at `origin` was served under the Host header `host`."""
    return urlsplit(origin).netloc.lower() == host.lower()


def on_this_machine(address: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
