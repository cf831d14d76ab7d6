"""The process that draws followed pages, as the server has it: started when it is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from scant_dashboard.server.apart import begun

LONGEST = 2**26  # bytes of a drawing


class Renderer:
    """`scant_dashboard.followers.draw` in a process of its own.

    Args:
        database: The store's address.
        hours: That a run may use on this server.
        heard: Called with each drawing.
        lost: Called when the process has ended by itself.
    """

    def __init__(
        self,
        database: str,
        hours: float,
        heard: Callable[[dict[str, Any]], None],
        lost: Callable[[], None],
    ) -> None:
        self._database, self._hours = database, hours
        self._heard, self._lost = heard, lost
        self._running: asyncio.Task[None] | None = None
        self._requests: asyncio.Queue[str] = asyncio.Queue()

    @property
    def up(self) -> bool:
        """Whether there is a process."""
        return self._running is not None

    def ask(self, **request: Any) -> None:
        """Send a request, for which the process is started if need be."""
        self._requests.put_nowait(json.dumps(request) + "\n")
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """End the process."""
        if self._running is not None:
            self._running.cancel()
            self._running = None
        self._requests = asyncio.Queue()

    async def _run(self) -> None:
        process = await begun("scant_dashboard.followers.draw", str(self._hours), limit=LONGEST)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{self._database}\n".encode())  # which may hold a password
        sending = asyncio.get_running_loop().create_task(self._send(process.stdin, self._requests))
        try:
            while line := await process.stdout.readline():
                self._heard(json.loads(line))
        finally:
            sending.cancel()
            if process.returncode is None:
                process.kill()
        self.close()
        self._lost()

    async def _send(self, to: asyncio.StreamWriter, requests: asyncio.Queue[str]) -> None:
        while True:
            to.write((await requests.get()).encode())
            await to.drain()
