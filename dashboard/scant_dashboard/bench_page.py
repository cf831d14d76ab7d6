"""The page written by `scant bench --out`: log-log plots of the cost of each model.

It is self-contained; the tables come from `scant.bench`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd
from bokeh.models import BasicTickFormatter, ColumnDataSource, HoverTool

from scant_dashboard.export import embedded, standing_alone
from scant_dashboard.plots.theme import GRAY, GROUPS, Figure, new_figure, place_legend_above

MARKERS = {"n": "circle", "m": "triangle", "classes": "square"}
KEY = (
    "Circles vary n, the rows of a step; triangles m, the inducing points or basis functions;"
    " squares the classes. Dashed: on CUDA, by the clock; else it is the processor's time. Stars:"
    " another program, on another machine, by the clock."
)


def page(table: pd.DataFrame, growth: pd.DataFrame, sentences: Sequence[str]) -> str:
    """Return the page as HTML.

    Args:
        table: Result of `scant.bench.table.measure`.
        growth: Result of `scant.bench.table.growth`.
        sentences: Sentences on time and machine of the measurement.
    """
    measured = table.assign(ms=table["cpu_ms"].fillna(table["ms"])).dropna(subset="ms")
    models = list(dict.fromkeys(measured["model"]))
    figures = [_panel(measured[measured["model"] == model], model) for model in models]
    code, divs = embedded(figures)
    body = "".join(f"<p>{escape(line)}</p>" for line in [*sentences, KEY])
    for model, div in zip(models, divs):
        reading = escape(_reading(model, measured, growth))
        body += f"<section><h2>{escape(model)}</h2><figure>{div}"
        body += f"<figcaption>{reading}</figcaption></figure></section>"
    body += "<section><h2>All figures</h2>"
    body += table.to_html(index=False, na_rep="", escape=True, border=0) + "</section>"
    return standing_alone("What the engine costs", body, code)


def _panel(rows: pd.DataFrame, model: str) -> Figure:
    axes = {"x_axis_type": "log", "y_axis_type": "log"}
    plot = new_figure(f"cost of {model}", "n, m or classes", "ms a step", height=380, **axes)
    methods = list(dict.fromkeys(rows["method"]))
    for keys, of in rows.groupby(["method", "device", "dtype"], sort=False):
        method, *where = map(str, keys)
        color = GROUPS[methods.index(method) % len(GROUPS)]
        for size, marker in MARKERS.items():
            _line(plot, of, size, marker, color, _name(method, *where))
    _peers(plot, rows.dropna(subset=["peer_ms"]))
    sizes = {float(v) for size in MARKERS for v in rows[size].dropna()}
    plot.xaxis.ticker = sorted(sizes)
    for axis in plot.axis:
        axis.formatter = BasicTickFormatter(use_scientific=False)
    place_legend_above(plot, stacked=True)
    return plot


def _peers(plot: Figure, rows: pd.DataFrame) -> None:
    """Mark other programs by stars, at the base size for base rows."""
    if rows.empty:
        return
    sizes = ["n" if row.varies == "base" else row.varies for row in _rows(rows)]
    at = [float(getattr(row, size)) for row, size in zip(_rows(rows), sizes)]
    what = [f"beside {row.method}, {size} = {x:g}" for row, size, x in zip(_rows(rows), sizes, at)]
    source = ColumnDataSource({"x": at, "ms": rows["peer_ms"], "who": rows["peer"], "what": what})
    star = plot.scatter(
        "x", "ms", source=source, marker="star", size=13, color=GRAY, legend_label="others"
    )
    lines = [("", "@what"), ("ms", "@ms"), ("who", "@who")]
    plot.add_tools(HoverTool(renderers=[star], tooltips=lines))


def _line(plot: Figure, rows: pd.DataFrame, size: str, marker: str, color: str, name: str) -> None:
    """Draw one method on one device against one size; base rows belong to all sizes."""
    observed = rows[rows["varies"].isin(["base", size])].dropna(subset=[size]).sort_values(size)
    if observed.empty or (len(observed) == 1 and size != "n"):
        return
    source = ColumnDataSource(
        {
            "x": observed[size].astype(float),
            "ms": observed["ms"],
            "what": [
                f"{name}, {row.work}, {size} = {getattr(row, size)}" for row in _rows(observed)
            ],
        }
    )
    dash = "solid" if (rows["device"] == "cpu").all() else "dashed"
    plot.line(
        "x", "ms", source=source, color=color, line_dash=dash, line_width=2, legend_label=name
    )
    dots = plot.scatter(
        "x", "ms", source=source, color=color, marker=marker, size=8, legend_label=name
    )
    plot.add_tools(HoverTool(renderers=[dots], tooltips=[("", "@what"), ("ms", "@ms")]))


def _rows(table: pd.DataFrame) -> list[Any]:
    return list(table.itertuples())


def _name(method: str, device: str, dtype: str) -> str:
    """Return the method's name, followed by device and dtype unless default."""
    usual = {device: "cpu", dtype: "float64"}
    return ", ".join([method, *(how for how, other in usual.items() if how != other)])


def _named(row: Any) -> str:
    return _name(row.method, row.device, row.dtype)


def _share(row: Any) -> str:
    return f" ({row.share:.0%} of the rate of the machine)" if row.share == row.share else ""


def _short(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _reading(model: str, table: pd.DataFrame, growth: pd.DataFrame) -> str:
    """Return the text alternative of a panel."""
    base = table[(table["model"] == model) & (table["varies"] == "base")]
    lines = [f"{_named(row)}: {_short(row.ms)} ms{_share(row)}" for row in _rows(base)]
    grown = [
        f"{_named(row)}: {row.size}^{row.power:g}"
        for row in _rows(growth[growth["model"] == model])
    ]
    return f"{'; '.join(lines)}." + (f" It grows as {'; '.join(grown)}." if grown else "")
