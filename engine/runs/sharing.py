"""Several servers on one database: each cares for its own runs, and those of one that is gone."""

from __future__ import annotations

import asyncio
import logging
import time

from engine.events import State
from engine.runs.attempts import Attempts
from engine.runs.live import Live
from engine.store import RunRecord

ATTEND_SECONDS = 1.0
BEAT_SECONDS = 5.0  # between two signs of life of a server
ADOPT_SECONDS = 5.0  # between two looks for servers that are gone

log = logging.getLogger(__name__)


class Shared(Attempts):
    """Attempts of the runs that are in this server's care, and no other's."""

    async def start(self) -> None:
        """Bring the workers up, and take up the runs that an earlier server left.

        Raises:
            BadInput: Nothing answers at the given scheduler's address.
        """
        await self._off(self.store.sign_in, self.server)
        await super().start()
        await self._adopt()
        self._tasks.append(asyncio.create_task(self._attend()))

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        await super().close(patience)
        await asyncio.to_thread(self.store.sign_out, self.server)

    def cares_for(self, run: str) -> bool:
        """Whether what the run says is published here; else another server may be training it."""
        return run in self._live

    async def _attend(self) -> None:
        beaten = adopted = time.monotonic()
        while not self._closing:
            await asyncio.sleep(ATTEND_SECONDS)
            try:
                now = time.monotonic()
                if now - beaten >= BEAT_SECONDS:
                    beaten = now
                    await self._off(self.store.sign_in, self.server)
                await self._obey()
                if now - adopted >= ADOPT_SECONDS:
                    adopted = now
                    await self._adopt()
            except Exception:
                log.exception("the database could not be attended to")

    async def _obey(self) -> None:
        """Do what other servers' pages wish of our runs; let go of those claimed by another."""
        wishes, lost = await self._off(self.store.attend, self.server, list(self._live))
        for run, wish in wishes.items():
            await getattr(self, f"_{wish}")(run)
        for run in lost:
            if run in self._live:
                await self._part_with(self._live[run])

    async def _part_with(self, live: Live) -> None:
        log.warning("run %s was taken over by another server", live.id)
        self._queue.remove(live.id)
        if live.worker is not None:
            await self._desk.tell(live.worker, live.id, live.attempt, "abandon")
        if live.in_hand:
            self._let_go(live)
        self._live.pop(live.id, None)

    async def _pass_on(self, record: RunRecord, wish: str) -> None:
        """Leave a wish for the server that has the run in its care."""
        if not record.state.final and record.state is not State.PAUSED:
            await self._off(self.store.wish, record.id, wish)

    async def _adopt(self) -> None:
        """Take up the runs that no living server has in its care."""
        left = await self._off(self.store.take_over, self.server)
        await self._desk.abandon([record.id for record in left])
        for record in left:
            await self._take_up(record)

    async def _take_up(self, record: RunRecord) -> None:
        """Go on with a run that another server left behind."""
        live = Live.of(record)
        if record.state is State.PAUSING:
            await self._finish(live, State.PAUSED, "Paused at its last checkpoint.")
        elif record.state is State.STOPPING:
            live.wish = "stop"
            await self._go_on(live, "")
        elif record.state is State.QUEUED and record.attempt == 0:
            await self._requeue(live, "", first=False)
        else:
            await self._go_on(live, "The server was restarted")
