"""What an attempt says, sent to the server in batches with signs of life between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from scant.events import Event, encode
from scant.runs.memory import resident

BATCH_SECONDS = 0.1
BEAT_SECONDS = 2.0
LOOK_SECONDS = 0.25  # between looks at memory, which may fill between two beats


class EventBatcher:
    """Sends an attempt's events to the server: at most ten messages a second, the first at once.

    When there is nothing to say an empty message tells that the worker lives, or that it holds a
    tenth more of its memory (`limit` bytes; 0 for no limit) than it last said.
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
        """Send what is left."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            held, until = resident(), time.monotonic() + BEAT_SECONDS
            with self._ready:
                while not self._events and not self._closed and time.monotonic() < until:
                    self._ready.wait(LOOK_SECONDS)
                    if self._limit and resident() > held + self._limit / 10:
                        break
                events, self._events = self._events, []
                closed = self._closed
            if events or not closed:
                self._send(encode(events))
            if closed:
                return
            time.sleep(BATCH_SECONDS)
