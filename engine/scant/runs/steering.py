"""Pausing, resuming and stopping of runs, also on behalf of other servers and the operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from scant.events import State
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.store import RunRecord

Act = Callable[[str], Awaitable[None]]


class Steering:
    """Actions on runs; callers hold the lock of the run.

    Actions raise NotFound for unknown runs and have no effect on finished ones.

    Attributes:
        acts: Actions by their name in the store.
    """

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self.acts: dict[str, Act] = {"pause": self.pause, "resume": self.resume, "stop": self.stop}

    async def pause(self, run: str) -> None:
        """Pause a run at a checkpoint, or a queued run at once."""
        live, record = await self._find(run)
        if live is None:
            await self._pass_on(record, "pause")
        elif live.state in (State.STOPPING, State.PAUSING):
            return
        elif self._lifecycle.queue.remove(run):
            await self._lifecycle.finish(live, State.PAUSED, "Paused while it was queued.")
        else:
            await self._lifecycle.wish(live, "pause", State.PAUSING)

    async def resume(self, run: str) -> None:
        """Resume a paused or pausing run."""
        live, record = await self._find(run)
        if live is None and record.state is State.PAUSED:
            await self._lifecycle.resume(record)
        elif live is None:
            await self._pass_on(record, "resume")
        elif live.state is State.PAUSING:
            await self._lifecycle.wish(
                live, None, State.RUNNING if live.started else State.STARTING
            )

    async def stop(self, run: str) -> None:
        """Stop a run with its best parameters so far as the result."""
        live, record = await self._find(run)
        if live is None:
            if record.state is not State.PAUSED:
                await self._pass_on(record, "stop")
                return
            live = ActiveRun.of(record)
        elif not self._lifecycle.queue.remove(run):
            await self._lifecycle.wish(live, "stop", State.STOPPING)
            return
        live.wish = "stop"
        await self._lifecycle.go_on(
            live, "", first=False
        )  # at the end of the queue, since many may be stopped at once

    async def _find(self, run: str) -> tuple[ActiveRun | None, RunRecord]:
        """Return the live run (None if it is not live on this server) and its record."""
        journal = self._lifecycle.journal
        record = await journal.writer.promptly(journal.store.run, run)
        return self._lifecycle.live.get(run), record

    async def _pass_on(self, record: RunRecord, wish: str) -> None:
        """Store a request for the server of the run."""
        journal = self._lifecycle.journal
        if not record.state.final and record.state is not State.PAUSED:
            await journal.writer.do(journal.store.wish, record.id, wish)
