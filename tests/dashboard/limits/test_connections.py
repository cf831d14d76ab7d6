"""Open connections: bounded by address and in all, and none for long without a request."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scant_dashboard.auth.proxy import Proxies
from scant_dashboard.limits.connections import Connections
from tests.dashboard.standing import ask, standing


class Stream:
    """A connection that can be closed."""

    def __init__(self) -> None:
        self.over = False

    def closed(self) -> bool:
        return self.over


def test_an_address_has_a_bounded_number_of_connections() -> None:
    limits = Connections(Proxies(["10.9.9.9"]), per_address=2, overall=6)
    streams: list[Any] = [Stream() for _ in range(9)]
    assert [limits.add(s, "10.0.0.1") for s in streams[:3]] == [True, True, False]
    assert limits.add(streams[3], "10.0.0.2")
    streams[0].over = True
    assert limits.add(streams[4], "10.0.0.1")
    assert [limits.add(s, "10.9.9.9") for s in streams[5:9]] == [True, True, True, False]


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    limits = Connections(Proxies(["10.9.9.9"]), per_address=1, overall=9)
    kept: list[Any] = [Stream(), Stream()]
    assert limits.add(kept[0], "2001:db8::1")
    assert not limits.add(kept[1], "2001:db8::2")


def test_a_server_closes_idle_connections_and_those_that_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scant_dashboard.app.IDLE_SECONDS", 0.5)
    monkeypatch.setattr("scant_dashboard.app.Connections", partial(Connections, per_address=3))
    with standing(tmp_path, trusted_proxy=["10.9.9.9"]) as served:
        at = ("127.0.0.1", served.server.port)
        idle = [socket.create_connection(at, timeout=30) for _ in range(3)]
        idle[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")  # half a request
        with socket.create_connection(at, timeout=30) as further:
            assert further.recv(1) == b""
        assert [one.recv(1) for one in idle] == [b"", b"", b""]
        assert ask(f"{served.url}/healthz").status == 200
