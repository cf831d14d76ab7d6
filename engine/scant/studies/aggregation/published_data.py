"""The data of the aggregation experiments (Yousefi 2021, section 5.3), in the generators' forms.

Scant does not include them: each reader takes the folder that contains them, as in the tests with
`SCANT_REAL_DATA`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scant.errors import BadInput
from scant.studies.aggregation.simulate import fertility, poisson
from scant.studies.aggregation.simulate.particulates import (
    COUNTER,
    FILTER,
    FILTER_HOURS,
    TRUTH_MINUTES,
)
from scant.studies.aggregation.thinning import coarsen
from scant.studies.split import TEST, TRAIN

_COUNTER_START = "2019-03-19"  # origin of the hours in its file


def poisson_draw(folder: Path) -> pd.DataFrame:
    """The authors' draw of the Poisson toy, as from `poisson.simulate` without the truth.

    Their training file repeats the interval [130, 131] of the gap and lacks [180, 181]; here test
    rows are left out of training, so that 199 rows train the first task.

    Args:
        folder: Folder of `task1_train.csv`, `task1_test_gap.csv` and `task2_train.csv` with
            `start`, `end` (units) and `count`.

    Raises:
        BadInput: A file or a column is missing.
    """
    parts = []
    for task, split, file in (
        (poisson.TASKS[0], TRAIN, "task1_train.csv"),
        (poisson.TASKS[0], TEST, "task1_test_gap.csv"),
        (poisson.TASKS[1], TRAIN, "task2_train.csv"),
    ):
        table = _columns(folder / file, ["start", "end", "count"]).astype(np.float64)
        table.columns = pd.Index(["x_lo", "x_hi", "y"])
        table.insert(0, "task", task)
        parts.append(table.assign(split=split))
    train, held_out = parts[:2]
    parts[0] = train[~train["x_lo"].isin(held_out["x_lo"])]
    return pd.concat(parts, ignore_index=True)


def canada(folder: Path) -> pd.DataFrame:
    """The publication's Canadian grid as cells (see `fertility`): births of order 1 to 4.

    Args:
        folder: Folder of `asfr_1x1.csv` with `year_start`, `year_end`, `age_start`, `age_end`
            (half-open, years) and `asfr_order1` … (births per woman and year).

    Raises:
        BadInput: The file or a column is missing.
    """
    bounds = {
        f"{d}_{a}": f"{d}_{b}" for d in ("age", "year") for a, b in (("start", "lo"), ("end", "hi"))
    }
    names = bounds | {f"asfr_order{k}": f"order{k}" for k in fertility.TASKS}
    cells = _columns(folder / "asfr_1x1.csv", list(names)).astype(np.float64).rename(columns=names)
    return cells.sort_values(["year_lo", "age_lo"], ignore_index=True)


def kampala(
    folder: Path,
    *,
    start: str = "2019-03-13",
    end: str = "2019-03-22",
    stamps: str = "end",
    filter_hours: float = FILTER_HOURS,
) -> pd.DataFrame:
    """Monitor and counter of Kampala, as from `particulates.simulate` without the truth.

    The monitor (Osiris) reads some ten times less than the counter (PMS5003), so that each task
    needs its own standardization. The counter was published for 19 to 21 March only; other days
    have the filter's task alone.

    Args:
        folder: Folder of `paper_osiris_15min.csv` (`timestamp`, `pm25_ugm3`) and
            `paper_pms5003_windows_72h.csv` (`start_h`, `end_h` since 19 March, `mean_pm25_ugm3`).
        start: First midnight, from which hours are counted.
        end: Midnight after the last day.
        stamps: Meaning of the monitor's times in their quarter of an hour: "end", as its
            correlation with the counter suggests, or "start", as in the authors' code.
        filter_hours: Hours over which the monitor is averaged for training; averages that lack a
            quarter are left out.

    Returns:
        `task`, `time_lo`, `time_hi` (hours since `start`), `y` (µg/m³), `split`: the filter's
        averages, its quarters of an hour (tested), the counter's windows.

    Raises:
        BadInput: A file or column is missing, or the monitor has no values on those days.
    """
    if stamps not in ("end", "start"):
        raise BadInput(f"stamps must be end or start; got {stamps!r}.")
    days = (_hours(start, start), _hours(end, start))
    quarter = TRUTH_MINUTES / 60
    monitor = _columns(folder / "paper_osiris_15min.csv", ["timestamp", "pm25_ugm3"])
    lo = _hours(monitor["timestamp"], start) - (quarter if stamps == "end" else 0.0)
    # A time off the quarters, as after a clock change, would overlap with the next one.
    on_time = np.isclose(lo / quarter, np.round(lo / quarter))
    lo = np.where(on_time, np.round(lo / quarter) * quarter, np.nan)
    fine = _within(days, FILTER, lo, lo + quarter, monitor["pm25_ugm3"]).assign(split=TEST)
    if not len(fine):
        raise BadInput(f"The monitor has no values from {start} to {end}; choose other days.")
    filter_means = coarsen(fine, {"time": filter_hours}, origin={"time": 0.0}).assign(split=TRAIN)
    names = ["start_h", "end_h", "mean_pm25_ugm3"]
    counter = _columns(folder / "paper_pms5003_windows_72h.csv", names)
    offset = _hours(_COUNTER_START, start)
    counted = _within(
        days, COUNTER, counter["start_h"] + offset, counter["end_h"] + offset, counter[names[2]]
    )
    return pd.concat([filter_means, fine, counted.assign(split=TRAIN)], ignore_index=True)


def _hours(times: pd.Series | str, start: str) -> Any:
    """Hours from `start`, of one time or of many."""
    return (pd.to_datetime(times, format="ISO8601") - pd.Timestamp(start)) / pd.Timedelta(hours=1)


def _within(
    days: tuple[float, float],
    task: str,
    lo: pd.Series | np.ndarray,
    hi: pd.Series | np.ndarray,
    y: pd.Series,
) -> pd.DataFrame:
    """Observations inside the given hours."""
    rows = pd.DataFrame({"task": task, "time_lo": lo, "time_hi": hi, "y": y})
    return rows[(rows["time_lo"] >= days[0]) & (rows["time_hi"] <= days[1])]


def _columns(path: Path, names: Sequence[str]) -> pd.DataFrame:
    if not path.is_file():
        raise BadInput(f"There is no file {path.name} in that folder; check the path.")
    table = pd.read_csv(path)
    for name in names:
        if name not in table:
            got = ", ".join(str(c) for c in table)
            raise BadInput(f"{path.name} has no column {name!r}; it has {got}.")
    return table[list(names)]
