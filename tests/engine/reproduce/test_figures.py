"""Figures of the publications, arranged from our results."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from scant.package_data import package_rows
from scant.reproduce.figures import (
    BARS,
    CURVES,
    GRIDS,
    PAIRS,
    SCATTER,
    TABLE,
    Definition,
    arranged,
    definitions,
    definitions_of,
    figure_rows,
)
from scant.reproduce.items import items
from scant.reproduce.tables import read

NONE = math.nan


def results(*rows: tuple[str, str, str, float, float, float, float]) -> pd.DataFrame:
    """Results with experiment, method, metric, our mean and deviation, and the printed ones."""
    names = ["experiment", "method", "metric", "ours", "spread", "published", "published_spread"]
    return pd.DataFrame(rows, columns=names)


def definition(kind: str, **fields: object) -> Definition:
    blank: dict[str, object] = dict.fromkeys(Definition._fields, "")
    return Definition(**{**blank, "metrics": (), "kind": kind, **fields})  # type: ignore[arg-type]


def columns(rows: pd.DataFrame, *names: str) -> list[tuple[object, ...]]:
    return list(rows[list(names)].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("names", "number", "expected"),
    [
        (("births, 200 cells", "cells alone", "SMSE"), r", (\d+) cells",
         ("births", "cells alone", "SMSE", 200.0)),
        (("photo", "GPVC m=25, as published", "RMSE"), r" m=(\d+)",
         ("photo", "GPVC, as published", "RMSE", 25.0)),
        (("ten outputs, latent dimensions", "Q_H=3", "NMSE"), r"(?:, )?\bQ_H=(\d+)",
         ("ten outputs, latent dimensions", "", "NMSE", 3.0)),
        (("bands", "GPVC m=25, ours", "RMSE, 2 missing"), r", (\d) missing",
         ("bands", "GPVC m=25, ours", "RMSE", 2.0)),
    ],
)  # fmt: skip
def test_a_number_in_any_name_is_its_place_on_the_axis(
    names: tuple[str, str, str], number: str, expected: tuple[str, str, str, float]
) -> None:
    table = results((*names, 0.5, 0.1, 0.4, NONE))
    rows = arranged(table, definition(CURVES, number=number, axis="n"))
    assert columns(rows, "experiment", "series", "metric", "x") == [expected]
    assert columns(rows, "axis", "value", "spread", "printed") == [("n", 0.5, 0.1, 0.4)]
    assert np.isnan(rows["printed_spread"]).all()
    assert columns(table, "experiment", "method", "metric") == [names]  # shared, so unchanged


def test_methods_without_a_number_are_flat_lines_only_if_named() -> None:
    table = results(
        ("S-20", "A, |S|=5", "recall", 0.5, NONE, NONE, NONE),
        ("S-20", "A", "recall", 0.6, NONE, NONE, NONE),
        ("S-20", "B", "recall", 0.7, NONE, NONE, NONE),
    )
    number = r", \|S\|=(\d+)"
    rows = arranged(table, definition(CURVES, number=number))
    assert columns(rows, "series", "x", "value") == [("A", 5.0, 0.5)]
    rows = arranged(table, definition(CURVES, number=number, methods="^A"))
    assert list(rows["value"]) == [0.5, 0.6]
    assert np.isnan(rows["x"].iloc[1])


def test_bars_have_the_metrics_of_the_figure_in_its_order() -> None:
    table = results(
        *(("Balance", method, metric, k, NONE, NONE, NONE)
          for k, (method, metric) in enumerate(
              (m, s) for m in ("A", "B") for s in ("recall", "seconds", "precision"))),
    )  # fmt: skip
    rows = arranged(table, definition(BARS, metrics=("precision", "recall")))
    assert columns(rows, "metric", "series", "value") == [
        ("precision", "A", 2), ("precision", "B", 5), ("recall", "A", 0), ("recall", "B", 3),
    ]  # fmt: skip
    assert np.isnan(rows["x"]).all()


def test_every_figure_with_results_is_drawn_or_says_why_not() -> None:
    known = {(item.publication, item.name): item for item in items()}
    for one in definitions():
        what = one.publication, one.item
        assert what in known, what
        assert one.kind in (BARS, CURVES, SCATTER, TABLE, *GRIDS), what
        assert bool(one.reason) == (one.kind == TABLE), what
        assert bool(one.axis) == (one.kind in (CURVES, SCATTER)), what
        assert bool(one.number) == (one.kind == CURVES), what
        assert re.compile(one.number).groups == (one.kind == CURVES), what
        assert re.compile(one.methods).groups == 0, what
    for item in items():
        own = definitions_of(item)
        if item.experiments:
            assert bool(own) == item.name.startswith("Figure"), item.name
            assert len({one.kind for one in own}) <= 1, item.name
            if own and own[0].kind == PAIRS:  # one matrix is drawn
                assert len(item.experiments) == 1, item.name


def test_panels_of_every_figure_have_rows_of_the_results() -> None:
    drawn = 0
    for item in items():
        own = definitions_of(item)
        definition_rows = [one for one in own if one.kind in (BARS, CURVES, SCATTER)]
        if not (item.experiments and definition_rows):
            continue
        rows, table = figure_rows(item), read(item.study)
        assert table is not None
        table = table[table["experiment"].isin(item.experiments)]
        assert list(rows["panel"].unique()) == list(range(rows["panel"].nunique())), item.name
        scattered = definition_rows[0].kind == SCATTER  # single predictions are in no table
        for name, column in (("value", "ours"), ("printed", "published")) * (not scattered):
            assert set(rows[name].dropna()) <= set(table[column].dropna()), item.name
        for _, panel in rows.groupby("panel"):
            assert scattered or not panel.duplicated(["series", "x"]).any(), item.name
            assert panel["value"].notna().any(), item.name
            assert panel["x"].notna().any() == (definition_rows[0].kind != BARS), item.name
        listed = [metric for one in definition_rows for metric in one.metrics]
        assert set(listed) <= set(rows["metric"]), item.name
        drawn += 1
    assert drawn
    assert len(package_rows("published", "figures.csv")) == len(definitions())
