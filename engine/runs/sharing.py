"""Several servers on one database: each cares for its own runs, and those of one that is gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from engine.errors import NotFound, Unavailable
from engine.events import State
from engine.runs.attempts import Attempts
from engine.runs.live import Live
from engine.store import RunRecord, StoreTrouble, TakenOver
from engine.store.claim_shelf import DEAD_SECONDS
from engine.store.records import new_id

ATTEND_SECONDS = 1.0
BEAT_SECONDS = 5.0  # between two signs of life of a server
ADOPT_SECONDS = 5.0  # between two looks for servers that are gone
AWAY_SECONDS = DEAD_SECONDS / 2  # a database that was, and all servers seem to be gone

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
        await self._adopt(self._off)
        self._tasks.append(asyncio.create_task(self._attend()))

    async def close(self, patience: float = 3.0) -> None:
        """Checkpoint what runs, so that it goes on at the next start, and let the workers go."""
        await super().close(patience)
        try:
            await asyncio.to_thread(self.store.sign_out, self.server)
        except StoreTrouble as error:
            log.warning("that the server closes is not stored: %s", error)

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
                if time.monotonic() - now > AWAY_SECONDS:
                    adopted = time.monotonic()  # others have yet to say that they live
                elif now - adopted >= ADOPT_SECONDS:
                    adopted = now
                    await self._adopt(self._promptly)
            except StoreTrouble as error:
                log.info("no runs of other servers are taken up: %s", error)
            except Exception:
                log.exception("the database could not be attended to")

    async def _obey(self) -> None:
        """Do what other servers' pages wish of our runs; let go of those claimed by another."""
        wishes, lost = await self._off(self.store.attend, self.server, list(self._live))
        for run, wish in wishes.items():
            try:
                async with self._turn(run):
                    await getattr(self, f"_{wish}")(run)
            except StoreTrouble:  # nothing was done: it is wished again
                await self._off(self.store.wish, run, wish)
            except (NotFound, TakenOver, Unavailable) as error:
                log.info("the wish to %s run %s: %s", wish, run, error)
        for run in lost:
            if run in self._live:
                await self._part_with(self._live[run])

    async def _pass_on(self, record: RunRecord, wish: str) -> None:
        """Leave a wish for the server that has the run in its care."""
        if not record.state.final and record.state is not State.PAUSED:
            await self._off(self.store.wish, record.id, wish)

    async def _adopt(self, ask: Callable[..., Awaitable[list[RunRecord]]]) -> None:
        """Take up the runs that no living server has in its care; `ask`: calls the store."""
        left = await ask(lambda: self.store.take_over(self.server, self._held()))
        await self._desk.abandon([record.id for record in left])
        for record in left:
            async with self._turn(record.id):
                if record.id in self._live:
                    continue  # it was on its way into our care when the database was asked
                try:
                    await self._take_up(record)
                except TakenOver:
                    log.info("run %s was taken up by another server", record.id)

    def _held(self) -> set[str]:
        """The runs that are in this server's care, as of now; called in the store's thread."""
        return {*list(self._live), *list(self._coming)}

    async def _enter(self, put: Callable[..., str], *about: Any) -> str:
        """Put a new run down for a visitor who waits; returns its id.

        Args:
            put: Puts it down, in the store's thread; takes `about` and the keyword `run_id`.
            *about: Study, settings and so on.

        Raises:
            StoreTrouble: It could not be; then there is no such run, nor will there be.
        """
        run = new_id()
        self._coming.add(run)
        try:
            await self._promptly(put, *about, run_id=run)
        except StoreTrouble:
            self._aside(self._undo(run))
            raise
        except BaseException:
            self._coming.discard(run)  # it was refused
            raise
        self._coming.discard(run)  # in the caller's hands, who does not wait before it is live
        return run

    async def _undo(self, run: str) -> None:
        """Take back a run of which it is not known whether it was put down."""
        await self._off(self.store.delete_run, run)
        self._coming.discard(run)

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
