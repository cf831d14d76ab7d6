"""A line between browser and server that a test can cut and mend."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any


class Line:
    """Passes bytes from 127.0.0.1:`port` to a server on `to`, while it is whole."""

    def __init__(self, port: int, to: int) -> None:
        self.port, self.to = port, to
        self._ends: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.mend()

    def mend(self) -> None:
        """Let connections through (again)."""

        async def listen() -> None:
            self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)

        self._do(listen())

    def cut(self) -> None:
        """Break every connection and refuse new ones."""

        async def break_off() -> None:
            assert self._server is not None
            self._server.close()
            for end in list(self._ends):
                end.transport.abort()

        self._do(break_off())

    def close(self) -> None:
        """Cut for good."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _join(self, near_in: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        far_in, far = await asyncio.open_connection("127.0.0.1", self.to)
        self._ends |= {near, far}
        try:
            await asyncio.gather(_pass(near_in, far), _pass(far_in, near))
        finally:
            self._ends -= {near, far}


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while block := await source.read(65536):
            sink.write(block)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()
