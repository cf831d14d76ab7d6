"""What runs say: put down in the store, in order, and then told to whoever watches."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence

from scant.events import Event
from scant.runs.keeping import put_down
from scant.runs.store_writer import StoreWriter
from scant.store import Store

Watcher = Callable[[str, list[Event]], None]

log = logging.getLogger(__name__)


class Journal:
    """The store as this server writes to it, and those who watch what it writes.

    Attributes:
        store: Where runs are put down.
        server: This server's id, as other servers on the same store know it.
        writer: The one thread in which the store is written, in order and until it has taken
            what there is.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.server = secrets.token_urlsafe(12)
        self.writer = StoreWriter()
        self._watchers: list[Watcher] = []

    async def say(self, run: str, events: Sequence[Event], data_hash: str = "") -> None:
        """Put events down, then tell the watchers. Raises TakenOver."""
        message = await self.writer.do(put_down, self.store, run, events, data_hash, self.server)
        self.publish(run, message)

    def publish(self, run: str, events: list[Event]) -> None:
        """Tell the watchers what is in the store already, or need not be."""
        for watcher in list(self._watchers) if events else ():
            try:
                watcher(run, events)
            except Exception:
                log.exception("a watcher failed")

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Have `watcher(run, events)` called on the loop; returns what ends this."""
        self._watchers.append(watcher)

        def unsubscribe() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return unsubscribe

    def trouble(self) -> str:
        """Why nothing can be stored at the moment, in a sentence; "" while all is well."""
        why = self.writer.trouble
        return f"The server cannot store anything at the moment, for {why}." if why else ""
