"""The omniglot page's magnifier: one coregionalisation matrix, of the alphabets one chooses."""

from __future__ import annotations

import numpy as np
import panel_material_ui as pmui

from scant.studies.auto import used
from scant.studies.omniglot.settings import BLOCK
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.omniglot.matrices import names_of, outputs_of
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.coregionalization_grid import HintonGrid
from scant_dashboard.template import text

ASIDE = (
    f"<p class='quiet'>Up to {BLOCK} classes are shown one by one; beyond them a square stands for "
    "two alphabets, and is the mean of the absolute values between their classes.</p>"
)
WIDE = 560  # pixels of the matrix at most


class Zoom(PlotView):
    """Choose a latent function and alphabets; the model is asked for that block of its B_q."""

    title = "Look closer at a matrix"

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._quiet = False
        self.plot = HintonGrid(self.title, least=260, most=WIDE)
        self.figures = self.plot.figures
        self.latent = pmui.Select(label="Matrix", options={}, disabled=True, width=160, margin=0,
                                  size="small")  # fmt: skip
        self.outputs = pmui.MultiChoice(label="Alphabets (none: all)", options=[], disabled=True,
                                        sizing_mode="stretch_width", margin=0)  # fmt: skip
        for control in (self.latent, self.outputs):
            control.param.watch(lambda _: self._ask(), "value")
        self.panel = stacked(self.latent, self.outputs, text(ASIDE), self.plot.panel)

    def open(self, run: RunState) -> None:
        """Take the run's outputs, and show the matrix that counts most."""
        assert run.report is not None
        self._run, self._quiet = run, True
        count = int(used(run.record.settings, run.metadata)["n_latent"])
        first = int(run.report.arrays["latent"][0])
        options = {f"B{q + 1}": q for q in range(count)}
        self.latent.param.update(options=options, value=first, disabled=False)
        self.outputs.param.update(options=list(run.metadata["outputs"]), value=[], disabled=False)
        self._quiet = False
        # A crowd that watches one run should not ask all at once when it ends.
        if run.recorded or self._page.mine:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._run = None
        self.plot.clear()
        self.latent.disabled = self.outputs.disabled = True

    def _ask(self) -> None:
        if self._run is not None and not self._quiet:
            query = list(self.outputs.value or ())
            self._page.ask("block", self._answered, latent=self.latent.value, outputs=query)

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        assert self._run is not None
        metadata = self._run.metadata
        names, groups = names_of(metadata), outputs_of(metadata)
        if int(answer["aggregated"][0]):
            names = groups = list(metadata["outputs"])
        chosen = [int(c) for c in answer["class"]]
        self.plot.show(
            np.asarray(answer["matrix"], float)[None],
            [f"B{int(self.latent.value) + 1}"],
            [names[c] for c in chosen],
            [groups[c] for c in chosen],
        )
