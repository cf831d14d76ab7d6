"""A run service without workers, and a page without plots: what the frame is tested with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn

from scant.errors import BadInput
from scant.events import (
    Changed,
    Event,
    Finished,
    Metric,
    Progress,
    Report,
    Snapshot,
    Started,
    State,
)
from scant.runs.access import may_steer, presenter_code
from scant.runs.limits import Limits
from scant.store import RunRecord, Store
from scant.studies import entry
from scant.studies.predicted_columns import FilePrediction
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.views import PageViews


class FakeService:
    """Trains nothing: says what a run would say, through the store, as the true service does."""

    def __init__(self, store: Store, steps: int = 60, pause: float = 0.1) -> None:
        self.store, self.steps, self.rest = store, steps, pause
        self.watchers: list[Callable[[str, list[Event]], None]] = []
        self.wishes: dict[str, str] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.up = True
        self.trouble = ""

    async def start(self) -> None: ...

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()

    def healthy(self) -> bool:
        return self.up

    def storing(self) -> str:
        return self.trouble

    def owns(self, run: str) -> bool:
        return True

    def subscribe(self, watcher: Callable[[str, list[Event]], None]) -> Callable[[], None]:
        self.watchers.append(watcher)
        return lambda: self.watchers.remove(watcher)

    def say(self, run: str, *events: Event) -> None:
        message = self.store.write(run, events)
        for watcher in list(self.watchers):
            watcher(run, message)

    limits = Limits()

    async def submit(
        self, study: str, values: Any, data: str, owner: str, *, address: str, presenter: str
    ) -> str:
        settings = entry(study).settings.parse(values).values()
        if not data:
            raise BadInput("There is no data chosen; choose a source or upload a table.")
        run = self.store.add_run(study, settings, data, owner)
        self.say(run, Changed(State.QUEUED))
        self._go(run, 0)
        return run

    join = submit

    def presenter(self, visitor: str) -> str:
        return presenter_code(visitor, "k" * 40)

    def may_steer(self, record: RunRecord, visitor: str) -> bool:
        return may_steer(record, "", visitor, "k" * 40)

    async def pause(self, run: str, visitor: str) -> None:
        self.wishes[run] = "pause"
        self.say(run, Changed(State.PAUSING))

    async def resume(self, run: str, visitor: str) -> None:
        self.wishes.pop(run, None)
        self._go(run, int(self.store.trace(run).step[-1]))

    async def stop(self, run: str, visitor: str) -> None:
        self.wishes[run] = "stop"
        self.say(run, Changed(State.STOPPING))

    def prefetch_demo(self, study: str) -> None: ...

    async def explore(self, run: str, question: str, asked: Any) -> dict[str, np.ndarray]:
        await asyncio.sleep(asked.get("delay", 0))
        return {"answer": np.array([asked.get("value", 0)])}

    async def predict_file(self, run: str, name: str, content: bytes) -> FilePrediction:
        await asyncio.sleep(0)
        if b"mag" not in content:
            raise BadInput(f"{name} lacks the column 'mag_u' that the model was trained on.")
        return FilePrediction(b"zip of " + content, content.count(b"\n") - 1, 2, ("<b>note</b>",))

    async def predictions(self, run: str) -> bytes:
        return f"predictions of {run}".encode()

    def _go(self, run: str, step: int) -> None:
        task = asyncio.get_running_loop().create_task(self._train(run, step))
        self.tasks.add(task)

    async def _train(self, run: str, step: int) -> None:
        await asyncio.sleep(self.rest)
        self.say(run, Started("cpu", self.steps, step))
        while step < self.steps:
            wish = self.wishes.get(run)
            if wish == "pause":
                self.say(run, Finished(State.PAUSED, f"Paused after step {step}."))
                return
            if wish == "stop":
                self.say(run, Finished(State.STOPPED, f"Stopped after step {step}.", report()))
                return
            step += 1
            self.say(run, point(step), snapshot(step))
            await asyncio.sleep(self.rest)
        self.say(run, Finished(State.HIT_LIMIT, "Not converged after the last step.", report()))


def point(step: int) -> Progress:
    """Step `step` of a plausible curve."""
    value = 1 - float(np.exp(-step / 20))
    return Progress(step, value, 0.1 * step, value, value)


def snapshot(step: int) -> Snapshot:
    """A snapshot whose only array holds its step."""
    return Snapshot(step, {"step": np.array([step])})


def report() -> Report:
    """A report with one figure, one array and one limit."""
    metrics, limits = (Metric("this run", "RMSE", 0.05),), ("Predictions come from GPz alone.",)
    return Report(metrics, {"z": np.arange(3.0)}, limits=limits)


class Says:
    """A view that says in words what it was told last, for tests to read."""

    def __init__(self, title: str) -> None:
        self.title, self.alt = title, "Nothing yet."
        self.panel = pn.pane.HTML("<p>-</p>", min_height=200, sizing_mode="stretch_width")
        self.told: list[Any] = []

    def clear(self, run: Any) -> None:
        self._say("cleared")

    def restyle(self, dark: bool) -> None:
        self.told.append(f"dark {dark}")

    def open(self, run: Any) -> None:
        self._say("open")

    def update(self, told: Any, more: Any) -> None:
        if isinstance(told, Snapshot):
            self._say(f"snapshot {told.step}")
        elif isinstance(told, Report):
            self._say(f"report of {len(told.metrics)} figures")
        else:
            self._say(f"{len(told)} points, {more} known")

    def _say(self, text: str) -> None:
        self.told.append(text)
        self.alt = text
        self.panel.object = f"<p>{text}</p>"


def views(page: Any) -> PageViews:
    """A page file's `views` with nothing but `Says`."""
    return PageViews(
        story="What is scarce, what the model does about it, and what to look at.",
        equations="$$\\log p(y) = \\log \\mathcal{N}(y; 0, K)$$",
        trace=Says("Objective"),  # type: ignore[arg-type]
        live=[Says("Posterior")],  # type: ignore[list-item]
        result=[Says("Figures")],  # type: ignore[list-item]
        explore=[Says("Questions")],  # type: ignore[list-item]
    )


class Asker:
    """Stands for the page's frame: notes what is asked, answers when told."""

    owns_run = True
    guess_first = GuessFirst

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.then: Callable[[Any], None] = lambda _: None

    def ask(
        self,
        question: str,
        then: Callable[[Any], None],
        last: Callable[[], None] = lambda: None,
        **asked: Any,
    ) -> None:
        self.asked.append((question, asked))
        self.last = last
        self.take(question, then)

    def cancel_question(self, question: str) -> None:
        self.then = lambda _: None

    def take(self, question: str, then: Callable[[Any], None]) -> None:
        """Keep what an answer is given to."""
        self.then = then
