"""The metrics of a run with those of baselines, general tools and publications."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from scant.events import Metric, Report
from scant.html_table import html_table
from scant.verdict import best
from scant_dashboard.engine_text import translated
from scant_dashboard.live.run_state import OWN
from scant_dashboard.plots.base import NOTHING, DataView, View
from scant_dashboard.plots.metric_glossary import PERCENT, group_by_meaning
from scant_dashboard.template import text
from scant_dashboard.translate import as_number, later, tr

GROUPS = {
    "run": later("This run"),
    "baseline": later("Baselines, same rows"),
    "rival": later("General tools, same rows"),
    "published": later("Published"),
}


class MetricsTable(View):
    """Table of metrics by method, with the interface of a plot."""

    def __init__(self, title: str = later("Figures")) -> None:
        self.title = title
        self.alt = NOTHING
        self.figures: tuple[object, ...] = ()
        self.panel = text("")

    def show(self, metrics: Sequence[Metric], notes: Sequence[str] = ()) -> None:
        """Show the metrics, with standard deviations if known, and the report's notes below."""
        message = "".join(f"<p class='quiet'>{escape(translated(note))}</p>" for note in notes)
        self.panel.object = table(metrics) + message + meanings(metrics)
        self.alt = reading_of(metrics)

    def clear(self) -> None:
        """Remove the table."""
        self.panel.object, self.alt = "", NOTHING


def figures(*notes: str) -> DataView:
    """Return a view of a report's metrics; `notes` are appended to the report's notes.

    The notes refer to publications' data and are therefore omitted for a visitor's own table.
    """
    view = MetricsTable()

    def feed(data: Report, metadata: Mapping[str, Any]) -> None:
        added = () if metadata.get(OWN) else notes
        view.show(data.metrics, (*data.limits[:1], *data.notes, *added))

    return DataView(view, feed)


def table(metrics: Sequence[Metric]) -> str:
    """Return the metrics as HTML, grouped by source; those of a single method follow as a list."""
    methods = {m.name: {o.method for o in metrics if o.name == m.name} for m in metrics}
    shared = [name for name, having in methods.items() if len(having) > 1] or list(methods)
    alone = [m for m in metrics if m.name not in shared]
    cells = {(m.source, m.method, m.name): figure(m) for m in metrics}
    rows: list[tuple[str, list[str]] | str] = []
    for source, heading in GROUPS.items():
        result = dict.fromkeys(m.method for m in metrics if m.source == source)
        if result and list(result) != [heading.lower()]:
            rows.append(tr(heading))
        for method in result:
            values = [escape(cells.get((source, method, name), "")) for name in shared]
            # The heading states "published"; the name retains the data.
            named = heading if method == heading.lower() else method.replace("(published, ", "(")
            rows.append((escape(tr(named)), values))
    also = ", ".join(
        f"{symbol(m.name)} {figure(m)}{as_number('%' * in_percent(m.name))}" for m in alone
    )
    return html_table([column_head(name) for name in shared], rows) + (
        f"<p class='quiet'>{tr('Also of this run: {metrics}.', metrics=also)}</p>" if also else ""
    )


def reading_of(metrics: Sequence[Metric]) -> str:
    """Compare two metrics of the run with the best other method, or list two of its metrics."""
    messages = []
    for own in (m for m in metrics if m.source == "run"):
        other = best(metrics, own.name)
        if other is not None:
            messages.append(
                tr(
                    "{metric} {value} against {other} of {method}",
                    metric=tr(own.name),
                    value=figure(own),
                    other=figure(other),
                    method=tr(other.method),
                )
            )
    messages = messages or [f"{tr(m.name)} {figure(m)}" for m in metrics if m.source == "run"]
    return tr("This run: {metrics}.", metrics="; ".join(messages[:2])) if messages else NOTHING


def meanings(metrics: Sequence[Metric]) -> str:
    """Return the definitions of the metrics as a collapsed HTML list; "" if none is known."""
    lines = "".join(
        f"<li><strong>{'; '.join(symbol(n) for n in names)}</strong>: {escape(tr(message))}</li>"
        for names, message in group_by_meaning([m.name for m in metrics])
    )
    if not lines:
        return ""
    summary = tr("What these measure")
    return f"<details class='quiet'><summary>{summary}</summary><ul>{lines}</ul></details>"


def in_percent(name: str) -> bool:
    """Whether a metric is given in percent."""
    return name.startswith(PERCENT)


def column_head(name: str) -> str:
    """Return the head of a metric's column as HTML, with its unit."""
    return symbol(name) + (" (%)" if in_percent(name) and "%)" not in name else "")


def symbol(name: str) -> str:
    """Return a metric's name as HTML, translated, with text after an underscore as subscript."""
    lowered = re.sub(r"_([\w.]+)", r"<sub>\1</sub>", escape(tr(name)))
    return lowered.replace("sigma", "σ")


def comparison(rows: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """Return a small HTML table with labeled rows and columns `names`."""
    cells = [(escape(label), [escape(v) for v in values]) for label, values in rows.items()]
    return html_table([symbol(name) for name in names], cells)


def figure(metric: Metric) -> str:
    """Write a value with four significant digits, and its spread with the same decimals."""
    value = metric.value
    if not math.isfinite(value):
        return str(value)
    if metric.spread is None and value.is_integer() and abs(value) >= 100:
        return as_number(f"{value:.0f}")  # a count, or 100%
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    message = f"{value:.{min(digits, 6)}f}"
    if metric.spread is not None:
        message = f"{message} ± {metric.spread:.{min(digits, 6)}f}"
    return as_number(message)
