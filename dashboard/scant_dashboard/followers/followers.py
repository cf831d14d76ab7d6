"""The pages followed on a server, and their streams."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from scant.errors import NotFound
from scant.store import RunRecord
from scant.store.trouble import StoreTrouble
from scant_dashboard.followers.channel import Channel
from scant_dashboard.followers.renderer import Renderer
from scant_dashboard.followers.wanted import PageKey
from scant_dashboard.limits.sessions import LiveSessions
from scant_dashboard.server.apart import database

MAX_PAGES = 16  # pages rendered at the same time; further ones get live sessions
MAX_FINISHED_PAGES = 24  # pages of finished runs that stay in memory
PATIENCE = 20.0  # seconds that a visitor waits for the first rendering
GRACE = 15.0  # seconds that a page without streams stays: its visitor may be about to connect
IDLE = 600.0  # seconds without pages after which the drawing process ends
CROWD = 40  # number of followers above which pages change less often
PACES = 0.2, 0.5  # seconds between two renderings, up to and above `CROWD` followers
PER_VISITOR, PER_ADDRESS, OVERALL = 24, 600, 2_000  # streams
SWEEP = 5.0  # seconds between removals of unused pages

log = logging.getLogger(__name__)


class Followers:
    """Registry of followed pages.

    Args:
        service: The server's `scant.runs.RunService`.
        warm: Whether to start the drawing process as soon as a run trains, so that its first
            followers need not wait for the start.
    """

    def __init__(self, service: Any, warm: bool = False) -> None:
        self.limits = LiveSessions(PER_VISITOR, PER_ADDRESS, OVERALL)
        self._service, self._warm = service, warm
        self._channels: dict[PageKey, Channel] = {}
        self._numbers: dict[int, Channel] = {}  # by the number used in messages to the renderer
        self._next = count()
        self.renderer = Renderer(
            database(service.store), service.limits.hours, self._on_message, self._on_exit
        )
        self._pace = PACES[0]
        self._busy = 0.0  # monotonic time at which a page was last needed
        self._sweeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start removing unused pages, on the running event loop."""
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
        if self._warm:
            self._service.subscribe(lambda *_: self._ready())

    def close(self) -> None:
        """Stop rendering."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.renderer.close()

    def record(self, key: PageKey) -> RunRecord | None:
        """Return the run of a page that can be followed, or None.

        None if the run does not exist, belongs to another study, or is a labeling session, which
        visitors join to take part.
        """
        try:
            record: RunRecord = self._service.store.run(key.run)
        except (NotFound, StoreTrouble):
            return None
        # "auto" in the settings is resolved in the metadata once the run has started.
        expert = record.metadata.get("expert") or record.settings.get("expert")
        return None if expert == "you" or record.study != key.study else record

    async def channel(self, key: PageKey, record: RunRecord) -> Channel | None:
        """Return the channel of a page, waiting for its first rendering.

        None if the limit of pages is reached, or the rendering fails or takes too long.
        """
        channel = self._channels.get(key)
        if channel and channel.over and channel.stamp != [record.state, record.heartbeat]:
            channel = None  # the run continued or restarted
        if channel is None:
            if sum(not one.over for one in self._channels.values()) >= MAX_PAGES:
                return None
            channel = self._begin(key)
        channel.used = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(channel.ready), PATIENCE)
        return channel if channel.ready.done() and channel.ready.result() else None

    @contextmanager
    def follows(self, channel: Channel, stream: Any) -> Iterator[None]:
        """Register a stream of a page for the duration of the context."""
        channel.streams.add(stream)
        self._update_pace()
        try:
            yield
        finally:
            channel.streams.discard(stream)
            channel.used = time.monotonic()
            self._update_pace()

    def _begin(self, key: PageKey) -> Channel:
        number = next(self._next)
        made = self._channels[key] = self._numbers[number] = Channel(key)
        self._ready()
        self.renderer.ask(follow=number, study=key.study, query=key.query)
        return made

    def _ready(self) -> None:
        """Start the drawing process if it is not running."""
        self._busy = time.monotonic()
        if not self.renderer.up:
            self.renderer.ask(pace=self._pace)

    def _update_pace(self) -> None:
        pace = PACES[sum(len(one.streams) for one in self._channels.values()) > CROWD]
        if pace != self._pace:
            self._pace = pace
            self.renderer.ask(pace=pace)

    def _on_message(self, message: dict[str, Any]) -> None:
        channel = self._numbers.get(message["of"])
        if channel is None:  # dropped a moment ago
            return
        channel.take(message)
        if channel.over:
            del self._numbers[message["of"]]
        if message.get("gone"):
            self._forget(channel)

    def _on_exit(self) -> None:
        """End all pages after the drawing process died; reconnecting followers start a new one."""
        log.error("the process that draws followed runs has ended by itself")
        for channel in self._numbers.values():
            channel.end()
            self._forget(channel)
        self._numbers.clear()

    def _forget(self, channel: Channel) -> None:
        if self._channels.get(channel.key) is channel:
            del self._channels[channel.key]

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            now = time.monotonic()
            for number, channel in list(self._numbers.items()):
                self._busy = now
                if not channel.streams and now - channel.used > GRACE and channel.ready.done():
                    self.renderer.ask(drop=number)
                    del self._numbers[number]
                    self._forget(channel)
            over = sorted((one for one in self._channels.values() if one.over), key=_used)
            for channel in over[:-MAX_FINISHED_PAGES]:
                self._forget(channel)
            if self.renderer.up and now - self._busy > IDLE:
                self.renderer.close()


def _used(channel: Channel) -> float:
    return channel.used
