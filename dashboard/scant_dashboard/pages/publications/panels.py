"""Panels of the figures of publications: bars, curves and scatter plots.

Filled marks are ours, hollow ones the publication's. Tick labels are made here: a page without a
session cannot compile Bokeh's formatter for languages other than English.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from scant.reproduce.figures import BARS, CURVES, SCATTER
from scant.reproduce.tables import LOWER
from scant_dashboard.plots.theme import (
    BLUE,
    DASHES,
    DEVIATION,
    GRAY,
    GROUPS,
    MARKERS,
    VERMILION,
    Figure,
    models,
    new_figure,
)
from scant_dashboard.translate import as_number, tr

FILLED, HOLLOW = dict(zip(MARKERS, "●▲■◆▼★")), dict(zip(MARKERS, "○△□◇▽☆"))  # in legends
BAR_LABEL = 24  # characters in a line of a bar's label
LINE, MARGIN = 15, 12  # pixels of such a line, and between bars
HEIGHT = 280  # pixels of a panel of curves
INTERVALS = 4  # between ticks, about
UNCERTAINTY = "deviation of"  # such metrics are quantities: neither more nor less is better
WIDE = 8  # ratio of the largest to the smallest of uneven numbers above which their axis is log
Styles = dict[str, tuple[str, str, str]]  # color, marker and dash of each method
Legend = list[tuple[str, str, str]]  # color, sign and name


class Panels(NamedTuple):
    """How the panels of a figure are drawn.

    Attributes:
        draw: Returns the panel of rows, with the styles of the figure's methods.
        legend: Returns the legend of a figure's rows.
        height: Returns the pixels of a panel.
        tabled: Whether the table below the figure has what the panels show.
    """

    draw: Callable[[pd.DataFrame, Styles], Figure]
    legend: Callable[[pd.DataFrame], Legend]
    height: Callable[[pd.DataFrame], int]
    tabled: bool = True


def _bar_labels(rows: pd.DataFrame) -> list[str]:
    return ["\n".join(textwrap.wrap(one, BAR_LABEL)) for one in rows["series"]]


def _bars_height(rows: pd.DataFrame) -> int:
    lines = max(label.count("\n") + 1 for label in _bar_labels(rows))
    return 80 + len(rows) * (LINE * lines + MARGIN)


def _bars(rows: pd.DataFrame, _: Styles) -> Figure:
    """Draw a bar for each method, with error bars and the printed values."""
    labels = _bar_labels(rows)
    factors = models.FactorRange(factors=labels[::-1])
    plot = new_figure("published", _scored(rows), height=_bars_height(rows), y_range=factors,
                      min_border_left=0)  # fmt: skip
    bars = plot.hbar(y="at", right="value", height=0.6, color=BLUE, fill_alpha=0.4,
                     source=_source(rows, labels, "value", "spread"))  # fmt: skip
    plot.segment("low", "at", "high", "at", source=bars.data_source, line_width=2, color=BLUE)
    printed = _printed(rows, labels)
    plot.segment("low", "at", "high", "at", source=printed, line_width=1.5, color=VERMILION)
    marks = plot.scatter("value", "at", source=printed, size=11, marker="diamond",
                         color=VERMILION, fill_alpha=0, line_width=2)  # fmt: skip
    _ticks(plot.xaxis[0], _limits(plot, "x_range", rows, start=0.0))
    plot.xgrid.visible = True
    plot.ygrid.visible = False
    _tips(plot, [bars, marks])
    return plot


def _curves(rows: pd.DataFrame, styles: Styles) -> Figure:
    """Draw a line for each method, a flat one if it has no number, and the printed values."""
    numbers = np.unique(rows["x"].dropna())
    low, high = numbers[0], numbers[-1]
    even = np.allclose(np.diff(numbers, 2), 0)
    log = low > 0 and high / low > WIDE and not even
    pad = (high / low) ** 0.06 if log else 0.06 * (high - low or high or 1)
    ends = (low / pad, high * pad) if log else (low - pad, high + pad)
    plot = new_figure("published", tr(rows["axis"].iloc[0]), _scored(rows), height=HEIGHT,
                      x_axis_type="log" if log else "linear",
                      x_range=models.Range1d(*map(float, ends)))  # fmt: skip
    marks = []
    for series, own in rows.groupby("series", sort=False):
        color, marker, dash = styles[str(series)]
        at = own[own["x"].notna()]
        line = _source(at, list(at["x"]), "value", "spread")
        plot.line("at", "value", source=line, color=color, line_width=2, line_dash=dash)
        plot.segment("at", "low", "at", "high", source=line, color=color, line_width=1.5)
        marks.append(plot.scatter("at", "value", source=line, color=color, marker=marker, size=8))
        flat = own[own["x"].isna() & own["value"].notna()]
        for _, row in flat.iterrows():
            ends_of = _source(pd.DataFrame([row, row]), list(ends), "value", "spread")
            marks.append(plot.line("at", "value", source=ends_of, color=color, line_width=2,
                                   line_dash="dotted"))  # fmt: skip
        printed = own["printed"].notna() & own["x"].notna()
        if printed.any():
            theirs = _printed(own, list(own["x"]))
            plot.segment("at", "low", "at", "high", source=theirs, color=color, line_width=1)
            marks.append(plot.scatter("at", "value", source=theirs, color=color, marker=marker,
                                      size=12, fill_alpha=0, line_width=2))  # fmt: skip
    _ticks(plot.yaxis[0], _limits(plot, "y_range", rows))
    _label(plot.xaxis[0], numbers)
    plot.xaxis.major_label_policy = models.NoOverlap()
    _tips(plot, marks)
    return plot


def _scatter(rows: pd.DataFrame, _: Styles) -> Figure:
    """Draw predictions against the truth, colored by variance on a log scale of the panel."""
    axes = (tr(rows[name].iloc[0]) for name in ("axis", "metric"))
    plot = new_figure("published", *axes, height=HEIGHT)
    # Both axes have the range of truth and predictions.
    both = rows.assign(spread=0.0, printed=rows["x"], printed_spread=0.0)
    ends = _limits(plot, "x_range", both)
    plot.y_range = plot.x_range
    plot.line(ends, ends, color=GRAY, line_dash="dashed")
    level = np.log(rows["spread"].to_numpy())
    shade = np.digitize(level, np.linspace(level.min(), level.max(), len(DEVIATION) + 1)[1:-1])
    source = _source(rows, list(rows["x"]), "value", "spread")
    source.data["color"] = [DEVIATION[k] for k in shade]
    marks = plot.scatter("at", "value", source=source, color="color", size=5, fill_alpha=0.6)
    for axis in (plot.xaxis[0], plot.yaxis[0]):
        _ticks(axis, ends)
    _tips(plot, [marks])
    return plot


def _scored(rows: pd.DataFrame) -> str:
    metric = str(rows["metric"].iloc[0])
    if metric.startswith(UNCERTAINTY):
        return metric
    if metric.startswith(LOWER):
        return tr("{score} (lower is better)", score=metric)
    return tr("{score} (higher is better)", score=metric)


def _source(rows: pd.DataFrame, at: list[Any], value: str, spread: str) -> Any:
    """Return means with the ends of their error bars, and what a tooltip says."""
    deviation = rows[spread].fillna(0)
    messages = [
        as_number(f"{v:.4g}" + (f" ± {s:.2g}" if s else "")) for v, s in zip(rows[value], deviation)
    ]
    names = [series or tr("ours") for series in rows["series"]]
    if value == "printed":
        names = [f"{name} ({tr('published')})" for name in names]
    return models.ColumnDataSource(
        {"at": at, "value": list(rows[value]), "low": list(rows[value] - deviation),
         "high": list(rows[value] + deviation), "name": names, "tip": messages}
    )  # fmt: skip


def _printed(rows: pd.DataFrame, at: list[Any]) -> Any:
    has = rows["printed"].notna()
    return _source(rows[has], [a for a, h in zip(at, has) if h], "printed", "printed_spread")


def _limits(
    plot: Figure, name: str, rows: pd.DataFrame, start: float | None = None
) -> tuple[float, float]:
    """Set a range that includes all values with their error bars, and `start`; return its ends."""
    pairs = [("value", "spread"), ("printed", "printed_spread")]
    ends = [rows[v] + sign * rows[s].fillna(0) for v, s in pairs for sign in (-1, 1)]
    values = pd.concat(ends).dropna().tolist() + ([] if start is None else [start])
    low, high = min(values), max(values)
    pad = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    low, high = low - pad * (low != start), high + pad * (high != start)
    setattr(plot, name, models.Range1d(low, high))
    return low, high


def _ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Label round numbers within limits."""
    rough = (limits[1] - limits[0]) / INTERVALS
    unit = 10.0 ** floor(log10(rough))
    step = unit * min((1, 2, 5, 10), key=lambda factor: abs(factor - rough / unit))
    first, last = np.ceil(limits[0] / step), np.floor(limits[1] / step)
    _label(axis, np.arange(first, last + 1) * step)


def _label(axis: Any, values: np.ndarray) -> None:
    """Label these values on an axis as the session's language writes them."""
    ticks = [float(f"{value:.10g}") + 0.0 for value in values]  # no negative zero
    axis.ticker = models.FixedTicker(ticks=ticks)
    axis.formatter = models.BasicTickFormatter()
    axis.major_label_overrides = {tick: as_number(f"{tick:,.10g}") for tick in ticks}


def _tips(plot: Figure, renderers: list[Any]) -> None:
    plot.add_tools(models.HoverTool(renderers=renderers, tooltips=[("", "@name"), ("", "@tip")]))


def styles_of(rows: pd.DataFrame) -> Styles:
    """Return color, marker and dash of each method; the same in all panels."""
    n = len(GROUPS)
    return {
        series: (GROUPS[k % n], MARKERS[(k + k // n) % n], DASHES[k // n % n])
        for k, series in enumerate(dict.fromkeys(rows["series"]))
    }


def _bar_legend(rows: pd.DataFrame) -> Legend:
    ours = (BLUE, FILLED["square"], tr("ours, with the deviation over repeats"))
    return [ours, *[(VERMILION, HOLLOW["diamond"], tr("published"))] * _any_printed(rows)]


def _scatter_legend(_: pd.DataFrame) -> Legend:
    names = tr("smallest predictive variance of a panel"), tr("largest, on a log scale")
    return [(color, "●", name) for color, name in zip((DEVIATION[0], DEVIATION[-1]), names)]


def _curve_legend(rows: pd.DataFrame) -> Legend:
    ours = [
        (color, FILLED[marker], series or tr("ours"))  # a name may be a number alone: "Q_H=2"
        for series, (color, marker, _) in styles_of(rows).items()
    ]
    return ours + [(GRAY, HOLLOW["circle"], tr("hollow: published"))] * _any_printed(rows)


def _any_printed(rows: pd.DataFrame) -> bool:
    return bool(rows["printed"].notna().any())


def _usual_height(_: pd.DataFrame) -> int:
    return HEIGHT


PANELS: dict[str, Panels] = {
    BARS: Panels(_bars, _bar_legend, _bars_height),
    CURVES: Panels(_curves, _curve_legend, _usual_height),
    SCATTER: Panels(_scatter, _scatter_legend, _usual_height, tabled=False),
}
