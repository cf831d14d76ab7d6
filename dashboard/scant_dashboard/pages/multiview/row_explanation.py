"""Hidden units and prediction of one row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import PlotView, target_name
from scant_dashboard.plots.hidden_units import HiddenUnitsPlot
from scant_dashboard.translate import later, tr

ABOVE = later(
    "Row {row} of the table: {prediction}. The most unusual neuron is {neuron}, {z:.1f} standard "
    "deviations above its mean over the rows."
)
BELOW = later(
    "Row {row} of the table: {prediction}. The most unusual neuron is {neuron}, {z:.1f} standard "
    "deviations below its mean over the rows."
)


def target_of(metadata: Mapping[str, Any]) -> str:
    """Return the axis label of the target."""
    usual = tr("time") if metadata["task"] == "survival" else tr("value")
    return target_name(metadata) or usual


class RowExplanation(PlotView):
    """A held-out row: each hidden unit's value with its interval, and the prediction."""

    title = later("One row, neuron by neuron")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._reading = ""
        self._rows = np.empty(0, int)  # rows of the table, in slider order
        self._spread = np.empty((2, 0))  # mean and standard deviation of each unit over the rows
        self.plot = HiddenUnitsPlot(self.title)
        self.figures = self.plot.figures
        self.row = pmui.IntSlider(
            label=tr("Held-out row"), start=1, end=2, value=1, disabled=True,
            sizing_mode="stretch_width", max_width=420, margin=(0, 12),
        )  # fmt: skip
        self.row.param.watch(lambda _: self._ask(), "value_throttled")
        self.panel = stacked(self.row, self.plot.panel)

    @property
    def alt(self) -> str:
        return self._reading or str(self.plot.alt)

    def open(self, run: RunState) -> None:
        """Show all rows; only the run's owner sees a single row immediately."""
        assert run.report is not None
        a, self._metadata = run.report.arrays, dict(run.metadata)
        hidden, metadata = np.asarray(a["hidden"], float), self._metadata
        if not len(hidden):
            self.plot.describe(tr("There are no held-out rows; choose a smaller training share."))
            return
        self._rows = np.asarray(a["shown"], int)
        self._spread = np.stack([hidden.mean(0), hidden.std(0)])
        self.plot.show(
            hidden,
            a["truth"],
            metadata["neurons"],
            a["influence"],
            metadata.get("classes") or (),
            target_of(metadata),
        )
        self.row.param.update(end=max(len(hidden), 2), value=1, disabled=len(hidden) < 2)
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if run.recorded or self._page.owns_run:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._reading = ""
        self.row.disabled = True
        self.plot.clear()

    def _ask(self) -> None:
        row = int(self._rows[int(self.row.value) - 1])
        self._page.ask("row", partial(self._answered, row), row=row)

    def _answered(self, row: int, answer: dict[str, np.ndarray]) -> None:
        mean, std = answer["hidden"], answer["hidden_std"]
        self.plot.point(mean, std)
        z = (mean - self._spread[0]) / np.maximum(self._spread[1], 1e-12)
        k = int(np.argmax(np.abs(z)))
        self._reading = tr(
            ABOVE if z[k] > 0 else BELOW, row=row + 1, prediction=self._predicted(answer),
            neuron=self._metadata["neurons"][k], z=abs(z[k]),
        )  # fmt: skip

    def _predicted(self, answer: dict[str, np.ndarray]) -> str:
        """Describe the prediction and the true value of the row."""
        p, low, high, truth = (
            float(answer[name][0])
            for name in ("predicted", "predicted_low", "predicted_high", "truth")
        )
        has_truth = np.isfinite(truth)
        if self._metadata["task"] == "classification":
            classes = self._metadata["classes"]
            message = tr("{name} with a probability of {p:.0%}", name=classes[1], p=p)
            true = classes[int(truth)] if has_truth else ""
        else:
            message = tr("{value:.3g} predicted (95% interval {low:.3g} to {high:.3g})",
                         value=p, low=low, high=high)  # fmt: skip
            true = tr("{value:.3g}", value=truth)
        return (
            tr("{message}; the truth is {truth}", message=message, truth=true)
            if has_truth
            else message
        )
