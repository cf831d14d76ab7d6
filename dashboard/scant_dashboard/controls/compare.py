"""Comparison of up to six runs: curves on shared axes, differing settings, metrics."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
import panel as pn

from scant.errors import NotFound
from scant.html_table import html_table
from scant.store import RunRecord
from scant_dashboard.live.decimate import keep
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.plots.theme import models, new_figure
from scant_dashboard.template import text
from scant_dashboard.translate import moment, tr

MAX_RUNS = 6
# Okabe and Ito's hues, each with its own dash: color alone must not identify a run.
LINE_STYLES = (
    ("#0072b2", "solid"),
    ("#d55e00", "dashed"),
    ("#009e73", "dotted"),
    ("#b8779d", "dotdash"),
    ("#808791", "dashdot"),
    ("#a67c00", [8, 2, 2, 2, 2, 2]),
)


class Comparison:
    """Curves, settings and metrics of the chosen runs."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self._styles: dict[str, int] = {}  # a run keeps its style while it is chosen
        self.panel = column(css=":host { gap: 14px; }", visible=False)

    def show(self, chosen: Sequence[str]) -> None:
        """Compare these runs; fewer than two hide the comparison."""
        runs = {}
        for run in chosen:
            try:
                runs[run] = self._page.hub.history(run)
            except NotFound as error:
                self._page.say(str(error), "warning")
        self._styles = {r: n for r, n in self._styles.items() if r in runs}
        for run in runs:
            free = set(range(MAX_RUNS)) - set(self._styles.values())
            self._styles.setdefault(run, min(free))
        self.panel.visible = len(runs) > 1
        self.panel.objects = self._parts(runs) if len(runs) > 1 else []

    def _parts(self, runs: dict[str, RunState]) -> list[Any]:
        titles = {run: f"{h.name}, {began(h.record)}" for run, h in runs.items()}
        figure = new_figure("compared", tr("step"), self._page.entry.objective, height=320)
        for run, history in runs.items():
            color, dash = LINE_STYLES[self._styles[run]]
            chosen = keep(history.trace.elbo, 1000)
            line = {"step": history.trace.step[chosen], "elbo": history.trace.elbo[chosen]}
            figure.line(
                "step", "elbo", source=models.ColumnDataSource(line),
                color=color, line_dash=dash, line_width=2.5, legend_label=titles[run],
            )  # fmt: skip
        figure.legend.location = "bottom_right"
        figure.legend.background_fill_alpha = 0.6
        return [
            text(f"<h3>{tr('Compared')}</h3>"),
            pn.pane.Bokeh(figure, sizing_mode="stretch_width"),
            text(_table(tr("Settings that differ"), titles, _settings(runs))),
            text(_table(tr("Metrics of the runs"), titles, _metrics(runs))),
        ]


def began(run: RunRecord) -> str:
    """Return when a run was started, which tells runs with the same name apart."""
    if run.demonstration:
        return tr("recorded demonstration")
    return moment(run.created)


def _settings(runs: dict[str, RunState]) -> dict[str, list[str]]:
    values = [dict(h.record.settings) | {"data": h.record.data} for h in runs.values()]
    names = dict.fromkeys(name for value in values for name in value)
    rows = {n: [str(value.get(n, "")) for value in values] for n in names}
    return {n: row for n, row in rows.items() if len(set(row)) > 1}


def _metrics(runs: dict[str, RunState]) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for column_at, history in enumerate(runs.values()):
        for metric in history.report.metrics if history.report else ():
            if metric.source == "run" and np.isfinite(metric.value):
                row = rows.setdefault(f"{metric.method}: {metric.name}", [""] * len(runs))
                row[column_at] = tr("{value:.4g}", value=metric.value)
    return rows


def _table(caption: str, titles: dict[str, str], rows: dict[str, list[str]]) -> str:
    if not rows:
        return f"<h4>{html.escape(caption)}</h4><p class='quiet'>{tr('None.')}</p>"
    cells = [(html.escape(n), [html.escape(cell) for cell in row]) for n, row in rows.items()]
    heads = [html.escape(title) for title in titles.values()]
    return f"<h4>{html.escape(caption)}</h4>{html_table(heads, cells)}"
