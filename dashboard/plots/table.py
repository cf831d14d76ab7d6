"""The figures of a run beside its baselines and beside what was published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import panel as pn

from engine.events import Metric

_GROUPS = (("run", "This run"), ("baseline", "Baselines, same split"), ("published", "Published"))


class MetricsTable:
    """Methods down, metrics across, in the form of a plot (title, alt, panel, clear)."""

    def __init__(self, title: str = "Figures") -> None:
        self.title = title
        self.alt = "Nothing to show yet."
        self.figures: tuple[object, ...] = ()
        self.panel = pn.pane.HTML("", sizing_mode="stretch_width", styles={"overflow-x": "auto"})

    def show(self, metrics: Sequence[Metric], notes: Sequence[str] = ()) -> None:
        """Show the metrics with spread where known, and the report's notes beneath."""
        self.panel.object = table(metrics) + "".join(
            f'<p class="scant-note">{escape(note)}</p>' for note in notes
        )
        own = [m for m in metrics if m.source == "run"]
        self.alt = "This run: " + ", ".join(f"{m.name} {figure(m)}" for m in own) + "."

    def clear(self) -> None:
        """Forget what is shown."""
        self.panel.object = ""
        self.alt = "Nothing to show yet."


def table(metrics: Sequence[Metric]) -> str:
    """The metrics as an HTML table, grouped by source; every word escaped."""
    names = list(dict.fromkeys(m.name for m in metrics))
    cells = {(m.source, m.method, m.name): figure(m) for m in metrics}
    head = "".join(f'<th scope="col">{escape(n)}</th>' for n in names)
    body = ""
    for source, heading in _GROUPS:
        methods = dict.fromkeys(m.method for m in metrics if m.source == source)
        if methods:
            span = f'colspan="{len(names) + 1}" scope="rowgroup"'
            body += f'<tr class="group"><th {span}>{heading}</th></tr>'
        for method in methods:
            row = "".join(f"<td>{cells.get((source, method, n), '')}</td>" for n in names)
            body += f'<tr class="{source}"><th scope="row">{escape(method)}</th>{row}</tr>'
    return (
        f'<table class="scant-metrics"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def figure(metric: Metric) -> str:
    """A value with its spread, to four significant digits."""
    if not math.isfinite(metric.value):
        return str(metric.value)
    value = f"{metric.value:.4g}"
    return value if metric.spread is None else f"{value} ± {metric.spread:.1g}"
