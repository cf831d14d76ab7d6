"""The limits on a server that listens: pages in turns, answers meanwhile, bombs over the socket."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from bokeh.server.server import Server
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from scant.store import Store
from scant_dashboard.app import build
from scant_dashboard.frame.site import Site
from scant_dashboard.limits.client import Client
from scant_dashboard.limits.gate import PER_VISITOR
from scant_dashboard.server.options import ServerOptions
from tests.dashboard.fakes import FakeService


@dataclass
class Served:
    url: str
    site: Site
    server: Server

    def on_loop(self, work: Callable[[], Any]) -> Any:
        """The result of an async function on the server's loop."""

        async def do() -> Any:
            return await work()

        loop = self.server.io_loop.asyncio_loop  # type: ignore[attr-defined]
        return asyncio.run_coroutine_threadsafe(do(), loop).result(30)

    def waiting(self, count: int) -> None:
        """Wait until as many requests wait at the gate."""

        async def wait() -> None:
            while self.site.limits.gate.waiting != count:
                await asyncio.sleep(0.01)

        self.on_loop(lambda: asyncio.wait_for(wait(), 20))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with nothing behind it, on a loop of its own thread."""
    folder, started, made = tmp_path_factory.mktemp("served"), threading.Event(), list[Any]()

    def serve() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        store = Store.open(f"sqlite:///{folder / 'runs.db'}")
        site = Site(FakeService(store), folder, "k" * 40)
        server = build(site, ServerOptions(port=0))
        made.extend((site, server))
        server.start()
        server.io_loop.add_callback(started.set)
        server.io_loop.start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(30)
    site, server = made
    yield Served(f"http://127.0.0.1:{server.port}", site, server)
    server.io_loop.add_callback(server.stop)
    server.io_loop.add_callback(server.io_loop.stop)
    thread.join(10)


def get(url: str, cookie: str = "") -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(url, headers={"Cookie": cookie} if cookie else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def cookie_of(headers: dict[str, str]) -> str:
    return headers["Set-Cookie"].split(";")[0]


def test_while_pages_wait_others_are_answered_and_too_many_are_refused(served: Served) -> None:
    cookie = cookie_of(get(served.url)[1])
    first = served.site.limits.gate.turn("test")
    served.on_loop(first.__aenter__)
    with ThreadPoolExecutor() as threads:
        pages: list[Future[Any]] = [
            threads.submit(get, served.url, cookie) for _ in range(PER_VISITOR)
        ]
        served.waiting(PER_VISITOR)
        assert get(f"{served.url}/healthz")[0] == 200
        assert get(f"{served.url}/assets/plain.css")[0] == 200
        status, headers, body = get(served.url, cookie)
        assert status == 429
        assert int(headers["Retry-After"]) > 0
        assert headers["Content-Type"].startswith("text/html")
        assert "You are opening many pages at once" in body
        assert re.search(r'<meta http-equiv="refresh" content="\d+">', body)
        assert "Sie öffnen viele Seiten auf einmal" in get(f"{served.url}/?lang=de", cookie)[2]
        gone = socket.create_connection(("127.0.0.1", served.server.port))
        gone.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        served.waiting(PER_VISITOR + 1)
        gone.close()
        served.waiting(PER_VISITOR)  # who has gone has left the line
        served.on_loop(lambda: first.__aexit__(None, None, None))
        assert [page.result()[0] for page in pages] == [200] * PER_VISITOR


def test_sessions_are_counted_for_the_visitor_of_the_cookie(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = cookie_of(get(served.url)[1])
    sessions = served.site.limits.sessions
    bounds = (2, 10**6, 10**6)
    monkeypatch.setattr(sessions, "_bounds", bounds)
    assert [get(served.url, cookie)[0] for _ in range(3)] == [200, 200, 429]
    assert get(served.url)[0] == 200  # a newcomer
    status, _, body = get(served.url, "scant_visitor=forged")
    assert status == 200
    monkeypatch.setattr(sessions, "_bounds", (10**6, 1, 10**6))
    status, _, body = get(served.url, "scant_visitor=forged")
    assert status == 429
    assert "Your network has 1 pages" in body
    assert {client.address for client in sessions._clients.values()} == {"127.0.0.1"}
    assert Client("127.0.0.1") in sessions._clients.values()


def test_a_bomb_over_the_socket_ends_the_connection_with_one_line(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    _, headers, body = get(served.url)
    token = re.search(r'"token":"([^"]+)"', body)
    assert token is not None
    bomb = base64.b64encode(gzip.compress(bytes(50_000_000))).decode()
    event = {"kind": "MessageSent", "msg_type": "x", "msg_data": {"type": "bytes", "data": bomb}}

    async def attack() -> int | None:
        request = HTTPRequest(
            served.url.replace("http", "ws") + "/ws",
            headers={"Cookie": cookie_of(headers), "Origin": served.url},
        )
        connection = await websocket_connect(request, subprotocols=["bokeh", token.group(1)])
        for _ in range(3):
            await connection.read_message()  # the server's ACK
        for fragment in ('{"msgid": "1", "msgtype": "PATCH-DOC"}', "{}"):
            await connection.write_message(fragment)
        await connection.write_message(json.dumps({"events": [event]}))
        while await connection.read_message() is not None:
            pass
        return connection.close_code

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(asyncio.wait_for(attack(), 30)) is not None
    bad = [r for r in caplog.records if r.levelno >= logging.WARNING]
    (record,) = [r for r in bad if not r.name.startswith("tornado.access")]  # answers of 429
    assert "decompress to more than" in record.getMessage()
    assert record.exc_info is None
    assert len(record.getMessage()) < 200
