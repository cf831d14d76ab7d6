"""The clamp page's picture: every patch's box and probability, and a verdict on the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float, Int

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.hidden_until_revealed import HIDDEN_TEXT
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.clamp.session_labels import labeled_by_person, positive_class
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.boxes import BoxesPlot
from scant_dashboard.translate import later, tr

CHOOSE = later("Choose a picture.")
QUESTION = later("Where in this picture is the model most certain of {name}? Touch the place.")
CLICK = later("Click a patch to label it.")
CLICK_ANYWHERE = later(
    "Click any place to label the patch around it, or the center of a box to label that patch."
)
NO_PICTURES = later("The rows of this pool have no pictures.")


class Picture(PlotView):
    """A picture of the pool with its patches, from the latest fit (Yousefi 2021, Fig. 4.6).

    Args:
        page: The page of the view.
        current_labels: Returns a person's labels as pairs of row and class.
    """

    title = later("A whole picture")

    def __init__(
        self, page: PageContext, current_labels: Callable[[], list[list[int]]] = lambda: []
    ) -> None:
        self._page, self._current_labels = page, current_labels
        self._metadata: Mapping[str, Any] = {}
        self._suspended = False
        self.picked: Callable[[int], None] = lambda row: None
        # Takes the nearest patch, and the offset of the click from its center.
        self.clicked: Callable[[int, Float[np.ndarray, " 2"]], None] = lambda row, offset: None
        self.plot = BoxesPlot(self.title, self._on_click)
        self.figures = self.plot.figures
        self.which = pmui.Select(label=tr("Picture"), options={}, disabled=True, size="small",
                                 margin=0, sizing_mode="stretch_width", max_width=420)  # fmt: skip
        self.which.param.watch(lambda _: self._ask(), "value")
        # Hidden by its column, because a hidden Bokeh pane would not reappear.
        self.patch = pmui.Select(label=tr("Patch"), options={}, size="small", margin=0, width=240)
        self.label = pmui.Button(
            label=tr("Label this patch"), on_click=lambda _: self._picked(self.patch.value),
            variant="outlined", size="small", margin=0,
        )  # fmt: skip
        self.by_keys = pn.FlexBox(self.patch, self.label, gap="10px", margin=0,
                                  align_items="center", visible=False)  # fmt: skip
        self.container = pn.Column(self.plot.panel, self.by_keys, sizing_mode="stretch_width",
                               margin=0, visible=False)  # fmt: skip
        self._puzzle: int | None = None  # first row of the current picture
        self.reveal = page.guess_first()
        self.reveal.watch(self._on_reveal)
        self.panel = stacked(self.which, self.reveal.panel, self.container)

    @property
    def alt(self) -> str:
        if self._metadata and not self._metadata.get("pictures"):
            return tr(NO_PICTURES)
        if self.reveal.hidden:
            return tr(HIDDEN_TEXT)
        return str(self.plot.alt) if self.container.visible else tr(CHOOSE)

    def open(self, run: RunState) -> None:
        """Offer the run's pictures, starting with the one most likely to contain the class."""
        assert run.report is not None
        self._metadata = run.metadata
        self.by_keys.visible = labeled_by_person(run)
        names = [str(n) for n in run.metadata.get("pictures", ())]
        if not names:
            return
        arrays = run.report.arrays
        of = np.asarray(arrays["picture"], int)
        first = {k: int(np.flatnonzero(of == k)[0]) for k in range(len(names)) if (of == k).any()}
        best = int(of[int(np.argmax(arrays["pool_p"]))])
        self._suspended = True
        options = {names[k]: row for k, row in first.items()}
        self.which.param.update(options=options, value=first[best], disabled=False)
        self._suspended = False
        if run.recorded or self._page.owns_run:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._suspended = True
        self.which.param.update(options={}, value=None, disabled=True)
        self._suspended = False
        self._metadata = {}
        self._puzzle = None
        self.by_keys.visible = False
        self.reveal.ask("")
        self.container.visible = False
        self.plot.clear()

    def show(self, row: int) -> None:
        """Show the picture of a patch."""
        if self._metadata.get("pictures"):
            self._page.ask("picture", self._answered, row=row, labels=self._current_labels())

    def on_answer(self) -> None:
        """Update the picture after the model was refitted."""
        if self._puzzle is not None:
            self._ask()

    def _ask(self) -> None:
        if not self._suspended and self.which.value is not None and self._metadata:
            self.show(int(self.which.value))

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        image = np.asarray(answer["image"], np.uint8)
        h, w = image.shape[:2]
        left, top, right, bottom = np.asarray(answer["boxes"], float).T
        share = np.stack([left / w, top / h, (right - left) / w, (bottom - top) / h], axis=1)
        p, truth = np.asarray(answer["p"], float), np.asarray(answer["truth"], int)
        verdict = float(np.ravel(answer["verdict"])[0])
        sought = positive_class(self._metadata)
        if len(p) == 1:  # perhaps the whole picture
            message = tr("This picture shows {name} with p = {p:.2f}.", name=sought, p=verdict)
        else:
            message = tr("This picture shows {name} with p = {p:.2f}; p is above one half in {n} "
                         "of its {patches} patches.", name=sought, p=verdict,
                         n=int((p > 0.5).sum()), patches=len(p))  # fmt: skip
        if (truth >= 0).any():
            own = truth == int(self._metadata.get("positive", 1))
            if len(p) > 1:
                shown = tr("Patches that show it by their labels in the table: {n}.",
                           n=int(own.sum()))  # fmt: skip
            else:
                shown = tr("In the table it does.") if own[0] else tr("In the table it does not.")
            message += f" {shown}"
        rows = np.asarray(answer["rows"], int)
        if self.by_keys.visible:
            message += f" {tr(CLICK_ANYWHERE if self._metadata.get('placed') else CLICK)}"
            self._list_patches(rows, p)
        if self._puzzle != rows[0]:
            self._puzzle = int(rows[0])
            self.reveal.ask(tr(QUESTION, name=sought), picture=image)
        left, top, width, height = (float(v) for v in share[int(np.argmax(p))])
        self.reveal.know(
            tr("In the marked patch, with p = {p:.2f}.", p=p.max()),
            (left + width / 2, top + height / 2),
            (left, top, left + width, top + height),
        )
        self.plot.show(image, share, p, rows, message)
        self._on_reveal()

    def _list_patches(self, rows: Int[np.ndarray, " b"], p: Float[np.ndarray, " b"]) -> None:
        """List the patches of the picture, most probable first, for visitors without a mouse."""
        order = np.argsort(-p, kind="stable")
        options = {
            tr("patch {row}, p = {p:.2f}", row=int(rows[i]), p=p[i]): int(rows[i]) for i in order
        }
        selected = self.patch.value if self.patch.value in options.values() else int(rows[order[0]])
        self.patch.param.update(options=options, value=selected)

    def _picked(self, row: int | None) -> None:
        if row is not None and self.by_keys.visible:
            self.picked(row)

    def _on_click(self, row: int, offset: Float[np.ndarray, " 2"]) -> None:
        if self.by_keys.visible:
            self.clicked(row, offset)

    def _on_reveal(self) -> None:
        """Show or hide the patches, as the question requires."""
        self.container.visible = self._puzzle is not None and not self.reveal.hidden
        self._page.read(at_once=True)
