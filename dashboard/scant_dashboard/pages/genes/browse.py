"""A scrolling view of all outputs of a run that draws only the visible ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
import param
from panel.custom import JSComponent

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.genes.grid import FIELDS, draw, lay_out, name_input, replicas_of
from scant_dashboard.plots.replicas import ReplicaGrid
from scant_dashboard.template import text
from scant_dashboard.translate import later, ntr, tr

TOGETHER = 3  # outputs per figure and per query
FIGURES = 5  # maximum number of figures; distant ones are reused
TALL = 640  # pixels of the scrolling window
AHEAD = 320  # pixels around the window that are drawn, too
MAX_ANSWERS = 24  # answers kept in memory
TITLE = later("Every output")
WINDOW = """
:host { max-height: 640px !important; overflow: hidden auto !important; position: relative; }
:host, :host > * { min-width: 0; max-width: 100%; }
"""
AWAY = {"position": "absolute", "left": "0", "right": "0", "top": "-9999px"}


class ScrollSpacer(JSComponent):
    """A spacer of the total height that reports the scroll position of the surrounding window."""

    top = param.Integer(default=0, doc="Pixels, in steps of 80.")

    _esm = """
    export function render({model, el}) {
      let box = el
      while (box && !(box instanceof Element && getComputedStyle(box).overflowY === 'auto'))
        box = box.parentElement ?? box.getRootNode().host
      let waiting = false
      const report = () => {
        waiting = false
        const top = Math.round(box.scrollTop / 80) * 80
        if (top !== model.top) model.top = top
      }
      box?.addEventListener('scroll', () => {
        if (!waiting) { waiting = true; setTimeout(report, 60) }
      }, {passive: true})
      model.on('top', () => { if (model.top === 0 && box) box.scrollTop = 0 })
    }
    """


class Slot:
    """A figure that shows one batch of outputs at a time, at the batch's position."""

    def __init__(self) -> None:
        self.batch = -1  # none
        self.plot = ReplicaGrid(TITLE, legend=False)
        self.panel = pn.Column(self.plot.panel, styles=AWAY, margin=0)

    def show(
        self,
        batch: int,
        outputs: list[str],
        metadata: Mapping[str, Any],
        answer: dict[str, np.ndarray],
    ) -> None:
        """Draw the model's answer for a batch, at its position."""
        self.batch = batch
        name_input(self.plot, metadata)
        observed = {name: answer[f"seen_{name}"] for name in FIELDS}
        replicas = replicas_of(metadata, outputs)
        lay_out(self.plot, outputs, replicas, observed, answer["grid"])
        draw(self.plot, answer)
        self.plot.title = ", ".join(outputs)
        self.plot.say()
        self.panel.styles = {**AWAY, "top": f"{batch * HEIGHT}px"}

    def free(self) -> None:
        """Hide the figure so that it can be reused."""
        self.batch = -1
        self.panel.styles = AWAY


HEIGHT = ReplicaGrid.tall(TOGETHER)


class Browse:
    """A scrolling window over all outputs; the visible ones are queried a few at a time."""

    title = TITLE

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._asking = False
        self._answers: dict[int, dict[str, np.ndarray]] = {}
        self.batches: list[list[str]] = []
        self.slots: list[Slot] = []
        self.chosen = pmui.MultiChoice(
            label=tr("Outputs"), options=[], disabled=True, sizing_mode="stretch_width", margin=0
        )
        self.chosen.param.watch(lambda _: self._arrange(), "value")
        self.about = text("")
        self.scrolled = ScrollSpacer(height=1, sizing_mode="stretch_width", margin=0)
        self.scrolled.param.watch(lambda _: self._fill(), "top")
        self.window = pn.Column(
            self.scrolled, stylesheets=[WINDOW], sizing_mode="stretch_width", margin=0
        )
        self.panel = stacked(self.chosen, self.about, self.window)

    @property
    def figures(self) -> tuple[Any, ...]:
        """The visible figures, from top to bottom."""
        return tuple(f for slot in self._visible_slots() for f in slot.plot.figures)

    @property
    def alt(self) -> str:
        slots = self._visible_slots()
        if not slots:
            return ""
        first, last = self.batches[slots[0].batch][0], self.batches[slots[-1].batch][-1]
        count = len(self.chosen.options)
        return ntr("Drawn now: {first} to {last}, of {n} output.",
                   "Drawn now: {first} to {last}, of {n} outputs.", count, first=first,
                   last=last)  # fmt: skip

    def open(self, run: RunState) -> None:
        """List the run's outputs, and query the first ones."""
        self._run = run
        names = list(run.metadata["outputs"])
        about = ntr("{n} output; scroll, or choose some by name.",
                    "{n} outputs; scroll, or choose some by name.", len(names))  # fmt: skip
        self.about.object = f"<p class='quiet'>{about}</p>"
        self.chosen.disabled = False
        self.chosen.param.update(options=names, value=[])
        self._arrange()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._run = None
        self.batches, self._answers = [], {}
        for slot in self.slots:
            slot.free()
        self.chosen.disabled = True

    def _visible_slots(self) -> list[Slot]:
        return sorted((s for s in self.slots if s.batch >= 0), key=lambda slot: slot.batch)

    def _arrange(self) -> None:
        if self._run is None:
            return
        names = list(self.chosen.value or self._run.metadata["outputs"])
        self.batches = [names[i : i + TOGETHER] for i in range(0, len(names), TOGETHER)]
        self._answers = {}
        for slot in self.slots:
            slot.free()
        self.scrolled.param.update(height=len(self.batches) * HEIGHT, top=0)
        self.window.height = min(TALL, len(self.batches) * HEIGHT)
        self._fill()

    def _nearby_batches(self) -> list[int]:
        """Return the batches in or near the window, the nearest to its center first."""
        top = self.scrolled.top
        first = max(0, (top - AHEAD) // HEIGHT)
        last = min(len(self.batches) - 1, (top + TALL + AHEAD) // HEIGHT)
        middle = top + TALL / 2 - HEIGHT / 2
        return sorted(range(first, last + 1), key=lambda i: abs(i * HEIGHT - middle))[:FIGURES]

    def _fill(self) -> None:
        """Draw nearby batches with answers; query the nearest without one.

        Queries run one at a time, so that batches passed while scrolling are not waited for.
        """
        if self._run is None:
            return
        nearby = self._nearby_batches()
        batches_drawn = {slot.batch for slot in self.slots}
        for batch in nearby:
            if batch in batches_drawn:
                continue
            if batch in self._answers:
                self._draw(batch, nearby)
            elif not self._asking:
                self._ask(batch)
        self._page.read(at_once=True)

    def _ask(self, batch: int) -> None:
        assert self._run is not None
        self._asking = True
        outputs = self.batches[batch]
        work = self._page.service.explore(self._run.id, "curves", {"outputs": list(outputs)})
        answered = partial(self._answered, self._run, batch, outputs)
        self._page.background(work, answered, refused=self._refused)

    def _answered(
        self, run: RunState, batch: int, outputs: list[str], answer: dict[str, np.ndarray]
    ) -> None:
        if run is self._run and self.batches[batch : batch + 1] == [outputs]:
            self._answers[batch] = answer
            while len(self._answers) > MAX_ANSWERS:
                del self._answers[next(iter(self._answers))]
        self._asking = False
        self._fill()

    def _refused(self, sentence: str) -> None:
        """Show the error; query again when the visitor scrolls."""
        self._page.say(sentence, "error")
        self._asking = False

    def _draw(self, batch: int, nearby: list[int]) -> None:
        """Draw a batch in a figure that is not nearby, or in a new one."""
        assert self._run is not None
        slot = next((s for s in self.slots if s.batch not in nearby), None)
        if slot is None:
            slot = Slot()
            self.slots.append(slot)
            self.window.append(slot.panel)
        outputs = self.batches[batch]
        slot.show(batch, outputs, self._run.metadata, self._answers[batch])
