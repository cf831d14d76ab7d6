"""What it costs that many watch one run: a server, a training run, and watchers over websockets.

    python scripts/measure_watchers.py --watchers 40 --cycles 200

Prints updates a second for each watcher, the delay from a worker's step to a watcher, how long a
plain request takes meanwhile, how much training slows, and what open/close cycles leave behind.
The delay is relative to the fastest update seen: worker and watcher agree on no clock but that.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.web import RequestHandler
from tornado.websocket import WebSocketClientConnection, websocket_connect

TOKEN = re.compile(r'"token":\s*"([^"]+)"')
STEP = re.compile(r'\["step",\[[^\]]*?(\d+)(?:\.0)?\]')  # what is new of the curve
# Panel holds back what a page has to say until its browser reports that it has painted.
READY = (
    '{"msgid":"2","msgtype":"PATCH-DOC"}',
    "{}",
    '{"events":[{"kind":"MessageSent","msg_type":"bokeh_event","msg_data":{"type":"event",'
    '"name":"document_ready","values":{"type":"map","entries":[]}}}]}',
)
PULL = ('{"msgid":"1","msgtype":"PULL-DOC-REQ"}', "{}", "{}")
CROWD = 40  # visitors before memory is first looked at
SETTINGS = {"max_steps": 5000, "patience": 0, "restarts": 20}  # outlasts the measurement


def serve(port: int, folder: Path) -> None:
    """Run the app with two more addresses, for this script only."""
    import psutil
    from bokeh.document import Document
    from scant.dashboard.app import build, run
    from scant.dashboard.auth import visitor_cookie
    from scant.dashboard.server.options import ServerOptions
    from scant.dashboard.server.site import Site
    from scant.dashboard.upstream.server_parts import application
    from scant.runs import RunService
    from scant.store import Store

    site = Site(RunService(Store.open()), folder, visitor_cookie.secret(folder))

    class Begin(RequestHandler):
        async def post(self) -> None:
            values = json.loads(self.request.body)
            self.write({"run": await site.service.submit("redshift", values, "demo", "measure")})

    class End(RequestHandler):
        async def post(self) -> None:
            await site.service.stop(self.get_argument("run"), "measure")

    class Steps(RequestHandler):
        def get(self) -> None:
            trace = site.service.store.trace(self.get_argument("run"))
            self.write({"step": trace.step.tolist(), "seconds": trace.seconds.tolist()})

    class Memory(RequestHandler):
        def get(self) -> None:
            gc.collect()
            documents = sum(isinstance(thing, Document) for thing in gc.get_objects())
            this = psutil.Process()
            used = sum(this.cpu_times()[:2])
            self.write({"documents": documents, "bytes": this.memory_info().rss, "cpu": used})

    server = build(site, ServerOptions(port=port))
    handlers = [("begin", Begin), ("end", End), ("steps", Steps), ("memory", Memory)]
    application(server).add_handlers(".*", [(f"/measure/{name}", made) for name, made in handlers])
    run(site, server)


class Client:
    """One browser session without a browser."""

    def __init__(self, base: str, path: str) -> None:
        self.base, self.path = base, path
        self.updates: list[tuple[float, int]] = []  # when, and the step it showed

    async def open(self) -> None:
        """Load the page and its document, as a browser does."""
        page = await AsyncHTTPClient().fetch(self.base + self.path, request_timeout=120)
        found = TOKEN.search(page.body.decode())
        assert found is not None, "the page holds no session token"
        cookie = page.headers.get("Set-Cookie", "").split(";")[0]
        url = self.base.replace("http", "ws") + self.path.split("?")[0].rstrip("/") + "/ws"
        self.socket: WebSocketClientConnection = await websocket_connect(
            HTTPRequest(url, headers={"Origin": self.base, "Cookie": cookie}),
            subprotocols=["bokeh", found.group(1)],
            max_message_size=2**28,
        )
        await self._message()  # the server's ACK comes first
        for part in PULL:
            await self.socket.write_message(part)
        while (await self._message())[0] != "PULL-DOC-REPLY":
            pass
        for part in READY:
            await self.socket.write_message(part)

    async def watch(self) -> None:
        """Note every update, until cancelled."""
        while True:
            kind, content = await self._message()
            shown = STEP.findall(content) if kind == "PATCH-DOC" else []
            if shown:
                self.updates.append((time.time(), int(shown[-1])))

    async def _message(self) -> tuple[str, str]:
        header = json.loads(await self._frame())
        await self._frame()
        content = await self._frame()
        for _ in range(2 * header.get("num_buffers", 0)):
            await self._frame()
        return header["msgtype"], content

    async def _frame(self) -> Any:
        frame = await self.socket.read_message()
        if frame is None:
            raise ConnectionError("the server has closed the connection")
        return frame


async def call(base: str, name: str, **arguments: Any) -> Any:
    """Ask one of the addresses of `serve`."""
    url, client = f"{base}/measure/{name}", AsyncHTTPClient()
    if name == "begin":
        answer = await client.fetch(url, method="POST", body=json.dumps(arguments))
    elif name == "end":
        answer = await client.fetch(f"{url}?run={arguments['run']}", method="POST", body="")
    else:
        query = "".join(f"?{k}={v}" for k, v in arguments.items())
        answer = await client.fetch(url + query)
    return json.loads(answer.body) if answer.body else None


async def pace(base: str, run: str, seconds: float) -> float:
    """Training time of a step, over the next `seconds`."""
    before = await call(base, "steps", run=run)
    await asyncio.sleep(seconds)
    after = await call(base, "steps", run=run)
    steps = after["step"][-1] - before["step"][-1]
    return float((after["seconds"][-1] - before["seconds"][-1]) / steps)


async def requests(base: str, seconds: float) -> list[float]:
    """How long a plain request takes, ten times a second."""
    taken, client, until = [], AsyncHTTPClient(), time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        await client.fetch(f"{base}/healthz", raise_error=False)
        taken.append(time.monotonic() - began)
        await asyncio.sleep(0.1)
    return taken


async def watchers(base: str, count: int, seconds: float) -> None:
    """Measure `count` watchers of one training run."""
    run = (await call(base, "begin", **SETTINGS))["run"]
    while not (await call(base, "steps", run=run))["step"]:
        await asyncio.sleep(0.5)
    await asyncio.sleep(5)
    idle = (await call(base, "memory"))["cpu"]
    alone = await pace(base, run, seconds)
    idle = (await call(base, "memory"))["cpu"] - idle
    clients = [Client(base, f"/redshift?run={run}") for _ in range(count)]
    reading = []
    for client in clients:
        await client.open()
        reading.append(asyncio.create_task(client.watch()))
    await asyncio.sleep(3)  # what the last one to open has left waiting
    for client in clients:
        client.updates.clear()
    used, ours = (await call(base, "memory"))["cpu"], time.process_time()
    taken, watched = await asyncio.gather(requests(base, seconds), pace(base, run, seconds))
    ours, used = time.process_time() - ours, (await call(base, "memory"))["cpu"] - used
    for task in reading:
        task.cancel()
    trace = await call(base, "steps", run=run)
    await call(base, "end", run=run)
    trained = dict(zip(trace["step"], trace["seconds"]))
    rates = [len(client.updates) / seconds for client in clients]
    offsets = np.array([w - trained[s] for c in clients for w, s in c.updates if s in trained])
    delays = 1000 * (offsets - offsets.min())
    print(f"updates a second: median {np.median(rates):.2f}, least {min(rates):.2f}")
    print(
        f"step to watcher: p50 {np.median(delays):.0f} ms, p95 {np.quantile(delays, 0.95):.0f} ms"
    )
    print(f"plain request: p95 {1000 * np.quantile(taken, 0.95):.1f} ms")
    print(
        f"a step: {1000 * alone:.1f} ms unwatched, {1000 * watched:.1f} ms watched "
        f"({100 * (watched / alone - 1):+.1f} %)"
    )
    print(
        f"cores busy: server {idle / seconds:.2f} unwatched, {used / seconds:.2f} watched, "
        f"the watchers themselves {ours / seconds:.2f}"
    )
    for client in clients:
        client.socket.close()


async def cycles(base: str, count: int) -> None:
    """Measure what `count` sessions leave behind.

    A first crowd comes before: sessions live some 15 s after their last connection, so that twenty
    or so are in memory at a time, and the heap does not shrink to where it was before them.
    """
    await _visit(base, CROWD)
    before = await call(base, "memory")
    await _visit(base, count)
    after = await call(base, "memory")
    more = (after["bytes"] - before["bytes"]) / 1e6
    print(f"{count} open/close cycles: {more:+.1f} MB, {after['documents']} live documents")


async def _visit(base: str, count: int) -> None:
    for _ in range(count):
        client = Client(base, "/redshift")
        await client.open()
        client.socket.close()
    await asyncio.sleep(40)  # until all are discarded


def main() -> None:
    """Start a server, measure, stop it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--watchers", type=int, default=40)
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--cycles", type=int, default=200)
    options.add_argument("--port", type=int, default=7290)
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        serve(given.port, given.serve)
        return
    base = f"http://127.0.0.1:{given.port}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--port", str(given.port), "--serve", folder]
        root = str(Path(__file__).parent.parent)
        environment = {**os.environ, "SCANT_DATA_DIR": folder, "PYTHONPATH": root}
        server = subprocess.Popen(command, env=environment)
        try:
            _wait(base)
            AsyncHTTPClient.configure(None, max_clients=100, max_body_size=2**28)
            asyncio.run(_measure(base, given))
        finally:
            server.terminate()
            server.wait(timeout=60)


async def _measure(base: str, given: argparse.Namespace) -> None:
    if given.watchers:
        await watchers(base, given.watchers, given.seconds)
    if given.cycles:
        await cycles(base, given.cycles)


def _wait(base: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{base}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise SystemExit("the server did not come up")


if __name__ == "__main__":
    main()
