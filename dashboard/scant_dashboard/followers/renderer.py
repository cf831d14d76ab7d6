"""Client of the drawing process, started on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from scant_dashboard.server.apart import start_process

LONGEST = 2**26  # bytes of a message


class Renderer:
    """Runs `scant_dashboard.followers.draw` as a subprocess.

    Args:
        database: The store's address.
        hours: Maximum duration of a run on this server, in hours.
        on_message: Called with each message of the process.
        on_exit: Called when the process has ended by itself.
    """

    def __init__(
        self,
        database: str,
        hours: float,
        on_message: Callable[[dict[str, Any]], None],
        on_exit: Callable[[], None],
    ) -> None:
        self._database, self._hours = database, hours
        self._on_message, self._on_exit = on_message, on_exit
        self._running: asyncio.Task[None] | None = None
        self._requests: asyncio.Queue[str] = asyncio.Queue()

    @property
    def up(self) -> bool:
        """Whether the process runs."""
        return self._running is not None

    def ask(self, **request: Any) -> None:
        """Send a request, starting the process if necessary."""
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
        process = await start_process(
            "scant_dashboard.followers.draw", str(self._hours), limit=LONGEST
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{self._database}\n".encode())  # which may hold a password
        sending = asyncio.get_running_loop().create_task(self._send(process.stdin, self._requests))
        try:
            while line := await process.stdout.readline():
                self._on_message(json.loads(line))
        finally:
            sending.cancel()
            if process.returncode is None:
                process.kill()
        self.close()
        self._on_exit()

    async def _send(self, to: asyncio.StreamWriter, requests: asyncio.Queue[str]) -> None:
        while True:
            to.write((await requests.get()).encode())
            await to.drain()
