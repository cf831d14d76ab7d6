"""The runs of a wall in the run service: how many at once, and that none is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from scant.errors import BadInput
from scant.events import Event, Finished, Metric, Report, Started, State
from scant_dashboard.room.wall import Wall
from scant_dashboard.room.wall_presets import Variation
from scant_dashboard.room.wall_runner import FAULT, WallRunner

DONE = Finished(State.FINISHED, "", Report((Metric("this run", "F1", 0.5),)))


class Trainer:
    """A run service that trains when told."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = workers
        self.submitted: list[tuple[str, dict[str, Any], str]] = []
        self.discarded: list[str] = []
        self.watchers: list[Callable[[str, list[Event]], None]] = []
        self.error: Exception | None = None

    async def submit(
        self, study: str, values: Any, data: str, owner: str, *, address: str, presenter: str
    ) -> str:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.submitted.append((study, values, owner))
        return f"run {len(self.submitted)}"

    async def discard(self, run: str) -> None:
        self.discarded.append(run)

    def subscribe(self, callback: Callable[[str, list[Event]], None]) -> Callable[[], None]:
        self.watchers.append(callback)
        return lambda: self.watchers.remove(callback)

    def status(self) -> Any:
        return SimpleNamespace(workers=self.workers)

    def say(self, run: str, *events: Event) -> None:
        for watcher in list(self.watchers):
            watcher(run, list(events))


async def turns() -> None:
    """Let everything happen that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def a_wall(*tokens: str) -> Wall:
    made = Wall(Variation("mitosis"))
    for token in tokens:
        made.join(token)
    return made


def test_as_many_runs_at_once_as_workers_and_each_is_deleted_at_its_end() -> None:
    async def walk() -> None:
        trainer, wall = Trainer(), a_wall(*"abcd")
        task = WallRunner(trainer, wall, "CODE", lambda token: True).start()
        await turns()
        assert [owner for *_, owner in trainer.submitted] == ["room:CODE:1", "room:CODE:2"]
        assert [values["seed"] for _, values, _ in trainer.submitted] == [0, 1]
        trainer.say("another visitor's", DONE)
        trainer.say("run 2", Started("cpu", 10), DONE)
        await turns()
        assert trainer.discarded == ["run 2"]
        assert [run.stage for run in wall.runs] == ["training", "done", "training", "waiting"]
        wall.join("e")
        await turns()
        assert len(trainer.submitted) == 3  # no more at once
        wall.close()
        await asyncio.wait_for(task, 5)
        assert sorted(trainer.discarded) == ["run 1", "run 2", "run 3"]
        assert trainer.watchers == []

    asyncio.run(walk())


def test_a_wall_waits_for_phones_and_a_refused_run_says_why() -> None:
    async def walk() -> None:
        trainer, wall, here = Trainer(1), a_wall("a", "b"), {"b"}
        task = WallRunner(trainer, wall, "CODE", here.__contains__).start()
        await turns()
        assert [run.stage for run in wall.runs] == ["waiting", "training"]
        trainer.say("run 1", DONE)
        await turns()
        assert wall.runs[0].stage == "waiting"
        trainer.error = BadInput("There is no room on the disk.")
        here.add("a")
        wall.wake()
        await turns()
        assert (wall.runs[0].stage, wall.runs[0].reason) == ("failed", str(trainer.error))
        trainer.error = RuntimeError("secret")
        wall.join("c")
        here.add("c")
        wall.wake()
        await turns()
        assert wall.runs[2].reason == FAULT
        wall.close()
        await asyncio.wait_for(task, 5)
        assert trainer.discarded == ["run 1"]

    asyncio.run(walk())


def test_a_wall_that_closes_while_a_run_is_submitted_leaves_nothing() -> None:
    async def walk() -> None:
        trainer, wall = Trainer(), a_wall("a")
        task = WallRunner(trainer, wall, "CODE", lambda token: True).start()
        await asyncio.sleep(0)  # the runner is within `submit`
        wall.close()
        await asyncio.wait_for(task, 5)
        assert trainer.discarded == ["run 1"]

    asyncio.run(walk())
