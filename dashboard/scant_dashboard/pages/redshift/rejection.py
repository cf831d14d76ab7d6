"""Rejection of uncertain predictions on the redshift page."""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.pages.redshift.target import is_redshift, is_relative
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.rejection_curve import NAMES, RejectionCurvePlot
from scant_dashboard.translate import later, tr

REJECTION = later("Keep only what it is sure of")
ALL = later("All rows: RMSE {error:.4g}, mean log-likelihood {fit:.4g}.")
CONFIDENT = later(
    "The {share:.0%} most confident rows: RMSE {error:.4g}, mean log-likelihood {fit:.4g}."
)


class RejectionSlider(PlotView):
    """Reject the least certain rows, and show the metrics of the rest."""

    def __init__(self, page: PageContext) -> None:
        self._page, self._redshift = page, True
        self.plot = RejectionCurvePlot(REJECTION)
        self.title, self.figures = self.plot.title, self.plot.figures
        self.slider = pmui.IntSlider(
            label=tr("Share of rows kept, most confident first (%)"),
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
        self._panes = list(self.plot.panel.objects)
        self.panel = pn.Column(self.slider, self.plot.panel, sizing_mode="stretch_width", margin=0)

    @property
    def alt(self) -> str:
        table, share = self.plot.table, self.plot.share
        if self._redshift or not table.shape[1]:
            return str(self.plot.alt)
        error, fit = (float(np.interp(share, table[0], row)) for row in table[1:3])
        return tr(ALL if share >= 1 else CONFIDENT, share=share, error=error, fit=fit)

    def open(self, run: RunState) -> None:
        """Show the run's table of shares."""
        assert run.report is not None
        self._redshift = is_redshift(run.metadata)
        # Not hidden: Bokeh cannot compute the ranges of hidden figures.
        applies = [self._redshift or not is_relative(name) for name in NAMES]
        self.figures = tuple(compress(self.plot.figures, applies))
        self.plot.panel.objects = list(compress(self._panes, applies))
        self.plot.show(run.report.arrays["kept"])
        self.slider.disabled = False

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.plot.clear()
        self.slider.param.update(value=100, disabled=True)

    def _slide(self, change: Any) -> None:
        self.plot.at(change.new / 100)
        self._page.read(at_once=True)
