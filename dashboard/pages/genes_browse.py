"""Every output of a run, as many as there are: asked for when they come near, dropped when far."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.pages.genes_grid import FIELDS, draw, lay, replicas_of
from dashboard.plots.late import Near
from dashboard.plots.replicas import ReplicaGrid
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

TOGETHER = 4  # outputs of a figure, and of a question
DRAWN = 6  # figures at once; those seen longest ago give way
TALL = 640  # pixels of the window that scrolls
ALL = "<p class='quiet'>{} outputs; scroll, or choose some by name.</p>"


class Batch:
    """A few outputs: an unseen mark until the visitor comes near, then their figure."""

    def __init__(self, browse: Browse, outputs: list[str], replicas: list[list[str]]) -> None:
        self.browse, self.outputs, self.replicas = browse, outputs, replicas
        self.plot: ReplicaGrid | None = None
        self.height = ReplicaGrid.tall(len(outputs))
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self.drop()

    def drop(self) -> None:
        """Wait for the visitor to come near (again)."""
        self.plot = None
        mark = Near(height=self.height, sizing_mode="stretch_width", margin=0)
        mark.param.watch(lambda _: self.browse.come(self), "near")
        self.panel.objects = [mark]

    def show(self, answer: dict[str, np.ndarray]) -> None:
        """Draw what the model answered."""
        self.plot = ReplicaGrid(", ".join(self.outputs), legend=False)
        seen = {name: answer[f"seen_{name}"] for name in FIELDS}
        lay(self.plot, self.outputs, self.replicas, seen, answer["grid"])
        draw(self.plot, answer)
        self.plot.say()
        self.panel.objects = [self.plot.panel]


class Browse:
    """A window over all outputs; the model is asked for those that come near, a few at a time."""

    title = "Every output"

    def __init__(self, page: StudyPage) -> None:
        self._page = page
        self._run: History | None = None
        self._waiting: list[Batch] = []
        self._drawn: list[Batch] = []
        self._asking = False
        self.batches: list[Batch] = []
        self.chosen = pmui.MultiChoice(
            label="Outputs", options=[], disabled=True, sizing_mode="stretch_width", margin=0
        )
        self.chosen.param.watch(lambda _: self._lay(), "value")
        self.about = text("")
        self.window = pn.Column(
            stylesheets=[f":host {{ max-height: {TALL}px !important; overflow-y: auto; }}"],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.panel = pn.Column(
            self.chosen, self.about, self.window,
            stylesheets=[":host { gap: 10px; max-height: none !important; }"],
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    @property
    def figures(self) -> tuple[Any, ...]:
        """The figures that are drawn now."""
        return tuple(f for batch in self.batches if batch.plot for f in batch.plot.figures)

    @property
    def alt(self) -> str:
        drawn = [batch for batch in self.batches if batch.plot is not None]
        named = [name for batch in drawn for name in batch.outputs]
        if not named:
            return ""
        return f"Drawn now: {named[0]} to {named[-1]}, of {len(self.chosen.options)} outputs."

    def open(self, run: History) -> None:
        """Lay out the run's outputs; each is asked for when the visitor comes near."""
        self._run = run
        names = list(run.words["outputs"])
        self.chosen.param.update(options=names, value=[], disabled=False)
        self.about.object = ALL.format(len(names))
        self._lay()

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._run = None
        self.batches, self._waiting, self._drawn = [], [], []
        self.window.objects = []
        self.chosen.disabled = True

    def come(self, batch: Batch) -> None:
        """The visitor is near these outputs: ask for them, the latest first."""
        if batch in self.batches and batch not in self._waiting and batch.plot is None:
            self._waiting.append(batch)
            self._next()

    def _lay(self) -> None:
        if self._run is None:
            return
        words = self._run.words
        names = list(self.chosen.value or words["outputs"])
        parts = [names[i : i + TOGETHER] for i in range(0, len(names), TOGETHER)]
        self._waiting, self._drawn = [], []
        self.batches = [Batch(self, part, replicas_of(words, part)) for part in parts]
        self.window.objects = [batch.panel for batch in self.batches]

    def _next(self) -> None:
        """One question at a time: an answer that a newer question overtook would be lost."""
        if self._asking or not self._waiting or self._run is None:
            return
        batch = self._waiting.pop()
        self._asking = True
        work = self._page.service.explore(self._run.id, "curves", {"outputs": list(batch.outputs)})
        self._page.background(work, partial(self._answered, batch, self._run), last=self._over)

    def _over(self) -> None:
        self._asking = False
        self._next()

    def _answered(self, batch: Batch, run: History, answer: dict[str, np.ndarray]) -> None:
        if run is not self._run or batch not in self.batches:
            return
        batch.show(answer)
        self._drawn.append(batch)
        for far in self._far(batch):
            self._drawn.remove(far)
            far.drop()
        self._page.read(at_once=True)

    def _far(self, near: Batch) -> Sequence[Batch]:
        """The figures furthest from where the visitor is, beyond those that may stay."""
        place = {id(b): i for i, b in enumerate(self.batches)}
        order = sorted(self._drawn, key=lambda b: abs(place[id(b)] - place[id(near)]))
        return order[DRAWN:]
