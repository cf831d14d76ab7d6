"""A figure of a publication, drawn from our results: bars, curves, scatter plots, or a grid.

Filled marks are ours, hollow ones the publication's. Tick labels are made here: a page without a
session cannot compile Bokeh's formatter for languages other than English.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape
from math import floor, log10
from typing import Any

import numpy as np
import pandas as pd

from scant.reproduce.figures import BARS, GRIDS, HINTON, SCATTER, definitions_of, figure_rows
from scant.reproduce.items import Item
from scant.reproduce.tables import LOWER
from scant_dashboard.pages.publications.grids import grid
from scant_dashboard.plots.base import Plot
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
COLUMNS = 3  # panels side by side; more metrics are placed two by two
HEIGHT = 280  # pixels of a panel of curves
INTERVALS = 4  # between ticks, about
UNCERTAINTY = "deviation of"  # such metrics are quantities: neither more nor less is better
WIDE = 8  # ratio of the largest to the smallest of uneven numbers above which their axis is log
SEPARATOR = ", "  # between data set and metric
Styles = dict[str, tuple[str, str, str]]  # color, marker and dash of each method
Legend = list[tuple[str, str, str]]  # color, sign and name


def plot_of(item: Item, scale: float = 1.0) -> Plot:
    """Return a figure that is drawn, as a plot.

    Args:
        item: A figure that is drawn.
        scale: Size of type, relative to the usual one.
    """
    is_grid = definitions_of(item)[0].kind in GRIDS
    return grid(item, scale) if is_grid else PublishedFigure(item, scale)


def drawing(item: Item, scale: float = 1.0) -> str:
    """Return a figure's legend, and a place for each of its panels, which `figures.js` draws.

    Args:
        item: A figure that is drawn.
        scale: Size of type, relative to the usual one.
    """
    kind = definitions_of(item)[0].kind
    if kind in GRIDS:
        return _grid_place(item, scale)
    rows = figure_rows(item)
    printed = set(rows["series"][rows["printed"].notna()])
    if kind == SCATTER:
        legend = _scatter_marks()
    else:
        legend = _bar_marks(printed) if kind == BARS else _curve_marks(_styles(rows), printed)
    places = ""
    for name, panel in _panels(rows):
        alt = f"{tr(item.title)}: {name}"
        if kind != SCATTER:  # the table has no single predictions
            alt = tr("{title}: {panel}. The table below has the numbers.",
                     title=tr(item.title), panel=name)  # fmt: skip
        places += _place((_bars_height(panel) if kind == BARS else HEIGHT) * scale, alt)
    metrics = rows.groupby("experiment")["metric"].nunique().max()
    columns = min(rows["panel"].nunique(), metrics if 1 < metrics <= COLUMNS else 2)
    return f"{_legend(legend)}{_panels_of(item, columns, places)}"


def _grid_place(item: Item, scale: float) -> str:
    """Return a place for a figure that has its legend within it; it scrolls on narrow screens."""
    plot = grid(item, scale)
    place = _place(plot.figures[0].height or HEIGHT * scale, plot.alt, " class='wide'")
    signs = tr("White is positive, black negative.")
    about = f"<p class='quiet'>{signs}</p>" if definitions_of(item)[0].kind == HINTON else ""
    return f"{about}{_panels_of(item, 2, place)}"


def _place(height: float, alt: str, attributes: str = "") -> str:
    return (
        f"<div{attributes}><div class='plot' data-key='' style='min-height:{height:.0f}px' "
        f"role='img' aria-label='{escape(alt, quote=True)}'></div></div>"
    )


def _panels_of(item: Item, columns: int, places: str) -> str:
    name = f"{item.publication} {item.name}"
    return f"<div class='panels' style='--columns:{columns}' data-figures='{name}'>{places}</div>"


class PublishedFigure(Plot):
    """A figure with a panel for each data set and metric.

    Args:
        item: A figure that is not only a table.
        scale: Size of type, relative to the usual one.
    """

    def __init__(self, item: Item, scale: float = 1.0) -> None:
        rows, kind, figures = figure_rows(item), definitions_of(item)[0].kind, []
        styles = _styles(rows)
        for name, panel in _panels(rows):
            if kind == SCATTER:
                plot = _scatter(panel)
            else:
                plot = _bars(panel) if kind == BARS else _curves(panel, styles)
            plot.height = round(plot.height * scale)
            plot.title.text = name.rpartition(SEPARATOR)[0].rpartition(": ")[2]
            plot.title.text_font_size = "1em"
            figures.append(plot)
        super().__init__(item.title, *figures)


def _panels(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield name and rows of each panel: the data set, if there are several, and the metric."""
    several = rows["experiment"].nunique() > 1
    for _, panel in rows.groupby("panel"):
        experiment, metric = panel[["experiment", "metric"]].iloc[0]
        yield (f"{experiment}{SEPARATOR}{metric}" if several else metric), panel


def _bar_labels(rows: pd.DataFrame) -> list[str]:
    return ["\n".join(textwrap.wrap(one, BAR_LABEL)) for one in rows["series"]]


def _bars_height(rows: pd.DataFrame) -> int:
    lines = max(label.count("\n") + 1 for label in _bar_labels(rows))
    return 80 + len(rows) * (LINE * lines + MARGIN)


def _bars(rows: pd.DataFrame) -> Figure:
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


def _scatter(rows: pd.DataFrame) -> Figure:
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


def _styles(rows: pd.DataFrame) -> Styles:
    """Return color, marker and dash of each method; the same in all panels."""
    n = len(GROUPS)
    return {
        series: (GROUPS[k % n], MARKERS[(k + k // n) % n], DASHES[k // n % n])
        for k, series in enumerate(dict.fromkeys(rows["series"]))
    }


def _bar_marks(printed: set[str]) -> Legend:
    ours = (BLUE, FILLED["square"], tr("ours, with the deviation over repeats"))
    return [ours, *[(VERMILION, HOLLOW["diamond"], tr("published"))] * bool(printed)]


def _scatter_marks() -> Legend:
    names = tr("smallest predictive variance of a panel"), tr("largest, on a log scale")
    return [(color, "●", name) for color, name in zip((DEVIATION[0], DEVIATION[-1]), names)]


def _curve_marks(styles: Styles, printed: set[str]) -> Legend:
    ours = [
        (color, FILLED[marker], series or tr("ours"))  # a name may be a number alone: "Q_H=2"
        for series, (color, marker, _) in styles.items()
    ]
    return ours + [(GRAY, HOLLOW["circle"], tr("hollow: published"))] * bool(printed)


def _legend(marks: Legend) -> str:
    parts = (
        f"<li><span aria-hidden='true' style='color:{color}'>{sign}</span> {escape(name)}</li>"
        for color, sign, name in marks
    )
    return f"<ul class='legend'>{''.join(parts)}</ul>"
