"""Several servers on one database: each cares for its own runs, and those of one that is gone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from scant.errors import NotFound, Unavailable
from scant.events import State
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.runs.steering import Act
from scant.store import RunRecord, StoreTrouble, TakenOver
from scant.store.claims import DEAD_SECONDS
from scant.store.records import new_id

ATTEND_SECONDS = 1.0
BEAT_SECONDS = 5.0  # between two signs of life of a server
ADOPT_SECONDS = 5.0  # between two looks for servers that are gone
AWAY_SECONDS = DEAD_SECONDS / 2  # a database that was, and all servers seem to be gone

log = logging.getLogger(__name__)


class LeaseManager:
    """Sees that this server trains the runs that are in its care, and no other's.

    Args:
        care: The runs of this server.
        acts: What other servers' pages may wish of a run, by the word that stands for it.

    Attributes:
        coming: Runs that are being put down for the first time.
    """

    def __init__(self, care: Lifecycle, acts: Mapping[str, Act]) -> None:
        self.coming: set[str] = set()
        self._care = care
        self._store, self._server = care.journal.store, care.journal.server
        self._writer, self._background = care.journal.writer, care.background
        self._acts = acts

    async def sign_in(self) -> None:
        """Say that this server lives."""
        await self._writer.do(self._store.sign_in, self._server)

    async def start(self) -> None:
        """Take up the runs that an earlier server left, and from now on those of any other."""
        await self.adopt(self._writer.do)
        self._background.spawn(self._attend())

    async def sign_out(self) -> None:
        """Let others take up what is left here: the server closes, and its dispatcher has."""
        try:
            await asyncio.to_thread(self._store.sign_out, self._server)
        except StoreTrouble as error:
            log.warning("the shutdown of the server was not stored: %s", error)

    async def _attend(self) -> None:
        beaten = adopted = time.monotonic()
        while not self._background.closing:
            await asyncio.sleep(ATTEND_SECONDS)
            try:
                now = time.monotonic()
                if now - beaten >= BEAT_SECONDS:
                    beaten = now
                    await self.sign_in()
                await self._apply_requests()
                if time.monotonic() - now > AWAY_SECONDS:
                    adopted = time.monotonic()  # others have yet to say that they live
                elif now - adopted >= ADOPT_SECONDS:
                    adopted = now
                    await self.adopt(self._writer.promptly)
            except StoreTrouble as error:
                log.info("runs of other servers were not acquired: %s", error)
            except Exception:
                log.exception("the database could not be polled")

    async def _apply_requests(self) -> None:
        """Do what other servers' pages wish of our runs; let go of those claimed by another."""
        wishes, lost = await self._writer.do(
            self._store.attend, self._server, list(self._care.live)
        )
        for run, wish in wishes.items():
            try:
                async with self._care.turns.of(run):
                    await self._acts[wish](run)
            except StoreTrouble:  # nothing was done: it is wished again
                await self._writer.do(self._store.wish, run, wish)
            except (NotFound, TakenOver, Unavailable) as error:
                log.info("the wish to %s run %s: %s", wish, run, error)
        for run in lost:
            if run in self._care.live:
                await self._care.release(self._care.live[run])

    async def adopt(self, ask: Callable[..., Awaitable[list[RunRecord]]]) -> None:
        """Take up the runs that no living server has in its care; `ask`: calls the store."""
        left = await ask(lambda: self._store.acquire_orphans(self._server, self._held()))
        await self._care.client.abandon([record.id for record in left])
        for record in left:
            async with self._care.turns.of(record.id):
                if record.id in self._care.live:
                    continue  # it was on its way into our care when the database was asked
                try:
                    await self._take_up(record)
                except TakenOver:
                    log.info("run %s was acquired by another server", record.id)

    def _held(self) -> set[str]:
        """The runs that are in this server's care, as of now; called in the store's thread."""
        return {*list(self._care.live), *list(self.coming)}

    async def enter(self, put: Callable[..., str], *about: Any) -> str:
        """Put a new run down for a visitor who waits; returns its id.

        Args:
            put: Puts it down, in the store's thread; takes `about` and the keyword `run_id`.
            *about: Study, settings and so on.

        Raises:
            StoreTrouble: It could not be; then there is no such run, nor will there be.
        """
        run = new_id()
        self.coming.add(run)
        try:
            await self._writer.promptly(put, *about, run_id=run)
        except StoreTrouble:
            self._background.spawn(self._undo(run))
            raise
        except BaseException:
            self.coming.discard(run)  # it was refused
            raise
        self.coming.discard(run)  # in the caller's hands, who does not wait before it is live
        return run

    async def _undo(self, run: str) -> None:
        """Take back a run that may or may not have been stored."""
        await self._writer.do(self._store.delete_run, run)
        self.coming.discard(run)

    async def _take_up(self, record: RunRecord) -> None:
        """Go on with a run that another server left behind."""
        live = ActiveRun.of(record)
        if record.state is State.PAUSING:
            await self._care.finish(live, State.PAUSED, "Paused at its last checkpoint.")
        elif record.state is State.STOPPING:
            live.wish = "stop"
            await self._care.go_on(live, "")
        elif record.state is State.QUEUED and record.attempt == 0:
            await self._care.requeue(live)
        else:
            await self._care.go_on(live, "The server was restarted")
