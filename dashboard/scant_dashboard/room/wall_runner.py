"""Trains the runs of a wall through the run service, and deletes each as soon as it has ended.

A wall has at most as many runs in the service as there are workers, each of an owner of its own, so
that the limits of a visitor and of a network do not count them, and the runs of others take turns
with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from scant.errors import BadInput, NotAllowed, NotFound, Unavailable
from scant.events import Event
from scant.store import StoreTrouble
from scant.store.records import TEMPORARY
from scant_dashboard.room.wall import Wall, WallRun
from scant_dashboard.translate import later

FAULT = later("The run could not be started; the server's log has the reason.")

log = logging.getLogger(__name__)


class Trainer(Protocol):
    """The part of `scant.runs.RunService` that trains the runs of a wall."""

    async def submit(
        self, study: str, values: Any, data: str, owner: str, *, address: str, presenter: str
    ) -> str:
        """Queue a run and return its id."""

    async def discard(self, run: str) -> None:
        """End a run without a result, and delete it."""

    def subscribe(self, callback: Callable[[str, list[Event]], None]) -> Callable[[], None]:
        """Call `callback(run_id, events)` for every published batch of any run."""

    def status(self) -> Any:
        """Return the number of `workers`, among others."""


class WallRunner:
    """Trains the runs of a wall until it is taken down; for the server's event loop.

    Args:
        trainer: The run service.
        wall: The wall.
        code: Code of the room.
        present: Whether the page of a phone is open, by its token.
    """

    def __init__(
        self, trainer: Trainer, wall: Wall, code: str, present: Callable[[str], bool]
    ) -> None:
        self._trainer, self._wall, self._code, self._present = trainer, wall, code, present
        self._news = asyncio.Event()
        self._discarding: set[asyncio.Task[None]] = set()

    def start(self) -> asyncio.Task[None]:
        """Start training in the background."""
        self._wall.wake = self._news.set
        self._unsubscribe = self._trainer.subscribe(self._on_events)
        self._task = asyncio.get_running_loop().create_task(self._train())
        return self._task

    async def _train(self) -> None:
        wall = self._wall
        try:
            while not wall.closed:
                self._news.clear()
                free = max(1, self._trainer.status().workers) - len(wall.training())
                if free > 0 and (run := wall.take(self._present)) is not None:
                    await self._submit(run)
                else:
                    await self._news.wait()
        except Exception:
            log.exception("the wall of a room failed")
        finally:
            self._unsubscribe()
            left = [run.run for run in wall.training() if run.run]
            await asyncio.gather(*map(self._discard, left), *self._discarding)

    async def _submit(self, run: WallRun) -> None:
        wall = self._wall
        study = wall.variation.study
        owner = f"{TEMPORARY}{self._code}:{run.number}"
        try:
            settings = wall.variation.settings(run.number)
            run.run = await self._trainer.submit(
                study, settings, "demo", owner, address="", presenter=""
            )
        except (BadInput, NotAllowed, NotFound, Unavailable, StoreTrouble) as error:
            wall.fail(run, str(error))
        except Exception:
            log.exception("a run of a wall could not be started")
            wall.fail(run, FAULT)

    def _on_events(self, run_id: str, events: Sequence[Event]) -> None:
        mine = next((run for run in self._wall.training() if run.run == run_id), None)
        if mine is None:
            return
        self._wall.apply(run_id, events)
        if mine.stage != "training":
            mine.run = ""
            task = asyncio.get_running_loop().create_task(self._discard(run_id))
            self._discarding.add(task)
            task.add_done_callback(self._discarding.discard)

    async def _discard(self, run_id: str) -> None:
        try:
            await self._trainer.discard(run_id)
        except Exception as error:
            log.warning("run %s of a wall could not be deleted: %s", run_id, error)
