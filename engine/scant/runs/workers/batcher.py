"""Sending of the events of an attempt in batches, with heartbeats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from scant.events import Event, encode
from scant.runs.memory import resident

BATCH_SECONDS = 0.1
BEAT_SECONDS = 2.0
MEMORY_SECONDS = 0.25  # between checks of the memory, which may fill between heartbeats


class EventBatcher:
    """Sends the events of an attempt to the server, at most ten messages a second.

    Without events, an empty message is a heartbeat. It is also sent if the memory use has grown by
    a tenth of `limit` (bytes; 0 for no limit).
    """

    def __init__(self, send: Callable[[bytes], None], limit: int = 0) -> None:
        self._send = send
        self._limit = limit
        self._events: list[Event] = []
        self._ready = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="outbox", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        with self._ready:
            self._events.append(event)
            self._ready.notify()

    def close(self) -> None:
        """Send the remaining events and end the thread."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            memory_before, until = resident(), time.monotonic() + BEAT_SECONDS
            with self._ready:
                while not self._events and not self._closed and time.monotonic() < until:
                    self._ready.wait(MEMORY_SECONDS)
                    if self._limit and resident() > memory_before + self._limit / 10:
                        break
                events, self._events = self._events, []
                closed = self._closed
            if events or not closed:
                self._send(encode(events))
            if closed:
                return
            time.sleep(BATCH_SECONDS)
