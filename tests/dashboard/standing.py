"""A server with nothing behind it, on a loop of its own thread, and clients that are no browser."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bokeh.server.server import Server
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from scant.store import Store
from scant_dashboard.app import build
from scant_dashboard.followers.followers import Followers
from scant_dashboard.frame.site import Site
from scant_dashboard.server.options import ServerOptions
from scant_dashboard.static_page.published import Published
from tests.dashboard.fakes import FakeService

KEY = "k" * 40
TOKEN = re.compile(r'"token":"([^"]+)"')


@dataclass
class Standing:
    """A running server.

    Attributes:
        url: Its address.
        site: What its pages share.
        server: Itself, whose sessions a test may count.
        followers: The pages of followed runs, if it has them.
    """

    url: str
    site: Site
    server: Server
    followers: Followers | None

    def sessions(self) -> set[str]:
        """The ids of the browser sessions that there are; those that were left go by themselves."""
        return {session.id for session in self.server.get_sessions()}


@dataclass
class Reply:
    """An answer as it came: its status, its headers (of a name, the first) and its body."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def token(self) -> str:
        """The token of a page's session."""
        match = TOKEN.search(self.body.decode())
        assert match is not None, "the page holds no token"
        return match[1]

    @property
    def cookie(self) -> str:
        """The visitor's cookie as a browser sends it back."""
        return self.headers["Set-Cookie"].split(";")[0]


@contextmanager
def standing(
    folder: Path,
    published: Published | None = None,
    follow: bool = False,
    **options: Any,
) -> Iterator[Standing]:
    """A server, with static pages or without; `options` are those of `ServerOptions`.

    Where `follow` is set, runs can be followed on it.
    """
    started = threading.Event()
    results: list[Any] = []

    def serve() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        store = Store.open(f"sqlite:///{folder / 'runs.db'}")
        site = Site(FakeService(store), folder, KEY)
        followers = Followers(site.service) if follow else None
        server = build(site, ServerOptions(port=0, **options), published, followers)
        results.extend((server, site, followers))
        server.start()
        server.io_loop.add_callback(started.set)
        server.io_loop.start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(30)
    server, site, followers = results
    yield Standing(f"http://127.0.0.1:{server.port}", site, server, followers)
    server.io_loop.add_callback(server.stop)
    server.io_loop.add_callback(server.io_loop.stop)
    thread.join(10)


def ask(url: str, method: str = "GET", body: str | None = None, **headers: str) -> Reply:
    """The answer to one request, which follows nothing; `_` in a header's name stands for `-`."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    path = url.removeprefix(f"{parts.scheme}://{parts.netloc}") or "/"
    connection.request(method, path, body, given)
    answer = connection.getresponse()
    reply = Reply(answer.status, answer.headers, answer.read())
    connection.close()
    return reply


def join(
    url: str,
    token: str,
    cookie: str = "",
    talk: Callable[..., Awaitable[Any]] | None = None,
    **headers: str,
) -> Any:
    """Open the websocket of the page at `url`, as the page itself does if `headers` say no more.

    Returns:
        The status with which it is refused (403), or 101; what `talk(socket)` returns if given.
    """

    async def knock() -> Any:
        at = url.split("?")[0].rstrip("/").replace("http", "ws", 1) + "/ws"
        said = {"Origin": "/".join(url.split("/")[:3]), "Cookie": cookie} | headers
        request = HTTPRequest(at, headers={name: word for name, word in said.items() if word})
        try:
            socket = await websocket_connect(request, subprotocols=["bokeh", token])
        except HTTPClientError as error:
            return error.code
        try:
            kind, _ = await message(socket)
            assert kind == "ACK"
            return await talk(socket) if talk is not None else 101
        finally:
            socket.close()

    return asyncio.run(asyncio.wait_for(knock(), 60))


async def message(socket: WebSocketClientConnection) -> tuple[str, str]:
    """The kind and the content of the next message; ("", reason) if the server hangs up."""
    frames = []
    for _ in range(3):
        frame = await socket.read_message()
        if frame is None:
            return "", socket.close_reason or ""
        frames.append(frame)
    header = json.loads(frames[0])
    for _ in range(2 * header.get("num_buffers", 0)):
        await socket.read_message()
    return header["msgtype"], str(frames[2])
