"""Many who follow one run: what reaches them, and what that costs the run.

Each opens the run's page as a browser does, then its stream of events, or, where the page is one
with a session (of versions before there were streams), its websocket. Training is slowed by the
processor time that a step takes more: watched and unwatched spans take turns.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from measuring.server import Server
from measuring.table import Row

TOKEN = re.compile(r'"token":\s*"([^"]+)"')
STREAM = re.compile(r"data-from='([^']+)' data-at='([^']+)'")
# Panel holds back what a page has to say until its browser reports that it has painted.
READY = (
    '{"msgid":"2","msgtype":"PATCH-DOC"}',
    "{}",
    '{"events":[{"kind":"MessageSent","msg_type":"bokeh_event","msg_data":{"type":"event",'
    '"name":"document_ready","values":{"type":"map","entries":[]}}}]}',
)
PULL = ('{"msgid":"1","msgtype":"PULL-DOC-REQ"}', "{}", "{}")
BEAT = 64  # bytes; a shorter piece of a stream only shows that it is there
OPENING = 180.0  # seconds that all followers may take to open the page


class Follower:
    """One of them, who notes when something new came."""

    def __init__(self, url: str, path: str) -> None:
        self.url, self.path = url, path
        self.updates, self.bytes = 0, 0
        self._socket: WebSocketClientConnection | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Load the page, and begin to hear what is new."""
        page = await AsyncHTTPClient().fetch(self.url + self.path, request_timeout=OPENING)
        text = page.body.decode()
        cookie = page.headers.get("Set-Cookie", "").split(";")[0]
        if stream := STREAM.search(text):
            await self._stream(f"/follow?{html.unescape(stream[1])}&at={stream[2]}", cookie)
        else:
            token = TOKEN.search(text)
            assert token is not None, "the page has neither a stream nor a session"
            await self._join(token[1], cookie)

    async def hear(self) -> None:
        """Count what comes, until cancelled."""
        while True:
            if self._socket is not None:
                header, content = await self._message()
                self.updates += header == "PATCH-DOC"
                self.bytes += len(content)
            else:
                size = int(await self._reader.readline(), 16)
                await self._reader.readexactly(size + 2)
                self.updates += size > BEAT
                self.bytes += size

    def close(self) -> None:
        """Go."""
        if self._socket is not None:
            self._socket.close()
        if self._writer is not None:
            self._writer.close()

    async def _stream(self, path: str, cookie: str) -> None:
        parts = urlsplit(self.url)
        self._reader, self._writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAccept-Encoding: gzip\r\n"
        self._writer.write(f"{head}Cookie: {cookie}\r\n\r\n".encode())
        while (await self._reader.readline()).strip():
            pass

    async def _join(self, token: str, cookie: str) -> None:
        address = self.url.replace("http", "ws") + self.path.split("?")[0] + "/ws"
        request = HTTPRequest(address, headers={"Origin": self.url, "Cookie": cookie})
        self._socket = await websocket_connect(
            request, subprotocols=["bokeh", token], max_message_size=2**28
        )
        await self._message()  # the server's ACK comes first
        for part in PULL:
            await self._socket.write_message(part)
        while (await self._message())[0] != "PULL-DOC-REPLY":
            pass
        for part in READY:
            await self._socket.write_message(part)

    async def _message(self) -> tuple[str, str]:
        header = json.loads(await self._frame())
        await self._frame()
        content = await self._frame()
        for _ in range(2 * header.get("num_buffers", 0)):
            await self._frame()
        return header["msgtype"], content

    async def _frame(self) -> Any:
        assert self._socket is not None
        frame = await self._socket.read_message()
        if frame is None:
            raise ConnectionError("the server has closed the connection")
        return frame


async def rows(server: Server, run: str, count: int, times: int, seconds: float) -> list[Row]:
    """Rows on `count` followers of a training run."""
    pairs, told, sizes, latest = [], [], [], 0.0
    used = {"unwatched": [], "watched": []}
    for _ in range(times):
        alone = await _span(server, run, seconds)
        began = time.monotonic()
        async with _following(server.url, f"/redshift?run={run}", count) as followers:
            latest = max(latest, time.monotonic() - began)
            await asyncio.sleep(2)
            for one in followers:
                one.updates = one.bytes = 0
            watched = await _span(server, run, seconds)
            told += [one.updates / seconds for one in followers]
            sizes += [one.bytes / max(1, one.updates) for one in followers]
        await asyncio.sleep(2)
        pairs.append([watched[i] / alone[i] - 1 for i in (0, 1)])
        for name, span in (("unwatched", alone), ("watched", watched)):
            used[name].append(span[2])
    slowed, longer = 100 * np.array(pairs).T
    goal = "2" if count > 40 else "5"
    cores = ", ".join(f"{np.mean(v):.2f} {k}" for k, v in used.items())
    who = f"{count} followers of one run"
    return [
        Row(
            f"{who}: updates a second", goal, f"median {np.median(told):.1f}, least {min(told):.1f}"
        ),
        Row(f"{who}: an update", "", f"{np.median(sizes) / 1000:.1f} kB"),
        Row(f"{who}: all have the page and hear", "", f"{latest:.1f} s after they came at once"),
        Row(f"{who}: a step's processor time", "< +5 %", _signed(slowed)),
        Row(f"{who}: a step's time", "", _signed(longer)),
        Row(f"{who}: cores busy without the worker", "", cores),
    ]


@asynccontextmanager
async def _following(url: str, path: str, count: int) -> AsyncIterator[list[Follower]]:
    followers = [Follower(url, path) for _ in range(count)]
    await asyncio.gather(*(one.open() for one in followers))
    hearing = [asyncio.create_task(one.hear()) for one in followers]
    try:
        yield followers
    finally:
        for task in hearing:
            task.cancel()
        await asyncio.gather(*hearing, return_exceptions=True)
        for one in followers:
            one.close()


async def _span(server: Server, run: str, seconds: float) -> tuple[float, float, float]:
    """Over some seconds: processor time and time of a step, and cores that others keep busy.

    The worker is the process that computes most.
    """
    before, (first, began) = server.cpu(), server.step(run)
    await asyncio.sleep(seconds)
    after, (last, ended) = server.cpu(), server.step(run)
    more = {pid: used - before.get(pid, 0.0) for pid, used in after.items()}
    worker, steps = max(more.values()), last - first
    assert steps, "the run has ended; give it more steps"
    return worker / steps, (ended - began) / steps, (sum(more.values()) - worker) / seconds


def _signed(percent: np.ndarray) -> str:
    each = ", ".join(f"{value:+.1f}" for value in percent)
    return f"mean {percent.mean():+.1f} % (pairs: {each})"
