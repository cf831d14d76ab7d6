"""The posterior of the average over a box that the visitor draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from bokeh.events import SelectionGeometry

from scant.metrics import Z_95
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.question_view import QuestionView
from scant_dashboard.page_parts.widgets import controls_row
from scant_dashboard.pages.aggregation.field import Field
from scant_dashboard.plots.density import DensityPlot
from scant_dashboard.template import text
from scant_dashboard.translate import enumerated, later, tr

HELP = later(
    "Draw a box on the posterior mean, or type its bounds, to see the posterior of its average."
)


OUTSIDE = later(
    "This box lies outside the data, which have {ranges}: the model extrapolates there, and its "
    "interval rests on the kernel alone."
)
PARTLY_OUTSIDE = later(
    "Part of this box lies outside the data, which have {ranges}: the model extrapolates there, "
    "and its interval rests on the kernel alone."
)
ENDS = (later("{name} from"), later("{name} to"))


class BoxQuery(QuestionView):
    """Query of the average over a box or an interval, for any task."""

    title = later("Ask for the average over a box of your own")
    prompt = later("Draw a box for its average.")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._metadata: dict[str, Any] = {}
        self._suspended = False
        self._warning = ""
        self.field = Field(tr("Draw a box"), select=True)
        self.density = DensityPlot(tr("average"), title=tr("Its average"), before="")
        super().__init__(self.field, self.density)
        self.task = pmui.Select(label=tr("Task"), options=[], disabled=True, width=240, margin=0)
        self.bounds = [
            pmui.FloatInput(
                label=tr(name, name=""),
                disabled=True,
                width=150,
                margin=0,
                visible=False,
                format="0.[0000]",
            )
            for name in ENDS * 2
        ]
        self.reading = text(f"<p>{tr(HELP)}</p>")
        self.task.param.watch(self._on_task, "value")
        for bound in self.bounds:
            bound.param.watch(lambda _: self._ask(), "value")
        for plot in self.field.figures:
            plot.on_event(SelectionGeometry, self._on_selection)
        self.panel = pn.Column(
            controls_row(self.task, *self.bounds),
            self.reading,
            self.field.panel,
            self.density.panel,
            stylesheets=[":host { gap: 10px; max-height: none !important; }"],
            sizing_mode="stretch_width",
            margin=0,
        )

    def open(self, run: RunState) -> None:
        """Offer the run's tasks; for a recording or an own run, query the middle."""
        assert run.report is not None
        self._metadata = dict(run.metadata)
        self.field.show(run.report.arrays, self._metadata)
        self._suspended = True
        self.task.param.update(
            options=list(self._metadata["tasks"]), value=self._metadata["scarce"], disabled=False
        )
        dims = self._metadata["dims"]
        for i, bound in enumerate(self.bounds):
            used = i // 2 < len(dims) <= 2
            low, high = self._metadata["range"][i // 2] if used else (0.0, 1.0)
            third = (high - low) / 3
            bound.param.update(
                visible=used,
                disabled=not used,
                label=tr(ENDS[i % 2], name=dims[i // 2] if used else ""),
                value=_round(low + third if i % 2 == 0 else high - third, third),
            )
        self._suspended = False
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        if run.recorded or self._page.owns_run:
            self._ask()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.field.clear(run)
        self.density.clear()
        self.reading.object = f"<p>{tr(HELP)}</p>"
        self._suspended = True
        self.task.disabled = True
        for bound in self.bounds:
            bound.disabled = True
        self._suspended = False

    def _on_task(self, change: Any) -> None:
        if self._suspended:
            return
        self._page.ask("field", self._show_field, task=change.new)
        self._ask()

    def _show_field(self, answer: dict[str, np.ndarray]) -> None:
        self.field.show(answer, self._metadata)

    def _on_selection(self, event: Any) -> None:
        shape = event.geometry
        if not event.final or shape.get("type") != "rect":
            return
        corners = [shape.get(name) for name in ("x0", "x1", "y0", "y1")]
        self._suspended = True
        for bound, value in zip(self.bounds, corners):
            if bound.visible and value is not None:
                bound.value = float(f"{value:.6g}")
        self._suspended = False
        self._ask()

    def _ask(self) -> None:
        if self._suspended or not self._metadata:
            return
        bounds = [bound.value for bound in self.bounds if bound.visible]
        given = [float(value) for value in bounds if value is not None]
        if not given or len(given) < len(bounds):
            return
        intervals = [sorted(pair) for pair in zip(given[::2], given[1::2])]
        lo, hi = [a for a, _ in intervals], [b for _, b in intervals]
        self.field.mark(lo, hi)
        self._warning = range_warning(lo, hi, self._metadata["range"], self._metadata["dims"])
        self._page.ask("box", self._answered, lo=lo, hi=hi, task=self.task.value)

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        self.density.show(answer["grid"], answer["density"])
        mean, std, new = (float(v) for v in answer["moments"])
        average = tr(
            "<strong>{mean:.4g} ± {half:.2g}</strong> is the average over the box (95% interval); "
            "for a new observation of it the interval is ± {new:.2g}.",
            mean=mean, half=Z_95 * std, new=Z_95 * new,
        )  # fmt: skip
        self.reading.object = (
            f"<p role='note'>{average}</p>"
            + (f"<p class='message warning' role='note'>{escape(self._warning)}</p>"
               if self._warning else "")
        )  # fmt: skip


def range_warning(
    lo: Sequence[float],
    hi: Sequence[float],
    data: Sequence[Sequence[float]],
    dims: Sequence[str],
) -> str:
    """Return a warning if a box exceeds the range of the data, otherwise ""."""
    outside = [
        tr("{name} from {first:.4g} to {last:.4g}", name=dim, first=first, last=last)
        for a, b, (first, last), dim in zip(lo, hi, data, dims)
        if a < first - 1e-9 * (last - first) or b > last + 1e-9 * (last - first)
    ]
    if not outside:
        return ""
    disjoint = any(b < first or a > last for a, b, (first, last) in zip(lo, hi, data))
    message = OUTSIDE if disjoint else PARTLY_OUTSIDE
    return tr(message, ranges=enumerated(outside))


def _round(value: float, width: float) -> float:
    """Round a bound to about a hundredth of the box's width."""
    return float(round(value, max(0, 1 - math.floor(math.log10(width))))) if width > 0 else value
