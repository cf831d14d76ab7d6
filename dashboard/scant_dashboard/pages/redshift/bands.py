"""Predictions with bands removed from the test galaxies."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant.html_table import html_table
from scant.tables.levels import measured
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.question_view import QuestionView
from scant_dashboard.page_parts.widgets import controls_row
from scant_dashboard.pages.redshift.scores import (
    DENSITIES,
    FAR,
    OF_BINS,
    format_score,
    heading,
)
from scant_dashboard.pages.redshift.target import OUTLIER, is_redshift, is_relative
from scant_dashboard.plots.base import SIDE_BY_SIDE, target_name
from scant_dashboard.plots.density import DensityPlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

PLOTS = ":host { grid-template-columns: repeat(auto-fit, minmax(min(100%, 360px), 1fr)); }"
IDLE = later("Clear an input, and guess the loss of accuracy.")
METRICS = (
    "RMSE", DENSITIES[0], "F_0.15 (%)", "F_0.05 (%)", *OF_BINS[:2], *FAR, *DENSITIES[1:],
)  # fmt: skip
GROWTH = later("RMSE grows by a factor of {factor:.1f}.")


class BandAblation(QuestionView):
    """Remove bands to see the effect on p(z) and the metrics; click a row for its p(z).

    Args:
        page: The page of the view.
        reveal: The question for the loss of accuracy.
    """

    title = later("What if an input were missing?")
    prompt = later("Click a dot for its predictive density.")

    def __init__(self, page: PageContext, reveal: GuessFirst) -> None:
        self._page, self.reveal = page, reveal
        self._arrays: dict[str, np.ndarray] = {}
        self._whole: np.ndarray | None = None  # metrics with all bands
        self._held: dict[str, np.ndarray] | None = None  # the latest answer, even if hidden
        self._row: int | None = None
        self._before: tuple[np.ndarray, np.ndarray] | None = None
        self._suspended = self._warned = self._redshift = False
        self.scatter = ScatterPlot(tr("redshift z"), title=tr("Click a dot"), pick=self._pick)
        self.density = DensityPlot("z", title=tr("Its predictive density"))
        super().__init__(self.scatter, self.density)
        self._build_controls()
        plots = pn.Column(
            self.scatter.panel,
            self.density.panel,
            stylesheets=[SIDE_BY_SIDE, PLOTS],
            sizing_mode="stretch_width",
            margin=0,
        )
        self.panel = pn.Column(
            controls_row(self.bands, self.row, gap=24),
            self.reveal.panel,
            self.reading,
            plots,
            stylesheets=[":host { gap: 10px; max-height: none !important; }"],
            sizing_mode="stretch_width",
            margin=0,
        )

    def open(self, run: RunState) -> None:
        """Offer the run's bands and test rows; only the run's owner queries automatically."""
        assert run.report is not None
        self._arrays = dict(run.report.arrays)
        n = len(self._arrays["z_true"])
        self._redshift = is_redshift(run.metadata)
        self.scatter.outlier = OUTLIER if self._redshift else None
        for plot in (self.scatter, self.density):
            plot.call_target(target_name(run.metadata))
        names = measured([str(b) for b in run.metadata.get("bands", ())])
        self._suspended = True
        self.bands.param.update(options=names, value=names, disabled=len(names) < 2)
        self.row.param.update(value=None, end=n - 1, disabled=False)
        self._suspended = False
        self._show_all(self._arrays)
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if run.recorded or self._page.owns_run:
            self._choose(n // 2)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.scatter.clear()
        self.density.clear()
        self._whole = self._held = self._row = self._before = None
        self.reading.object = ""
        self.reveal.ask("")
        self._suspended = True
        self.bands.disabled = self.row.disabled = True
        self.scatter.select(None)
        self._suspended = False

    def _build_controls(self) -> None:
        self.bands = pmui.CheckBoxGroup(
            label=tr("Inputs measured"), inline=True, disabled=True, margin=0
        )
        self.row = pmui.IntInput(
            label=tr("Row of the test set"),
            start=0,
            disabled=True,
            width=220,
            size="small",
            margin=(6, 0),
        )
        self.reading = text("")
        self.bands.param.watch(self._toggled, "value")
        self.row.param.watch(lambda e: self._typed(e.new), "value")
        self.reveal.watch(self._on_reveal)

    @property
    def _removed(self) -> list[str]:
        return [b for b in self.bands.options if b not in (self.bands.value or ())]

    def _toggled(self, _change: Any) -> None:
        if self._suspended:
            return
        off = self._removed
        if len(off) == len(self.bands.options):
            self._page.say(tr("Select at least one input."))
            self._warned = True
            return
        if self._warned:  # do not remove messages of other controls
            self._page.say("")
            self._warned = False
        self._held = None
        self.reveal.ask(self._question(), span=(1, 6, 0.1), start=2)
        self._page.ask("without", self._answered, off=off)
        if self.reveal.hidden:
            self._show_answer()
        else:
            self._ask_density()

    def _question(self) -> str:
        if not self._removed:
            return ""
        removed = ", ".join(self._removed)
        return tr("Without {bands}: by what factor will the RMSE grow?", bands=removed)

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        self._held = answer
        if not self._removed:
            self._whole = answer["metrics"]
        self._show_answer()
        if self._whole is None and self._removed:
            self._page.ask("without", self._answered_whole, off=[])

    def _answered_whole(self, answer: dict[str, np.ndarray]) -> None:
        self._whole = answer["metrics"]
        self._show_answer()

    def _on_reveal(self) -> None:
        """Show or hide the answer, as the question requires."""
        self._show_answer()
        self._ask_density()
        self._page.read(at_once=True)

    def _show_answer(self) -> None:
        """Show the model's answer; if it is to be guessed first, show the state without it."""
        if self._whole is not None and self._held is not None and self._removed:
            factor = float(self._held["metrics"][0] / self._whole[0])
            self.reveal.know(tr(GROWTH, factor=factor), factor)
        if self.reveal.hidden:
            self._show_all(self._arrays)
            self.reading.object = ""
        elif self._held is not None:
            self._show_all(self._held)
            self.reading.object = self._table() + self._verdict()

    def _show_all(self, arrays: dict[str, np.ndarray]) -> None:
        std = np.sqrt(sum(arrays[k] ** 2 for k in ("std_model", "std_noise", "std_input")))
        self.scatter.show(self._arrays["z_true"], arrays["z_mean"], std, arrays.get("pit"))

    def _pick(self, index: int) -> None:
        if not self._suspended:
            self._choose(index)

    def _typed(self, row: int | None) -> None:
        if not self._suspended and row is not None and row != self._row:
            self._choose(row)

    def _choose(self, row: int) -> None:
        self._row, self._before = row, None
        self._suspended = True
        self.row.value = row
        self.scatter.select(row)
        self._suspended = False
        self._ask_density()

    def _ask_density(self) -> None:
        if self._row is not None:
            off = [] if self.reveal.hidden else self._removed
            self._page.ask("density", self._show_density, row=self._row, off=off)

    def _show_density(self, answer: dict[str, np.ndarray]) -> None:
        assert self._row is not None
        whole = not self._removed or self.reveal.hidden
        if whole:
            self._before = (answer["grid"], answer["density"])
        self.density.show(
            answer["grid"],
            answer["density"],
            answer["components"],
            float(self._arrays["z_true"][self._row]),
            None if whole else self._before,
        )

    def _verdict(self) -> str:
        if self._whole is None or self._held is None or not self._removed or self.reveal.first:
            return ""  # the answer is shown with the question
        factor = float(self._held["metrics"][0] / self._whole[0])
        return f"<p role='note'><strong>{tr(GROWTH, factor=factor)}</strong></p>"

    def _table(self) -> str:
        assert self._held is not None
        rows = [(tr("every input measured"), self._whole)]
        if self._removed:
            without = tr("without {bands}", bands=", ".join(self._removed))
            rows.append((without, self._held["metrics"]))
        cells = {
            escape(label): [
                format_score(name, value)
                for name, value in zip(METRICS, values)
                if self._redshift or not is_relative(name)
            ]
            for label, values in rows
            if values is not None
        }
        names = [n for n in METRICS if self._redshift or not is_relative(n)]
        return html_table([heading(name) for name in names], cells.items())
