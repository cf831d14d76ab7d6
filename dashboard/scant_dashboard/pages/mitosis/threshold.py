"""Decision threshold of the mitosis page: errors as a function of it."""

from __future__ import annotations

import numpy as np
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.mitosis.spaces import HALVES
from scant_dashboard.plots.base import SIDE_BY_SIDE, PlotView
from scant_dashboard.plots.precision_recall import PrecisionRecallPlot
from scant_dashboard.plots.table import comparison
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

NONE = later("There are no held-out rows.")
ASIDE = later(
    "Each method starts at its own threshold, fitted on validation rows; the "
    "slider sets one probability for all."
)
COUNTED = (
    later("true positives"), later("false positives"), later("false negatives"),
    later("true negatives"), later("precision"), later("recall"),
)  # fmt: skip


class Threshold(PlotView):
    """A slider of the decision threshold, with the confusion counts of each method."""

    title = later("Decision threshold")

    def __init__(self, page: PageContext) -> None:
        self._curves = np.empty((0, 3, 0))
        self._counts = np.empty((0, 4, 0))
        self._methods: list[str] = []
        self._rare = ""
        self._page = page
        self.plot = PrecisionRecallPlot(self.title)
        self.figures = self.plot.figures
        self.slider = pmui.FloatSlider(
            label=tr("Probability threshold of the rare class"), start=0.0, end=1.0, step=0.005,
            value=0.5, disabled=True, sizing_mode="stretch_width", max_width=480, margin=(0, 12),
        )  # fmt: skip
        self.slider.param.watch(lambda _: self._mark(), "value")
        self.table = text("")
        layout = pn.Column(self.plot.panel, self.table, stylesheets=[SIDE_BY_SIDE, HALVES],
                           sizing_mode="stretch_width", margin=0)  # fmt: skip
        self.panel = stacked(self.slider, text(f"<p class='quiet'>{tr(ASIDE)}</p>"), layout)

    def open(self, run: RunState) -> None:
        """Show the curves of the report, marked at each method's own threshold."""
        assert run.report is not None
        arrays = run.report.arrays
        self._curves, self._counts = np.asarray(arrays["pr"]), np.asarray(arrays["confusion"])
        self._methods = [tr(name) for name in run.metadata["methods"]]
        self._rare = str(run.metadata["rare"])
        if not self._curves.size or not np.isfinite(self._curves[:, 2]).any():
            self.plot.describe(tr(NONE))
            return
        result, _, missed, _ = self._counts[0, :, 0]
        share = float((result + missed) / max(self._counts[0, :, 0].sum(), 1))
        self.plot.show(self._curves, self._methods, share)
        own = np.clip(np.nan_to_num(arrays["threshold"], nan=0.5), 0, 1)
        self.slider.disabled = True  # while disabled, the slider does not move the marks
        self.slider.value = float(own[0])
        self.slider.disabled = False
        self._mark(own)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.slider.disabled = True
        self.table.object = ""
        self.plot.clear()

    def _mark(self, query: Float[np.ndarray, " m"] | None = None) -> None:
        """Mark each curve at the nearest threshold to `query`, by default the slider's."""
        if self.slider.disabled:
            return
        every = np.arange(len(self._curves))
        if query is None:
            query = np.full(len(every), float(self.slider.value))
        at = np.argmin(np.abs(self._curves[:, 0] - query[:, None]), axis=1)
        marked, counts = self._curves[every, :, at], self._counts[every, :, at]
        result, alarms, missed, _ = (int(c) for c in counts[0])
        self.plot.mark(
            marked,
            self._methods,
            tr("At the threshold {threshold:.3g}, {method} detects {found} of {rows} rows of "
               "{name}. False positives: {alarms}; precision {precision}, recall {recall}.",
               threshold=query[0], method=self._methods[0], found=result, rows=result + missed,
               name=self._rare, alarms=alarms, precision=_percent(marked[0, 1]),
               recall=_percent(marked[0, 2])),
        )  # fmt: skip
        rows = {
            name: [*(_whole(c) for c in count), _percent(point[1]), _percent(point[2])]
            for name, count, point in zip(self._methods, counts, marked)
        }
        self.table.object = comparison(rows, [tr(name) for name in COUNTED])
        self._page.read(at_once=True)


def _whole(count: float) -> str:
    return f"{count:.0f}" if np.isfinite(count) else "–"  # a method that was skipped


def _percent(share: float) -> str:
    return f"{share:.0%}" if np.isfinite(share) else "–"
