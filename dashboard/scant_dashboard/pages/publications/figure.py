"""A figure of a publication, drawn from our results: panels, or a grid."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import pandas as pd

from scant.reproduce.figures import GRIDS, HINTON, definitions_of, figure_rows
from scant.reproduce.items import Item
from scant_dashboard.pages.publications.grids import grid
from scant_dashboard.pages.publications.panels import HEIGHT, PANELS, Legend, styles_of
from scant_dashboard.plots.base import Plot
from scant_dashboard.translate import tr

COLUMNS = 3  # panels side by side; more metrics are placed two by two
SEPARATOR = ", "  # between data set and metric


def plot_of(item: Item, scale: float = 1.0) -> Plot:
    """Return a figure that is drawn, as a plot.

    Args:
        item: A figure that is drawn.
        scale: Size of type, relative to the usual one.
    """
    return grid(item, scale) if _kind(item) in GRIDS else PublishedFigure(item, scale)


def _kind(item: Item) -> str:
    return definitions_of(item)[0].kind


def drawing(item: Item, scale: float = 1.0) -> str:
    """Return a figure's legend, and a place for each of its panels, which `figures.js` draws.

    Args:
        item: A figure that is drawn.
        scale: Size of type, relative to the usual one.
    """
    kind = _kind(item)
    if kind in GRIDS:
        return _grid_place(item, scale)
    rows, panels, places = figure_rows(item), PANELS[kind], ""
    for name, panel in _panels(rows):
        alt = f"{tr(item.title)}: {name}"
        if panels.tabled:
            alt = tr("{title}: {panel}. The table below has the numbers.",
                     title=tr(item.title), panel=name)  # fmt: skip
        places += _place(panels.height(panel) * scale, alt)
    metrics = rows.groupby("experiment")["metric"].nunique().max()
    columns = min(rows["panel"].nunique(), metrics if 1 < metrics <= COLUMNS else 2)
    return f"{_legend(panels.legend(rows))}{_panels_of(item, columns, places)}"


def _grid_place(item: Item, scale: float) -> str:
    """Return a place for a figure that has its legend within it; it scrolls on narrow screens."""
    plot = grid(item, scale)
    place = _place(plot.figures[0].height or HEIGHT * scale, plot.alt, " class='wide'")
    signs = tr("White is positive, black negative.")
    about = f"<p class='quiet'>{signs}</p>" if _kind(item) == HINTON else ""
    return f"{about}{_panels_of(item, 2, place)}"


def _place(height: float, alt: str, attributes: str = "") -> str:
    return (
        f"<div{attributes}><div class='plot' data-key='' style='min-height:{height:.0f}px' "
        f"role='img' aria-label='{escape(alt, quote=True)}'></div></div>"
    )


def _panels_of(item: Item, columns: int, places: str) -> str:
    style = f"--columns:{columns}"
    return f"<div class='panels' style='{style}' data-figures='{item.full_name}'>{places}</div>"


class PublishedFigure(Plot):
    """A figure with a panel for each data set and metric.

    Args:
        item: A figure that is not only a table.
        scale: Size of type, relative to the usual one.
    """

    def __init__(self, item: Item, scale: float = 1.0) -> None:
        rows, panels, figures = figure_rows(item), PANELS[_kind(item)], []
        styles = styles_of(rows)
        for name, panel in _panels(rows):
            plot = panels.draw(panel, styles)
            plot.height = round(plot.height * scale)
            plot.title.text = name.rpartition(SEPARATOR)[0].rpartition(": ")[2]
            figures.append(plot)
        super().__init__(item.title, *figures)


def _panels(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield name and rows of each panel: the data set, if there are several, and the metric."""
    several = rows["experiment"].nunique() > 1
    for _, panel in rows.groupby("panel"):
        experiment, metric = panel[["experiment", "metric"]].iloc[0]
        yield (f"{experiment}{SEPARATOR}{metric}" if several else metric), panel


def _legend(marks: Legend) -> str:
    parts = (
        f"<li><span aria-hidden='true' style='color:{color}'>{sign}</span> {escape(name)}</li>"
        for color, sign, name in marks
    )
    return f"<ul class='legend'>{''.join(parts)}</ul>"
