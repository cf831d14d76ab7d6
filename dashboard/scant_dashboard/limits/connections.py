"""Limits on open connections: their number per address, and their idle time.

Every connection takes a file descriptor, and a process has a fixed number (1,024 on many
machines); without any left a server answers nobody and opens no database. A websocket is a
connection too, but its pings tell whether the browser is there.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any
from weakref import WeakSet

from bokeh.server.server import Server
from tornado.iostream import IOStream

from scant.runs.addresses import network
from scant_dashboard.auth.proxy import Proxies
from scant_dashboard.upstream.server_parts import http_server, sockets

try:
    import resource
except ImportError:  # Windows, which has no such number
    resource = None  # type: ignore[assignment]

PER_ADDRESS = 1_000  # thirty people with four tabs and up to seven connections per tab
SPARE = 200  # descriptors for files, the database and the workers
WANTED = 16_384  # descriptors
# Connections that wait to be taken. Tornado's 128 are too few for 300 who come at once: whoever is
# dropped tries again after a second.
BACKLOG = 1024
IDLE_SECONDS = 75.0  # without a request, or with half of one; longer than proxies keep theirs
BODY_SECONDS = 30.0  # for a request's body, which is a login's form

log = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Let this process have as many file descriptors as it may, up to `WANTED`."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most() -> int:
    """How many connections this process may have at once."""
    if resource is None:
        return WANTED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WANTED if soft == resource.RLIM_INFINITY else max(soft - SPARE, soft // 2)


class Connections:
    """The connections that are open, by the address of their peer.

    Args:
        proxies: Peers that speak for many; they are not bounded by themselves.
        per_address: Connections of any other address.
        overall: Connections in all; None: `most()`.
    """

    def __init__(
        self, proxies: Proxies, per_address: int = PER_ADDRESS, overall: int | None = None
    ) -> None:
        self._proxies, self._per_address = proxies, per_address
        self._overall = most() if overall is None else overall
        self._open: defaultdict[str, WeakSet[IOStream]] = defaultdict(WeakSet)

    def add(self, stream: IOStream, peer: str) -> bool:
        """Count a connection until it is closed; False, and not counted, where it is too many."""
        address = network(peer)
        for known in list(self._open):
            self._open[known] = WeakSet(s for s in self._open[known] if not s.closed())
            if not self._open[known]:
                del self._open[known]
        everybody = sum(map(len, self._open.values()))
        own = 0 if self._proxies.trusts(peer) else len(self._open.get(address, ()))
        if everybody >= self._overall or own >= self._per_address:
            return False
        self._open[address].add(stream)
        return True


def bound_connections(server: Server, connections: Connections) -> None:
    """Have a server close at once what is too many, and keep no crowd from knocking."""
    for one in sockets(server):
        one.listen(BACKLOG)
    http: Any = http_server(server)
    handle = http.handle_stream

    def handle_stream(stream: IOStream, address: Any) -> Any:
        peer = str(address[0]) if isinstance(address, tuple) and address else ""
        if connections.add(stream, peer):
            return handle(stream, address)
        stream.close()
        return None

    http.handle_stream = handle_stream
