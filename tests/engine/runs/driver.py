"""A run service on a loop of its own thread, for tests that act on it as a page would."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import dask.config

import scant
from scant.events import Changed, Event, Finished, Progress, State
from scant.runs import RunService
from scant.store import Store

T = TypeVar("T")
PATIENCE = 150.0


def trust_toy() -> None:
    """Let workers started from here know the toy."""
    dask.config.set({"distributed.worker.preload": ["toy"]})


class Driver:
    """A started service, and all that it has published, by run."""

    def __init__(self, url: str, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.said: dict[str, list[Event]] = defaultdict(list)
        self.service = RunService(Store.open(url), **options)
        self.store = self.service.store
        self.service.subscribe(lambda run, events: self.said[run].extend(events))
        self.call(self.service.start())

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)

    def submit(self, owner: str = "ada", data: str = "demo", **values: Any) -> str:
        return self.call(self.service.submit("toy", values, data, owner))

    def pause(self, run: str) -> None:
        self.call(self.service.pause(run, self.store.run(run).owner))

    def resume(self, run: str) -> None:
        self.call(self.service.resume(run, self.store.run(run).owner))

    def stop(self, run: str) -> None:
        self.call(self.service.stop(run, self.store.run(run).owner))

    def until(self, true: Callable[[], Any], what: str) -> None:
        """Wait for something to become true, patiently."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {PATIENCE:g} s in vain for {what}")
            time.sleep(0.01)

    def until_step(self, run: str, step: int) -> None:
        self.until(lambda: self.steps(run)[-1:] >= [step], f"step {step}")

    def until_state(self, run: str, *states: State) -> None:
        self.until(lambda: self.state(run) in states, f"state {states}")

    def until_checkpoint(self, run: str) -> None:
        self.until(lambda: self.store.checkpoint(run), "a checkpoint")

    def end(self, run: str) -> State:
        """The state in which a run ends."""
        self.until(lambda: (s := self.state(run)) and s.final, "the end")
        state = self.state(run)
        assert state is not None
        return state

    def state(self, run: str) -> State | None:
        """A run's state as its watchers know it."""
        known = [e.state for e in list(self.said[run]) if isinstance(e, Changed | Finished)]
        return known[-1] if known else None

    def states(self, run: str) -> list[State]:
        return [e.state for e in self.said[run] if isinstance(e, Changed | Finished)]

    def steps(self, run: str) -> list[int]:
        return [e.step for e in list(self.said[run]) if isinstance(e, Progress)]

    def curve(self, run: str) -> list[tuple]:
        """A run's curve in the store, all but its times."""
        t = self.store.trace(run)
        return list(zip(t.step.tolist(), t.restart.tolist(), t.elbo.tolist(), t.score.tolist()))

    def kill_worker(self, run: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process that trains a run."""
        self.kill(self.service.lifecycle.live[run].worker, how)

    def kill(self, worker: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process of a worker."""
        os.kill(self.on([worker], os.getpid)[worker], how)

    def on(
        self, workers: list[str] | None, function: Callable[..., T], *given: Any
    ) -> dict[str, T]:
        """What a function gives on these workers, or on all of them, by address."""

        async def ask() -> dict[str, T]:
            client = self.service.lifecycle.client._client
            return dict(await client.run(function, *given, workers=workers))

        return self.call(ask())

    def close(self) -> None:
        self.call(self.service.close())
        self.store.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def in_process(**values: object) -> list[tuple]:
    """The curve of the same run without workers, interruptions and store."""
    events = scant.fit("toy", **values)
    return [(e.step, e.restart, e.elbo, e.score) for e in events if isinstance(e, Progress)]


def database(folder: Path) -> str:
    return f"sqlite:///{folder / 'runs.db'}"
