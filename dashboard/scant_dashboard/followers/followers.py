"""All who follow runs on a server, and the pages that they follow."""

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
from scant_dashboard.followers.wanted import Wanted
from scant_dashboard.limits.sessions import LiveSessions
from scant_dashboard.server.apart import database

DRAWN = 16  # pages that are drawn at once; who wants another one gets a live page
KEPT = 24  # pages of runs that are over, kept for who comes next
PATIENCE = 20.0  # seconds that a visitor waits for a page to be drawn
GRACE = 15.0  # seconds that a page is drawn for nobody: who has it may be about to follow
IDLE = 600.0  # seconds after which a process that draws nothing ends
CROWD = 40  # followers; above, figures change less often
PACES = 0.2, 0.5  # seconds between two drawings of a page, for few and for a crowd
PER_VISITOR, PER_ADDRESS, OVERALL = 24, 600, 2_000  # streams
SWEEP = 5.0  # seconds between looks at who has gone

log = logging.getLogger(__name__)


class Followers:
    """The pages that are followed, by what is wanted.

    Args:
        service: The server's `scant.runs.RunService`.
        warm: Whether to start the drawing process as soon as a run trains, so that the first who
            follow it do not wait for that.
    """

    def __init__(self, service: Any, warm: bool = False) -> None:
        self.limits = LiveSessions(PER_VISITOR, PER_ADDRESS, OVERALL)
        self._service, self._warm = service, warm
        self._channels: dict[Wanted, Channel] = {}
        self._numbers: dict[int, Channel] = {}  # as the drawing process calls them
        self._next = count()
        self.renderer = Renderer(
            database(service.store), service.limits.hours, self._heard, self._lost
        )
        self._pace = PACES[0]
        self._busy = 0.0  # when there was last something to draw
        self._sweeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look after who has gone, on the running event loop."""
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
        if self._warm:
            self._service.subscribe(lambda *_: self._ready())

    def close(self) -> None:
        """Draw no more."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.renderer.close()

    def record(self, wanted: Wanted) -> RunRecord | None:
        """The run that is wanted; None where it is not there, or on another page.

        Or where it is a session of labeling: who has its link has come to take part.
        """
        try:
            record: RunRecord = self._service.store.run(wanted.run)
        except (NotFound, StoreTrouble):
            return None
        # "auto" is settled once the run has begun, in what it says of itself.
        expert = record.metadata.get("expert") or record.settings.get("expert")
        return None if expert == "you" or record.study != wanted.study else record

    async def channel(self, wanted: Wanted, record: RunRecord) -> Channel | None:
        """The page that is wanted of a run, drawn by now.

        None where too many pages are drawn already, and where drawing fails or takes too long.
        """
        found = self._channels.get(wanted)
        if found is not None and found.over and found.stamp != [record.state, record.heartbeat]:
            found = None  # the run went on, or was put down anew
        if found is None:
            if sum(not one.over for one in self._channels.values()) >= DRAWN:
                return None
            found = self._begin(wanted)
        found.used = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(found.ready), PATIENCE)
        return found if found.ready.done() and found.ready.result() else None

    @contextmanager
    def follows(self, channel: Channel, stream: Any) -> Iterator[None]:
        """A stream of a page, as long as it is open."""
        channel.streams.add(stream)
        self._keep_pace()
        try:
            yield
        finally:
            channel.streams.discard(stream)
            channel.used = time.monotonic()
            self._keep_pace()

    def _begin(self, wanted: Wanted) -> Channel:
        number = next(self._next)
        made = self._channels[wanted] = self._numbers[number] = Channel(wanted)
        self._ready()
        self.renderer.ask(follow=number, study=wanted.study, query=wanted.query)
        return made

    def _ready(self) -> None:
        """Have a process that draws."""
        self._busy = time.monotonic()
        if not self.renderer.up:
            self.renderer.ask(pace=self._pace)

    def _keep_pace(self) -> None:
        pace = PACES[sum(len(one.streams) for one in self._channels.values()) > CROWD]
        if pace != self._pace:
            self._pace = pace
            self.renderer.ask(pace=pace)

    def _heard(self, message: dict[str, Any]) -> None:
        channel = self._numbers.get(message["of"])
        if channel is None:  # dropped a moment ago
            return
        channel.take(message)
        if channel.over:
            del self._numbers[message["of"]]
        if message.get("gone"):
            self._forget(channel)

    def _lost(self) -> None:
        """The process that draws has died: who follows asks again, and so begins another."""
        log.error("the process that draws followed runs has ended by itself")
        for channel in self._numbers.values():
            channel.end()
            self._forget(channel)
        self._numbers.clear()

    def _forget(self, channel: Channel) -> None:
        if self._channels.get(channel.wanted) is channel:
            del self._channels[channel.wanted]

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
            for channel in over[:-KEPT]:
                self._forget(channel)
            if self.renderer.up and now - self._busy > IDLE:
                self.renderer.close()


def _used(channel: Channel) -> float:
    return channel.used
