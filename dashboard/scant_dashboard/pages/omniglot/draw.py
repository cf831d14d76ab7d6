"""Query of the omniglot page: classify a drawn image in each group."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant_dashboard.controls.drawing_canvas import DrawingCanvas
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.omniglot.matrices import names_of, short
from scant_dashboard.plots.base import NOTHING, SIDE_BY_SIDE
from scant_dashboard.plots.images import GalleryPlot, ResponsePlot
from scant_dashboard.plots.theme import GRAY, GREEN
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

EMPTY = later("nothing: empty paper")
MAX_OUTPUTS = 6  # outputs shown by default
HELP = later("Draw an image, or start from a held-out one.")
NO_IMAGES = later("This run trains on columns of numbers, not on images.")


class Draw:
    """Draw an image to see class probabilities in each group and patch contributions."""

    title = later("Draw an image")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._names: list[str] = []  # names of all classes
        self._ids: list[tuple[str, str]] = []  # their outputs and labels
        self._examples = np.empty((0, 1, 1))
        self._answer: dict[str, np.ndarray] = {}
        self._cells: list[int] = []  # the class of each image in the gallery
        self._suspended = False
        self.pad = DrawingCanvas()
        self.likely = GalleryPlot(
            tr("Likely classes"), min_side=76, max_side=96, pick=self._clicked
        )
        self.response = ResponsePlot(tr("Contributions of the patches"))
        self.response.figures[0].visible = False
        self.figures = (*self.likely.figures, *self.response.figures)
        self._build_controls()
        left = stacked(self.pad, self.begin, self.clear_button)
        right = stacked(self.which, self.response.panel)
        grid = ":host { grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }"
        self.whole = pn.Column(
            left,
            right,
            stylesheets=[SIDE_BY_SIDE, grid],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.panel = stacked(self.reading, self.whole, self.outputs, self.likely.panel)

    def _build_controls(self) -> None:
        self.reading = text(f"<p>{tr(HELP)}</p>")
        self.begin = pmui.Select(
            label=tr("Begin with"), options=[tr(EMPTY)], disabled=True, size="small", margin=0,
            sizing_mode="stretch_width", max_width=280,
        )  # fmt: skip
        self.clear_button = pmui.Button(
            label=tr("Empty the paper"), variant="outlined", size="small", disabled=True, margin=0
        )
        self.which = pmui.Select(
            label=tr("Contributions to"), options={}, disabled=True, size="small", margin=0,
            sizing_mode="stretch_width", max_width=420,
        )  # fmt: skip
        self.outputs = pmui.MultiChoice(
            label=tr("Groups"), options=[], visible=False, sizing_mode="stretch_width", margin=0
        )
        self.pad.param.watch(lambda _: self._ask(), "ink")
        self.begin.param.watch(lambda _: self._begin(), "value")
        self.clear_button.on_click(lambda _: self._empty())
        self.which.param.watch(lambda e: self._ask(e.new), "value")
        self.outputs.param.watch(lambda _: self._show(), "value")

    @property
    def alt(self) -> str:
        return tr(HELP) if self.likely.alt == NOTHING else self.likely.alt

    def say(self) -> None:
        """Put the text alternatives on the figures."""
        self.likely.say()
        self.response.say()

    def open(self, run: RunState) -> None:
        """Offer the run's classes, starting with a held-out image."""
        assert run.report is not None
        self._metadata, arrays = dict(run.metadata), run.report.arrays
        size = tuple(self._metadata.get("size", ()))
        self.whole.visible = bool(size)
        self.reading.object = f"<p>{tr(HELP if size else NO_IMAGES)}</p>"
        if not size:
            return
        self._names = names_of(self._metadata)
        self._ids = [
            (output, label)
            for output, labels in zip(self._metadata["outputs"], self._metadata["classes"])
            for label in labels
        ]
        self._examples = np.asarray(arrays["examples"], float)
        true = [self._names[int(c)] for c in arrays["examples_true"]]
        options = {f"{k + 1}. {name}": k for k, name in enumerate(true)}
        names = list(self._metadata["outputs"])
        self._suspended = True
        self.begin.param.update(options={tr(EMPTY): -1, **options}, value=-1, disabled=False)
        self.outputs.param.update(
            options=names, value=names[:MAX_OUTPUTS], visible=len(names) > MAX_OUTPUTS
        )
        self.clear_button.disabled = False
        self.pad.lay_out(None, (int(size[0]), int(size[1])))
        self._suspended = False
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if options and (run.recorded or self._page.owns_run):
            self.begin.value = 0

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._metadata, self._answer, self._cells = {}, {}, []
        self._forget()
        self._suspended = True
        self.which.param.update(options={}, disabled=True)
        self.begin.disabled = self.clear_button.disabled = True
        self._suspended = False

    def _forget(self) -> None:
        self.likely.clear()
        self.response.clear()
        self.response.figures[0].visible = False

    def _begin(self) -> None:
        if not self._suspended and self._metadata:
            self._set_image(None if self.begin.value < 0 else self._examples[self.begin.value])

    def _empty(self) -> None:
        self._suspended = True
        self.begin.value = -1
        self._suspended = False
        self._set_image(None)

    def _set_image(self, image: np.ndarray | None) -> None:
        """Put an image on the paper, and query it."""
        size = self._metadata["size"]
        self._suspended = True
        self.pad.lay_out(image, (int(size[0]), int(size[1])))
        self._suspended = False
        self._ask()

    def _ask(self, number: int | None = None) -> None:
        """Query the drawing, with contributions to class `number` (None: the most probable one)."""
        if self._suspended or not self._metadata:
            return
        if not self.pad.ink:
            self._page.cancel_question("draw")
            self._answer = {}
            self._forget()
            self.reading.object = f"<p>{tr(HELP)}</p>"
            self._page.read(at_once=True)
            return
        output, label = ("", "") if number is None else self._ids[number]
        self._page.ask("draw", self._answered, pixels=self.pad.ink, output=output, label=label)

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        self._answer = answer
        self._show()
        message = self._names[int(answer["class"][0])]
        share = float(answer["p"][int(answer["class"][0])])
        self.response.figures[0].visible = True
        self.response.show(
            answer["image"],
            answer["map"],
            tr("Contribution of each patch of the drawing to the function of {name}, which has "
               "probability {share:.0%} within its group.", name=message, share=share)
            if answer["map"].size
            else tr("This model compares whole images and has no patches."),
        )  # fmt: skip
        likely = [int(c) for c in np.ravel(answer["top"]) if c >= 0]
        query = int(answer["class"][0])
        options = {self._names[c]: c for c in sorted({*likely, query})}
        self._suspended = True
        self.which.param.update(options=options, value=query, disabled=not answer["map"].size)
        self._suspended = False

    def _show(self) -> None:
        """Show the most probable classes of the chosen outputs, with their probabilities."""
        if not self._answer:
            return
        names, p = list(self._metadata["outputs"]), self._answer["p"]
        chosen = [names.index(n) for n in self.outputs.value or () if n in names]
        cells = [
            (d, k)
            for d in chosen
            for k in range(self._answer["top"].shape[1])
            if self._answer["top"][d, k] >= 0
        ]
        if not cells:
            self.likely.clear()
            return
        self._cells = [int(self._answer["top"][cell]) for cell in cells]
        images = np.stack([self._answer["top_image"][cell] for cell in cells])
        captions = [[short(self._names[c]), f"{p[c]:.0%}"] for c in self._cells]
        first = [k == 0 for _, k in cells]
        best = [f"{self._names[c]} ({p[c]:.0%})" for (_, k), c in zip(cells, self._cells) if k == 0]
        self.likely.show(
            images,
            captions,
            tr("Most probable in each group: {names}.", names="; ".join(best)),
            [GREEN if top else GRAY for top in first],
            p[self._cells],
        )
        message = tr("Most probable: {names}. Click an image to see the contributions of the "
                     "patches.", names=escape("; ".join(best)))  # fmt: skip
        self.reading.object = f"<p role='note'>{message}</p>"
        self._page.read(at_once=True)

    def _clicked(self, cell: int) -> None:
        self._ask(self._cells[cell])
