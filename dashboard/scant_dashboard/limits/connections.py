"""Limits on open connections: their number per address, and their idle time.

Every connection takes a file descriptor, and their number per process is limited (1,024 on many
machines); without any left, a server cannot respond or open a database. Websockets count as
connections, but pings show whether the browser is still there.
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
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

PER_ADDRESS = 1_000  # thirty people with four tabs and up to seven connections per tab
SPARE = 200  # descriptors reserved for files, the database and the workers
MAX_DESCRIPTORS = 16_384  # descriptors
# Connections that wait to be accepted. Tornado's 128 are too few for 300 simultaneous visitors:
# dropped ones retry only after a second.
BACKLOG = 1024
IDLE_SECONDS = 75.0  # without a complete request; longer than the timeout of proxies
BODY_SECONDS = 30.0  # for a request's body, such as the login form

log = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Raise this process's limit of file descriptors, up to `MAX_DESCRIPTORS`."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def max_connections() -> int:
    """Return the maximum number of connections of this process."""
    if resource is None:
        return MAX_DESCRIPTORS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else max(soft - SPARE, soft // 2)


class Connections:
    """Open connections, by address of the peer.

    Args:
        proxies: Trusted proxies, which are not limited per address.
        per_address: Maximum connections of any other address.
        overall: Maximum connections in total; None for `max_connections()`.
    """

    def __init__(
        self, proxies: Proxies, per_address: int = PER_ADDRESS, overall: int | None = None
    ) -> None:
        self._proxies, self._per_address = proxies, per_address
        self._overall = max_connections() if overall is None else overall
        self._open: defaultdict[str, WeakSet[IOStream]] = defaultdict(WeakSet)

    def add(self, stream: IOStream, peer: str) -> bool:
        """Count a connection until it closes; return False if it would exceed a limit."""
        address = network(peer)
        for other in list(self._open):
            self._open[other] = WeakSet(s for s in self._open[other] if not s.closed())
            if not self._open[other]:
                del self._open[other]
        everybody = sum(map(len, self._open.values()))
        own = 0 if self._proxies.trusts(peer) else len(self._open.get(address, ()))
        if everybody >= self._overall or own >= self._per_address:
            return False
        self._open[address].add(stream)
        return True


def bound_connections(server: Server, connections: Connections) -> None:
    """Let a server close excess connections immediately, and raise its backlog."""
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
