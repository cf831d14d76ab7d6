"""Linked selection: rows selected in one figure are marked in the others, with their metrics.

HoloViews links the figures. It is imported once the visitor scrolls near, so that pages open
quickly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import panel as pn

from scant.events import Metric
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.plots.base import SIDE_BY_SIDE, View
from scant_dashboard.plots.table import comparison, figure, meanings
from scant_dashboard.plots.theme import BLUE, GRAY, THEME, apply_style, models, name_tools
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

TITLE = later("Select rows")
HEIGHT = 620  # approximate height of the section in pixels
NONE = later("No row was held out, so there is none to select.")
HELP = later(
    "Drag a box in a figure: the same rows are marked in the others, and the table shows their "
    "scores. Reset, among a figure's tools, clears the selection."
)
POINT_OPTIONS = {
    "size": 5,
    "responsive": True,
    "height": 300,
    "tools": ["box_select", "lasso_select"],
    "default_tools": ["pan", "reset", "save"],
    "active_tools": ["box_select"],  # a drag draws a box at once
}
Measures = Callable[[pd.DataFrame], dict[str, float]]


class SelectRows(View):
    """Linked figures of the held-out rows, and the metrics of the selected ones.

    Args:
        page: The page of the view.
        rows: Returns the held-out rows of a run, with a column for each quantity shown.
        axes: Returns the pair of columns of each figure.
        measures: Computes metrics of a selection, by name.
    """

    title = TITLE

    def __init__(
        self,
        page: PageContext,
        rows: Callable[[RunState], pd.DataFrame],
        axes: Callable[[pd.DataFrame], Sequence[tuple[str, str]]],
        measures: Measures,
    ) -> None:
        self._page, self._rows, self._axes, self._measures = page, rows, axes, measures
        self._frame = pd.DataFrame()
        self._figures: list[Any] = []  # the Bokeh figures made by HoloViews
        self.links: Any = None  # the `link_selections` instance, once there are rows
        self.alt = tr(NONE)
        self.table = text("")
        self.container = pn.Column(
            stylesheets=[SIDE_BY_SIDE], sizing_mode="stretch_width", margin=0
        )
        self.panel = pn.Column(
            text(f"<p class='quiet'>{tr(HELP)}</p>"),
            self.container,
            self.table,
            sizing_mode="stretch_width",
            margin=0,
        )

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.container.objects, self._figures = [], []
        self.table.object, self.alt = "", tr(NONE)

    def open(self, run: RunState) -> None:
        """Draw the rows of a finished run; initially the metrics are those of all rows."""
        self.clear(run)
        self._frame = self._rows(run)
        if not len(self._frame):
            return
        import holoviews as hv
        import holoviews.plotting.bokeh  # registers the backend, and puts nothing on the page

        hv.Store.set_current_backend("bokeh")
        data = hv.Dataset(self._frame.assign(row=range(len(self._frame))))
        self.links = links = hv.link_selections.instance(
            index_cols=["row"], selected_color=BLUE, unselected_color=GRAY, unselected_alpha=0.2
        )
        self.container.objects = [
            pn.pane.HoloViews(
                links(hv.Points(data, [x, y]).opts(hooks=[self._style], **POINT_OPTIONS)),
                sizing_mode="stretch_width",
                linked_axes=False,
                theme=THEME,
                margin=0,
            )
            for x, y in self._axes(self._frame)
        ]
        frame = self._frame

        def show_selection() -> None:
            if self._frame is frame:  # no other run was opened meanwhile
                self._show_metrics(links.filter(data).data)

        # HoloViews notifies outside the document's lock, where nothing may be written to it.
        links.param.watch(lambda _: self._page.turn(show_selection), "selection_expr")
        self._show_metrics(frame)

    def say(self) -> None:
        """Put the text alternative on the figures."""
        for fig in self._figures:
            fig.html_attributes = {"role": "img", "aria-label": f"{tr(self.title)}. {self.alt}"}

    def _style(self, plot: Any, element: Any) -> None:
        """Style a figure of HoloViews like ours."""
        if plot.state not in self._figures:
            apply_style(plot.state)
            name_tools(plot.state)
            tools = [t for t in plot.state.tools if not isinstance(t, models.WheelZoomTool)]
            plot.state.output_backend = "canvas"  # WebGL makes browsers complain in the console
            plot.state.toolbar.update(active_scroll=None, tools=tools)  # a wheel scrolls the page
            self._figures.append(plot.state)
            self.say()

    def _show_metrics(self, chosen: pd.DataFrame) -> None:
        """Show the metrics of the selected rows next to those of all rows."""
        selected, every = tr("selected"), tr("all")
        rows = {selected: chosen, every: self._frame}
        scores = {name: {"rows": float(len(f)), **self._score(f)} for name, f in rows.items()}
        names = list(scores[every])
        cells = {
            label: [_cell(name, result.get(name, math.nan)) for name in names]
            for label, result in scores.items()
        }
        glossary = meanings([Metric("", name, 0.0) for name in names[1:]])
        self.table.object = comparison(cells, [tr("rows"), *names[1:]]) + glossary
        values = "; ".join(f"{tr(n)} {c}" for n, c in zip(names[1:], cells[selected][1:]))
        self.alt = tr(
            "{selected:,} of {rows:,} rows selected: {values}.",
            selected=len(chosen),
            rows=len(self._frame),
            values=values,
        )
        self._page.read(at_once=True)

    def _score(self, rows: pd.DataFrame) -> Mapping[str, float]:
        return self._measures(rows) if len(rows) else {}


def _cell(name: str, value: float) -> str:
    """Format a cell of the table; a dash if the metric needs more rows."""
    if name == "rows":
        return tr("{n:,.0f}", n=value)
    return figure(Metric("", name, value)) if math.isfinite(value) else "–"
