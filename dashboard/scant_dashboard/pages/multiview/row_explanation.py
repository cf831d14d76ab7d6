"""The hidden neurons and the prediction of one row."""

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
from scant_dashboard.plots.hidden_units import HiddenPlot


def target_of(metadata: Mapping[str, Any]) -> str:
    """What a row's target is called on an axis."""
    return target_name(metadata) or ("time" if metadata["task"] == "survival" else "value")


class RowExplanation(PlotView):
    """A held-out row among all: each neuron's value with its interval, and what follows of it."""

    title = "One row, neuron by neuron"

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._reading = ""
        self._rows = np.empty(0, int)  # of the table, in the order of the slider
        self._spread = np.empty((2, 0))  # mean and deviation of each neuron over the rows
        self.plot = HiddenPlot(self.title)
        self.figures = self.plot.figures
        self.row = pmui.IntSlider(
            label="Held-out row", start=1, end=2, value=1, disabled=True,
            sizing_mode="stretch_width", max_width=420, margin=(0, 12),
        )  # fmt: skip
        self.row.param.watch(lambda _: self._ask(), "value_throttled")
        self.panel = stacked(self.row, self.plot.panel)

    @property
    def alt(self) -> str:
        return self._reading or str(self.plot.alt)

    def open(self, run: RunState) -> None:
        """Show all rows; a visitor who trained the run sees one of them at once."""
        assert run.report is not None
        a, self._metadata = run.report.arrays, dict(run.metadata)
        hidden, metadata = np.asarray(a["hidden"], float), self._metadata
        if not len(hidden):
            self.plot.describe("There are no held-out rows; choose a smaller training share.")
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
        # A crowd that watches one run should not ask all at once when it ends.
        if run.recorded or self._page.mine:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._reading = ""
        self.row.disabled = True
        self.plot.clear()

    def _ask(self) -> None:
        row = int(self._rows[int(self.row.value) - 1])
        self._page.ask("row", partial(self._answered, row), row=row)

    def _answered(self, row: int, answer: dict[str, np.ndarray]) -> None:
        mean, std = answer["hidden"], answer["hidden_std"]
        self.plot.point(mean, std)
        away = (mean - self._spread[0]) / np.maximum(self._spread[1], 1e-12)
        k = int(np.argmax(np.abs(away)))
        side = "above" if away[k] > 0 else "below"
        self._reading = (
            f"Row {row + 1} of the table: {self._predicted(answer)}. The most unusual neuron is "
            f"{self._metadata['neurons'][k]}, {abs(away[k]):.1f} standard deviations {side} its "
            "mean over the rows."
        )

    def _predicted(self, answer: dict[str, np.ndarray]) -> str:
        """What was predicted of the row, and what is true."""
        p, low, high, truth = (
            float(answer[name][0])
            for name in ("predicted", "predicted_low", "predicted_high", "truth")
        )
        known = np.isfinite(truth)
        if self._metadata["task"] == "classification":
            classes = self._metadata["classes"]
            true = f"; it is {classes[int(truth)]}" if known else ""
            return f"{classes[1]} with a probability of {p:.0%}{true}"
        true = f"; it is {truth:.3g}" if known else ""
        return f"{p:.3g} predicted, between {low:.3g} and {high:.3g} with 95%{true}"
