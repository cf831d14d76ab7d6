"""Rows of our results arranged as in the figures of the publications.

`data/published/figures.csv` has a line for each figure, or several if its panels have different
methods or axes. Bars show methods; curves show a score against a number that is part of the names
of experiments, methods or metrics, such as "births, 200 cells" or "RMSE, 2 missing". Scatter plots
show single predictions, and grids curves of replicas or matrices of one run, which have files of
their own (`scant.reproduce.figure_files`); or they show the matrix of an experiment whose methods
are pairs of outputs, such as "first and second".
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from scant.package_data import package_rows
from scant.reproduce import figure_files
from scant.reproduce.items import Item, items
from scant.reproduce.tables import read

BARS, CURVES, SCATTER, TABLE = "bars", "curves", "scatter", "table"
REPLICAS, HINTON, PAIRS = GRIDS = "replicas", "hinton", "pairs"
NAMES = ["experiment", "series", "metric"]
VALUES = {"ours": "value", "spread": "spread", "published": "printed",
          "published_spread": "printed_spread"}  # fmt: skip
COLUMNS = ["axis", "experiment", "metric", "series", "x", *VALUES.values()]


class Definition(NamedTuple):
    """How a figure, or some of its panels, is drawn.

    Attributes:
        publication: Key of the publication.
        item: Name of the figure.
        kind: `BARS`, `CURVES`, `SCATTER`, one of `GRIDS`, or `TABLE` if our rows cannot be drawn
            as in the publication.
        axis: Label of the horizontal axis of curves and scatter plots.
        number: Regular expression with one group, the number on that axis; without what it
            matches, the names are those of series and panels.
        metrics: Metrics that have panels, in order; () for all. For scatter plots, the label of the
            vertical axis.
        methods: Regular expression of the methods that are drawn; "" for all, in curves for all
            with a number.
        reason: Why it is only a table, as a clause; "" for other kinds.
    """

    publication: str
    item: str
    kind: str
    axis: str
    number: str
    metrics: tuple[str, ...]
    methods: str
    reason: str


@cache
def definitions() -> tuple[Definition, ...]:
    """Return the definitions of all figures."""
    return tuple(_definition(**row) for row in package_rows("published", "figures.csv"))


def definitions_of(item: Item) -> tuple[Definition, ...]:
    """Return the definitions of a figure; () if it has none."""
    key = item.publication, item.name
    return tuple(one for one in definitions() if (one.publication, one.item) == key)


@cache
def drawn_items() -> dict[str, Item]:
    """Return the figures with results that are drawn, by name, such as "M23 Figure 3.4"."""
    return {
        item.full_name: item
        for item in items()
        if item.experiments and any(one.kind != TABLE for one in definitions_of(item))
    }


def results_of(item: Item) -> pd.DataFrame:
    """Return the rows of our results that belong to a table or figure."""
    results = read(item.study)
    assert results is not None, item.study
    return results[results["experiment"].isin(item.experiments)]


def figure_rows(item: Item) -> pd.DataFrame:
    """Return the rows of our results that a figure of a publication shows.

    Args:
        item: The figure.

    Returns:
        Table as of `arranged`, panel by panel; `panel` counts them. Empty for tables and grids.
        Of a scatter plot `points`.
    """
    if any(one.kind == SCATTER for one in definitions_of(item)):
        return points(item)
    results = results_of(item)
    drawn = [one for one in definitions_of(item) if one.kind in (BARS, CURVES)]
    parts = [arranged(results, one).assign(part=k) for k, one in enumerate(drawn)]
    if not parts:
        return pd.DataFrame(columns=["panel", *COLUMNS])
    rows = pd.concat(parts, ignore_index=True)
    # A row of panels for each data set, as the metrics of its definition follow each other.
    rows["data set"] = rows.groupby(["part", "experiment"], sort=False).ngroup()
    rows["panel"] = rows.groupby(["data set", "metric"], sort=False).ngroup()
    rows = rows.sort_values(["data set", "panel", "x"], kind="stable", ignore_index=True)
    rows["panel"] = pd.factorize(rows["panel"])[0]
    return rows[["panel", *COLUMNS]]


def points(item: Item) -> pd.DataFrame:
    """Return the predictions that a scatter plot shows, panel by panel.

    The columns of their file are `scant.studies.figure_data.PREDICTIONS`.

    Args:
        item: A figure that is defined as a scatter plot.

    Returns:
        Table as of `figure_rows`; `experiment` is the name of the panel.
    """
    [definition] = definitions_of(item)
    rows = figure_files.read(item.full_name)
    rows = rows.rename(columns={"panel": "experiment"})
    rows["panel"] = pd.factorize(rows["experiment"])[0]
    labels = {"axis": definition.axis, "metric": definition.metrics[0], "series": ""}
    rows = rows.assign(**labels, printed=np.nan, printed_spread=np.nan)
    return rows[["panel", *COLUMNS]]


def arranged(results: pd.DataFrame, definition: Definition) -> pd.DataFrame:
    """Return results as a definition has them.

    Args:
        results: Results, with the columns of `scant.reproduce.results`.
        definition: Definition of bars or curves.

    Returns:
        Table with `COLUMNS`. `axis` labels the horizontal axis; `experiment` and `metric` name a
        panel, and `series` a method in it. `x` is its number, NaN for bars and for a method without
        one, which is a flat line. `value` and `spread` are ours, `printed` and `printed_spread`
        the publication's; NaN without one.
    """
    rows = results.rename(columns=VALUES)
    rows["axis"], rows["x"], rows["series"] = definition.axis, np.nan, rows["method"]
    if definition.number:
        for name in NAMES:
            number = rows[name].str.extract(definition.number, expand=False)
            rows["x"] = rows["x"].fillna(number.astype(float))
            rows[name] = rows[name].str.replace(definition.number, "", regex=True)
    if definition.methods:
        rows = rows[rows["method"].str.contains(definition.methods)]
    elif definition.number:
        rows = rows[rows["x"].notna()]
    if definition.metrics:
        rows = rows[rows["metric"].isin(definition.metrics)]
    order = [*definition.metrics, *rows["metric"]].index
    return rows.sort_values("metric", key=lambda m: m.map(order), kind="stable")[COLUMNS]


def _definition(metrics: str, **row: str) -> Definition:
    return Definition(metrics=tuple(metrics.split(" | ")) if metrics else (), **row)
