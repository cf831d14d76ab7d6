"""Linked selection: rows drawn round in one figure are marked in the others, with their metrics.

HoloViews links the figures. It is imported when the visitor comes near: no page opens later by it.
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
from scant_dashboard.plots.base import BESIDE, View
from scant_dashboard.plots.table import comparison, figure, meanings
from scant_dashboard.plots.theme import BLUE, GRAY, dress, models
from scant_dashboard.template import text

TITLE = "Select rows"
HEIGHT = 620  # pixels that the section takes, about
NONE = "No row was held out, so there is none to select."
HELP = (
    "Drag a box in a figure: the same rows are marked in the others, and the table is of them "
    "alone. Reset, in a figure's tools, takes the selection back."
)
LOOKS = {
    "size": 5,
    "responsive": True,
    "height": 300,
    "tools": ["box_select", "lasso_select"],
    "default_tools": ["pan", "reset", "save"],
    "active_tools": ["box_select"],  # a drag draws a box at once
}
Measures = Callable[[pd.DataFrame], dict[str, float]]


class SelectRows(View):
    """Figures of the held-out rows, linked, and the metrics of those that are selected.

    Args:
        page: The page that it stands on.
        rows: The held-out rows of a run, a column each of what the figures show.
        axes: The two columns of each figure, of these rows.
        measures: Metrics of some of the rows, by name.
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
        self._drawn: list[Any] = []  # the Bokeh figures that HoloViews has made
        self.links: Any = None  # once there are rows: what knows the selection
        self.alt = NONE
        self.table = text("")
        self.place = pn.Column(stylesheets=[BESIDE], sizing_mode="stretch_width", margin=0)
        self.panel = pn.Column(
            text(f"<p class='quiet'>{HELP}</p>"),
            self.place,
            self.table,
            sizing_mode="stretch_width",
            margin=0,
        )

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self.place.objects, self._drawn = [], []
        self.table.object, self.alt = "", NONE

    def open(self, run: RunState) -> None:
        """Draw the rows of a run that has ended; all of them count until some are selected."""
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
        self.place.objects = [
            pn.pane.HoloViews(
                links(hv.Points(data, [x, y]).opts(hooks=[self._dress], **LOOKS)),
                sizing_mode="stretch_width",
                linked_axes=False,
                margin=0,
            )
            for x, y in self._axes(self._frame)
        ]
        frame = self._frame

        def tell() -> None:
            if self._frame is frame:  # no other run was opened meanwhile
                self._tell(links.filter(data).data)

        # HoloViews says so between two turns of the document, where nothing of it may be written.
        links.param.watch(lambda _: self._page.turn(tell), "selection_expr")
        self._tell(frame)

    def say(self) -> None:
        """Tell the current reading to a screen reader, on the figures themselves."""
        for drawn in self._drawn:
            drawn.html_attributes = {"role": "img", "aria-label": f"{self.title}. {self.alt}"}

    def _dress(self, plot: Any, element: Any) -> None:
        """Give a figure of HoloViews the looks of ours."""
        if plot.state not in self._drawn:
            dress(plot.state)
            tools = [t for t in plot.state.tools if not isinstance(t, models.WheelZoomTool)]
            plot.state.output_backend = "canvas"  # WebGL makes browsers complain in the console
            plot.state.toolbar.update(active_scroll=None, tools=tools)  # a wheel scrolls the page
            self._drawn.append(plot.state)
            self.say()

    def _tell(self, chosen: pd.DataFrame) -> None:
        """The metrics of the rows that are selected, beside those of all."""
        rows = {"selected": chosen, "all": self._frame}
        scores = {name: {"rows": float(len(f)), **self._of(f)} for name, f in rows.items()}
        names = list(scores["all"])
        cells = {
            label: [_cell(name, result.get(name, math.nan)) for name in names]
            for label, result in scores.items()
        }
        meant = meanings([Metric("", name, 0.0) for name in names[1:]])
        self.table.object = comparison(cells, names) + meant
        values = "; ".join(f"{n} {c}" for n, c in zip(names[1:], cells["selected"][1:]))
        self.alt = f"{len(chosen):,} of {len(self._frame):,} rows selected: {values}."
        self._page.read(at_once=True)

    def _of(self, rows: pd.DataFrame) -> Mapping[str, float]:
        return self._measures(rows) if len(rows) else {}


def _cell(name: str, value: float) -> str:
    """A figure of the table; a dash where too few rows are selected to tell."""
    if name == "rows":
        return f"{value:,.0f}"
    return figure(Metric("", name, value)) if math.isfinite(value) else "–"
