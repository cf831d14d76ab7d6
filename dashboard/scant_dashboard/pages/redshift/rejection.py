"""Rejection of uncertain predictions on the redshift page."""

from __future__ import annotations

from typing import Any

import panel as pn
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.rejection_curve import RejectionCurvePlot

REJECTION = "Keep only what it is sure of"


class RejectionSlider(PlotView):
    """Reject the least certain galaxies, and show the metrics of the rest."""

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self.plot = RejectionCurvePlot(REJECTION)
        self.title, self.figures = self.plot.title, self.plot.figures
        self.slider = pmui.IntSlider(
            label="Share of galaxies kept, most confident first (%)",
            value=100,
            start=10,
            end=100,
            step=5,
            disabled=True,
            sizing_mode="stretch_width",
            max_width=420,
            margin=(0, 12),
        )
        self.slider.param.watch(self._slide, "value")
        self.panel = pn.Column(self.slider, self.plot.panel, sizing_mode="stretch_width", margin=0)

    def open(self, run: RunState) -> None:
        """Show the run's table of shares."""
        assert run.report is not None
        self.plot.show(run.report.arrays["kept"])
        self.slider.disabled = False

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.plot.clear()
        self.slider.param.update(value=100, disabled=True)

    def _slide(self, change: Any) -> None:
        self.plot.at(change.new / 100)
        self._page.read(at_once=True)
