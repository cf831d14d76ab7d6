"""The counties of North Carolina: real counts as they were published, groups of them, the form."""

from __future__ import annotations

import types

import numpy as np
import pytest

from scant.studies.aggregation.entry import ENTRY
from scant.studies.aggregation.settings import AggregationSettings
from scant.studies.aggregation.simulate.counties import (
    BIRTHS,
    EARLY,
    LATE,
    counties,
    demo,
    experiment,
    size,
)
from scant.studies.aggregation.table import TABLE, of
from scant.tables.read import read_frame
from scant.tables.schema import counts


def test_counts_are_those_of_the_publication() -> None:
    table = counties()
    totals = table.groupby("task")[["y", "exposure"]].sum()
    assert totals.loc[EARLY].tolist() == [667.0, 329_962.0]  # Cressie 1993, table 6.1
    assert totals.loc[LATE].tolist() == [836.0, 422_392.0]
    assert table.groupby("task", sort=False).size().tolist() == [100, 100, 100]
    births = table.loc[table["task"] == BIRTHS, "y"]
    assert births.sum() == (329_962 + 422_392) / 2
    anson = table[(table["task"] == EARLY) & (table["y"] == 15) & (table["exposure"] == 1570)]
    assert len(anson) == 1  # the outlier that the publication discusses


def test_groups_are_what_the_later_period_is_known_by() -> None:
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    settings = AggregationSettings(n_groups=12, data_seed=3)
    table = demo(settings)
    assert table.shape == size(settings) == (312, 5)
    rows = table.groupby(["task", "split"])["y"].agg(["size", "sum"])
    assert rows.loc[(EARLY, "train")].tolist() == [100, 667]
    assert rows.loc[(LATE, "train")].tolist() == [12, 836]
    assert rows.loc[(LATE, "test")].tolist() == [100, 836]
    read = read_frame(table, TABLE)
    observed = of(read.frame)
    assert set(observed.tasks) == {EARLY, LATE, BIRTHS}
    assert observed.dims == ("east", "north")
    assert observed.test.sum() == 100
    # The state is 780 km wide; a group's box holds its counties.
    assert 7.5e5 < np.ptp(np.r_[observed.lo[:, 0], observed.hi[:, 0]]) < 8.5e5
    source = next(s for s in ENTRY.sources if s.name == "counties")
    usual = demo(AggregationSettings())
    assert counts(usual, TABLE)["task"] == source.counts["task"]
    assert counts(usual, TABLE)["split"] == source.counts["split"]


def test_without_groups_half_of_the_counties_are_withheld() -> None:
    table = experiment(0, seed=1)
    rows = table.groupby(["task", "split"]).size()
    assert rows[(EARLY, "train")] == 100
    assert rows[(LATE, "train")] == rows[(LATE, "test")] == 50
    other = experiment(0, seed=2)
    assert (table["split"] != other["split"]).any()
    assert len(demo(types.SimpleNamespace(data_seed=0, n_groups=0), 40)) == 40


def test_a_fit_to_the_counties_starts_as_one_to_an_own_map() -> None:
    assert ENTRY.start("counties") == {"population_task": BIRTHS}
    assert ENTRY.start("particulates") == ENTRY.presets["demo"]
    assert ENTRY.parse("counties", {"n_groups": "10"}).values()["n_groups"] == 10
    usual = AggregationSettings(population_task=BIRTHS)
    assert ENTRY.parse("counties", {}).values() == usual.values()
