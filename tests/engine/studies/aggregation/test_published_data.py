"""The data of the publication, where they are: sizes, scales, and what the generators have of them.

The readers are also tried on small files in the same form, which are always there.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies.aggregation import published_data
from scant.studies.aggregation.simulate import fertility, particulates, poisson
from scant.studies.aggregation.table import TABLE, of
from scant.studies.aggregation.thinning import coarsen
from scant.tables.read import read_frame
from tests.paths import REAL_DATA


def real(name: str) -> Path:
    folder = Path(os.environ.get("SCANT_REAL_DATA", REAL_DATA)) / name
    if not folder.is_dir():
        pytest.skip(f"SCANT_REAL_DATA names no folder {name}")
    return folder


def test_authors_draw_and_ours_are_alike() -> None:
    theirs, ours = published_data.poisson_draw(real("poisson_toy")), poisson.simulate(0)
    supports = ["task", "x_lo", "x_hi", "split"]
    pairs = theirs[supports].merge(ours[supports], how="outer", indicator=True)
    alone = pairs[pairs["_merge"] != "both"]
    assert alone[["x_lo", "split"]].to_numpy().tolist() == [[180, "train"]]  # theirs lacks it
    # Their mean and variance of counts lie within what forty of our draws show.
    draws = [poisson.simulate(seed) for seed in range(40)]
    for task in poisson.TASKS:
        got = theirs.loc[theirs["task"] == task, "y"]
        found = [d.loc[d["task"] == task, "y"] for d in draws]
        for statistic in (np.mean, np.var):
            assert min(map(statistic, found)) < statistic(got) < max(map(statistic, found))


def test_canada() -> None:
    folder = real("fertility")
    cells = published_data.canada(folder)
    assert len(cells) == 2640
    for step, boxes in ((5, 104), (2, 660)):
        shipped = pd.read_csv(folder / f"asfr_{step}x{step}.csv")
        made = coarsen(fertility.long_form(cells, 1), {"age": step, "year": step})
        assert len(made) == len(shipped) == boxes
        shipped = shipped.sort_values(["age_start", "year_start"], ignore_index=True)
        np.testing.assert_array_equal(made["age_lo"], shipped["age_start"])
        np.testing.assert_allclose(made["y"], shipped["asfr_order1"], atol=1e-12)
    table = fertility.experiment(cells, 2, 100, seed=3, orders=(1, 2))
    assert read_frame(table, TABLE).notes == ()
    simulated = fertility.simulate(0)
    for order in (1, 2):
        alike = np.corrcoef(simulated[f"order{order}"], cells[f"order{order}"])[0, 1]
        assert alike > 0.95


def test_kampala() -> None:
    folder = real("pm25_kampala")
    table = published_data.kampala(folder)
    sizes = table.groupby(["task", "split"]).size().to_dict()
    assert sizes == {("counter", "train"): 657, ("filter", "test"): 864, ("filter", "train"): 36}
    found = of(read_frame(table, TABLE).frame)
    assert (found.lo.min(), found.hi.max()) == (0, 216)
    counted = table[table["task"] == "counter"]
    assert counted["time_lo"].min() >= 144  # 19 March, no earlier
    fine = table[table["split"] == "test"]
    assert fine["y"].mean() == pytest.approx(4.5, abs=0.1)
    assert counted["y"].mean() > 8 * fine["y"].mean()

    def agreement(stamps: str) -> float:
        monitor = published_data.kampala(folder, stamps=stamps).query("split == 'test'")
        at = np.floor((counted["time_lo"] + counted["time_hi"]) / 2 * 4) / 4
        pairs = counted.assign(time_lo=at).merge(monitor, on="time_lo", suffixes=("", "_monitor"))
        return float(np.corrcoef(np.log(pairs["y"]), np.log(pairs["y_monitor"]))[0, 1])

    assert agreement("end") > agreement("start") + 0.02


@pytest.fixture
def instruments(tmp_path: Path) -> Path:
    """A day of both instruments, in the form of the real files."""
    stamps = pd.date_range("2019-03-19 00:15", "2019-03-20 00:00", freq="15min")
    monitor = pd.DataFrame({"timestamp": stamps, "pm25_ugm3": np.arange(96.0)})
    off = pd.DataFrame({"timestamp": ["2019-03-19 03:03"], "pm25_ugm3": [1e6]})
    pd.concat([monitor, off]).to_csv(tmp_path / "paper_osiris_15min.csv", index=False)
    counter = pd.DataFrame({"start_h": [0.0, 23.95], "end_h": [0.1, 24.05], "n_readings": 5})
    counter["mean_pm25_ugm3"] = [40.0, 50.0]
    counter.to_csv(tmp_path / "paper_pms5003_windows_72h.csv", index=False)
    return tmp_path


def test_instruments_of_a_day(instruments: Path) -> None:
    table = published_data.kampala(instruments, start="2019-03-19", end="2019-03-20")
    assert table["y"].max() < 1e5  # the stamp off the quarters is left out
    filtered = table[(table["task"] == particulates.FILTER) & (table["split"] == "train")]
    assert filtered["y"].tolist() == [11.5, 35.5, 59.5, 83.5]
    assert filtered["time_hi"].tolist() == [6, 12, 18, 24]
    assert (table["task"] == particulates.COUNTER).sum() == 1  # the second ends on the morrow
    started = published_data.kampala(
        instruments, start="2019-03-19", end="2019-03-20", stamps="start"
    )
    assert started[started["split"] == "test"]["time_lo"].min() == 0.25
    assert (started["split"] == "train").sum() == 3 + 1  # the first six hours lack a quarter


def test_files_that_are_not_there_or_other_ones(instruments: Path) -> None:
    with pytest.raises(BadInput, match="stamps must be end or start"):
        published_data.kampala(instruments, stamps="middle")
    with pytest.raises(BadInput, match="no values from 2020"):
        published_data.kampala(instruments, start="2020-01-01", end="2020-01-02")
    with pytest.raises(BadInput, match=r"no file asfr_1x1\.csv"):
        published_data.canada(instruments)
    (instruments / "task1_train.csv").write_text("start,end,n\n0,1,2\n")
    with pytest.raises(BadInput, match=r"task1_train\.csv has no column 'count'; it has start"):
        published_data.poisson_draw(instruments)
