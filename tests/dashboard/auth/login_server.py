"""A server that asks for a login, on a loop of its own thread, and browsers without scripts."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from scant.store import Store
from scant_dashboard.app import build
from scant_dashboard.auth import accounts
from scant_dashboard.frame.site import Site
from scant_dashboard.server.options import ServerOptions
from tests.dashboard.fakes import FakeService

FORM = "application/x-www-form-urlencoded"


@dataclass
class Server:
    """One that runs. `on_loop(f)` calls f in its thread and returns what f returns."""

    site: Site
    bokeh: Any
    users: Path

    @property
    def port(self) -> int:
        return self.bokeh.port

    @property
    def provider(self) -> Any:
        return self.bokeh._tornado.auth_provider

    def on_loop(self, call: Callable[[], Any]) -> Any:
        async def called() -> Any:
            result = call()
            return await result if asyncio.iscoroutine(result) else result

        loop = self.bokeh.io_loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(called(), loop).result(30)


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def place(self) -> str:
        return self.headers.get("Location", "")


@dataclass
class Visitor:
    """Keeps cookies and follows nothing."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def send(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Answer:
        head = dict(headers or {})
        if self.cookies:
            head["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None, head)
            got = connection.getresponse()
            answer = Answer(got.status, got.headers, got.read())
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                if not morsel.value:
                    del self.cookies[name]
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Answer:
        head = {"Content-Type": FORM, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.send("POST", path, urlencode(fields or {}).encode(), head)

    def log_in(self, name: str, password: str, onward: str = "/login", **headers: str) -> Answer:
        return self.post(onward, {"username": name, "password": password}, **headers)


def write_users(file: Path, monkeypatch: pytest.MonkeyPatch, **passwords: str) -> None:
    """A user file whose hashes cost nothing."""
    with monkeypatch.context() as quick:
        quick.setattr(accounts, "LOG2_N", 4)
        hashes = {name: accounts.hash_password(word) for name, word in passwords.items()}
    accounts.write_users(file, hashes)


@contextmanager
def serving(folder: Path, auth: Path | None, database: str = "runs.db") -> Iterator[Server]:
    """A server with nothing behind it."""
    started = threading.Event()
    made: list[Server] = []

    def serve() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        store = Store.open(f"sqlite:///{folder / database}")
        site = Site(FakeService(store), folder, "k" * 40)
        server = build(site, ServerOptions(port=0, auth=auth))
        made.append(Server(site, server, auth or folder / "none"))
        server.start()
        server.io_loop.add_callback(started.set)
        server.io_loop.start()
        server.io_loop.close()
        store.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(30)
    (server,) = made
    try:
        yield server
    finally:
        if server.site.logins is not None:
            server.on_loop(server.site.logins.close)
        server.bokeh.io_loop.add_callback(server.bokeh.stop)
        server.bokeh.io_loop.add_callback(server.bokeh.io_loop.stop)
        thread.join(10)
