"""A block of a coregionalization matrix of the omniglot page."""

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
from scant_dashboard.translate import later, tr

ASIDE = later(
    "Up to {n} classes are shown one by one; beyond them a square stands for "
    "two groups, and is the mean of the absolute values between their classes."
)
MAX_SIDE = 560  # maximum pixels of the matrix


class Submatrix(PlotView):
    """The block of B_q for a chosen latent function and chosen groups."""

    title = later("Look closer at a matrix")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._suspended = False
        self.plot = HintonGrid(self.title, min_side=260, max_side=MAX_SIDE)
        self.figures = self.plot.figures
        self.latent = pmui.Select(label=tr("Matrix"), options={}, disabled=True, width=160,
                                  margin=0, size="small")  # fmt: skip
        self.outputs = pmui.MultiChoice(
            label=tr("Groups (none: all)"), options=[], disabled=True, margin=0,
            sizing_mode="stretch_width",
        )  # fmt: skip
        for control in (self.latent, self.outputs):
            control.param.watch(lambda _: self._ask(), "value")
        self.panel = stacked(
            self.latent,
            self.outputs,
            text(f"<p class='quiet'>{tr(ASIDE, n=BLOCK)}</p>"),
            self.plot.panel,
        )

    def open(self, run: RunState) -> None:
        """Offer the run's outputs, starting with the most relevant matrix."""
        assert run.report is not None
        self._run, self._suspended = run, True
        count = int(used(run.record.settings, run.metadata)["n_latent"])
        first = int(run.report.arrays["latent"][0])
        options = {f"B{q + 1}": q for q in range(count)}
        self.latent.param.update(options=options, value=first, disabled=False)
        self.outputs.param.update(options=list(run.metadata["outputs"]), value=[], disabled=False)
        self._suspended = False
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if run.recorded or self._page.owns_run:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._run = None
        self.plot.clear()
        self.latent.disabled = self.outputs.disabled = True

    def _ask(self) -> None:
        if self._run is not None and not self._suspended:
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
