"""Assignment of runs to servers on one database, with takeover from servers that are gone."""

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
from scant.store.records import TEMPORARY, new_id

POLL_SECONDS = 1.0  # between two polls of the database
BEAT_SECONDS = 5.0  # between two heartbeats of a server
ADOPT_SECONDS = 5.0  # between two checks for servers that are gone
AWAY_SECONDS = DEAD_SECONDS / 2  # outage of the database after which all servers seem gone

log = logging.getLogger(__name__)


class LeaseManager:
    """Keeps track of the runs that belong to this server.

    Args:
        lifecycle: Runs of this server.
        acts: Actions that other servers may request for a run, by name.

    Attributes:
        coming: Ids of new runs that are being stored.
    """

    def __init__(self, lifecycle: Lifecycle, acts: Mapping[str, Act]) -> None:
        self.coming: set[str] = set()
        self._lifecycle = lifecycle
        self._store, self._server = lifecycle.journal.store, lifecycle.journal.server
        self._writer, self._background = lifecycle.journal.writer, lifecycle.background
        self._acts = acts

    async def sign_in(self) -> None:
        """Store a heartbeat of this server."""
        await self._writer.do(self._store.sign_in, self._server)

    async def start(self) -> None:
        """Acquire runs of servers that are gone, now and periodically."""
        await self.adopt(self._writer.do)
        self._background.spawn(self._poll())

    async def sign_out(self) -> None:
        """Release the remaining runs to other servers, after the dispatcher has closed."""
        try:
            await asyncio.to_thread(self._store.sign_out, self._server)
        except StoreTrouble as error:
            log.warning("the shutdown of the server was not stored: %s", error)

    async def _poll(self) -> None:
        last_beat = last_adoption = time.monotonic()
        while not self._background.closing:
            await asyncio.sleep(POLL_SECONDS)
            try:
                now = time.monotonic()
                if now - last_beat >= BEAT_SECONDS:
                    last_beat = now
                    await self.sign_in()
                await self._apply_requests()
                if time.monotonic() - now > AWAY_SECONDS:
                    last_adoption = time.monotonic()  # other servers still have to send heartbeats
                elif now - last_adoption >= ADOPT_SECONDS:
                    last_adoption = now
                    await self.adopt(self._writer.promptly)
            except StoreTrouble as error:
                log.info("runs of other servers were not acquired: %s", error)
            except Exception:
                log.exception("the database could not be polled")

    async def _apply_requests(self) -> None:
        """Apply requests from other servers, and release runs that another server has claimed."""
        wishes, claimed = await self._writer.do(
            self._store.read_requests, self._server, list(self._lifecycle.live)
        )
        for run, wish in wishes.items():
            try:
                async with self._lifecycle.turns.of(run):
                    await self._acts[wish](run)
            except StoreTrouble:  # nothing was done: request it again
                await self._writer.do(self._store.wish, run, wish)
            except (NotFound, TakenOver, Unavailable) as error:
                log.info("the wish to %s run %s: %s", wish, run, error)
        for run in claimed:
            if run in self._lifecycle.live:
                await self._lifecycle.release(self._lifecycle.live[run])

    async def adopt(self, ask: Callable[..., Awaitable[list[RunRecord]]]) -> None:
        """Acquire the runs of no living server; `ask` calls the store."""
        orphans = await ask(lambda: self._store.acquire_orphans(self._server, self._held()))
        await self._lifecycle.client.abandon([record.id for record in orphans])
        for record in orphans:
            async with self._lifecycle.turns.of(record.id):
                if record.id in self._lifecycle.live:
                    continue  # it was being acquired during the query
                try:
                    await self._take_up(record)
                except TakenOver:
                    log.info("run %s was acquired by another server", record.id)

    def _held(self) -> set[str]:
        """Return the ids of this server's runs; called in the thread of the store."""
        return {*list(self._lifecycle.live), *list(self.coming)}

    async def enter(self, put: Callable[..., str], *about: Any) -> str:
        """Store a new run for a waiting visitor and return its id.

        Args:
            put: Function that stores it, called in the thread of the store with `about` and the
                keyword `run_id`.
            *about: Arguments such as study and settings.

        Raises:
            StoreTrouble: The run could not be stored and will not exist.
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
        self.coming.discard(run)  # the caller makes it live without awaiting anything before
        return run

    async def _undo(self, run: str) -> None:
        """Delete a run that may have been stored."""
        await self._writer.do(self._store.delete_run, run)
        self.coming.discard(run)

    async def _take_up(self, record: RunRecord) -> None:
        """Continue a run of another server."""
        live = ActiveRun.of(record)
        if record.owner.startswith(TEMPORARY):  # its room ended with its server
            await self._writer.do(self._store.delete_run, record.id)
        elif record.state is State.PAUSING:
            await self._lifecycle.finish(live, State.PAUSED, "Paused at its last checkpoint.")
        elif record.state is State.STOPPING:
            live.wish = "stop"
            await self._lifecycle.go_on(live, "")
        elif record.state is State.QUEUED and record.attempt == 0:
            await self._lifecycle.requeue(live)
        else:
            await self._lifecycle.go_on(live, "The server was restarted")
