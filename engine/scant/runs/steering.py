"""Pause, resume and stop, for whoever may: from here, from another server or by an operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from scant.events import State
from scant.runs.dispatch.active_run import ActiveRun
from scant.runs.dispatch.lifecycle import Lifecycle
from scant.store import RunRecord

Act = Callable[[str], Awaitable[None]]


class Steering:
    """What may be wished of a run. Callers hold its turn.

    Every act raises NotFound where there is no such run, and leaves one that is over as it is.

    Attributes:
        acts: The acts by the words that stand for them in the store.
    """

    def __init__(self, care: Lifecycle) -> None:
        self._care = care
        self.acts: dict[str, Act] = {"pause": self.pause, "resume": self.resume, "stop": self.stop}

    async def pause(self, run: str) -> None:
        """Ask a run for a checkpoint and a rest; a queued run just rests."""
        live, record = await self._find(run)
        if live is None:
            await self._pass_on(record, "pause")
        elif live.state in (State.STOPPING, State.PAUSING):
            return
        elif self._care.queue.remove(run):
            await self._care.finish(live, State.PAUSED, "Paused while it was queued.")
        else:
            await self._care.wish(live, "pause", State.PAUSING)

    async def resume(self, run: str) -> None:
        """Let a run go on that rests, or that was asked to."""
        live, record = await self._find(run)
        if live is None and record.state is State.PAUSED:
            await self._care.resume(record)
        elif live is None:
            await self._pass_on(record, "resume")
        elif live.state is State.PAUSING:
            await self._care.wish(live, None, State.RUNNING if live.started else State.STARTING)

    async def stop(self, run: str) -> None:
        """End a run; its best parameters so far become its result."""
        live, record = await self._find(run)
        if live is None:
            if record.state is not State.PAUSED:
                await self._pass_on(record, "stop")
                return
            live = ActiveRun.of(record)
        elif not self._care.queue.remove(run):
            await self._care.wish(live, "stop", State.STOPPING)
            return
        live.wish = "stop"
        await self._care.go_on(live, "", first=False)  # in its turn: many may be stopped at once

    async def _find(self, run: str) -> tuple[ActiveRun | None, RunRecord]:
        """A run and its row; None where it rests, is over or is in another server's care."""
        journal = self._care.journal
        record = await journal.writer.promptly(journal.store.run, run)
        return self._care.live.get(run), record

    async def _pass_on(self, record: RunRecord, wish: str) -> None:
        """Leave a wish for the server that has the run in its care."""
        journal = self._care.journal
        if not record.state.final and record.state is not State.PAUSED:
            await journal.writer.do(journal.store.wish, record.id, wish)
