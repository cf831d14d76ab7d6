"""Storing of the events of runs in order, and publication to subscribers."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence

from scant.events import Event
from scant.runs.keeping import store_events
from scant.runs.store_writer import StoreWriter
from scant.store import Store

Watcher = Callable[[str, list[Event]], None]

log = logging.getLogger(__name__)


class Journal:
    """Store of this server with its subscribers.

    Attributes:
        store: Store of runs.
        server: Id of this server among the servers on the store.
        writer: Thread that writes to the store in order, with retries.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.server = secrets.token_urlsafe(12)
        self.writer = StoreWriter()
        self._watchers: list[Watcher] = []

    async def say(self, run: str, events: Sequence[Event], data_hash: str = "") -> None:
        """Store events, then publish them. Raises TakenOver."""
        stored = await self.writer.do(store_events, self.store, run, events, data_hash, self.server)
        self.publish(run, stored)

    def publish(self, run: str, events: list[Event]) -> None:
        """Send events to subscribers without storing them."""
        for watcher in list(self._watchers) if events else ():
            try:
                watcher(run, events)
            except Exception:
                log.exception("a watcher failed")

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher(run, events)` on the event loop; returns a function to unsubscribe."""
        self._watchers.append(watcher)

        def unsubscribe() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return unsubscribe

    def trouble(self) -> str:
        """Return a sentence on why nothing can be stored at the moment; "" if all is well."""
        reason = self.writer.trouble
        return (
            f"The server cannot store anything at the moment, because {reason}." if reason else ""
        )
