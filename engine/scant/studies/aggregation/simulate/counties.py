"""Sudden infant deaths in North Carolina's counties, with one period given in groups.

Real counts and polygons (sources: `data/maps/README.md`), made scarce: the deaths of 1974 to 1978
are given by county, those of 1979 to 1984 in groups of counties, or for some counties alone. Births
are the exposure, so that a rate is deaths per birth. They are also rows by county, because a
group's rate is mostly that of the county with most of its births.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from scant.package_data import package_file
from scant.studies.aggregation.grouping import merged
from scant.studies.aggregation.thinning import thinned
from scant.studies.split import TEST, TRAIN
from scant.tables import geometry

EARLY, LATE = "deaths 1974-78", "deaths 1979-84"
BIRTHS = "births"  # not modeled: weights of the points of a group
WITHHELD = 0.5  # share of the later period's counties, if none are merged


@runtime_checkable
class Grouped(Protocol):
    """Settings of this demonstration."""

    @property
    def data_seed(self) -> int: ...
    @property
    def n_groups(self) -> int: ...


def counties() -> pd.DataFrame:
    """All counts: `task`, `y` (deaths), `exposure` (births), `geometry` and `split`, for both
    periods, each 100 training rows by county code; then births of both periods."""
    with package_file("maps", "nc_sids.csv").open(encoding="utf-8") as file:
        source = pd.read_csv(file)
    parts = [
        pd.DataFrame(
            {
                "task": task,
                "y": source[f"deaths_{years}"].astype(float),
                "exposure": source[f"births_{years}"].astype(float),
                geometry.COLUMN: f"SRID={geometry.DEGREES};" + source["geometry"],
                "split": TRAIN,
            }
        )
        for task, years in ((EARLY, "1974_78"), (LATE, "1979_84"))
    ]
    return with_people(pd.concat(parts, ignore_index=True), BIRTHS)


def with_people(table: pd.DataFrame, task: str) -> pd.DataFrame:
    """Add a task with the mean exposure of each polygon, one row per polygon."""
    people = table.groupby(geometry.COLUMN, sort=False)["exposure"].mean().reset_index(name="y")
    rows = people.assign(task=task, split=TRAIN)
    return pd.concat([table, rows], ignore_index=True)[list(table.columns)]


def experiment(groups: int = 20, seed: int = 0) -> pd.DataFrame:
    """Table with the later period in `groups` groups of counties or, if 0, for half of them.

    The later period by county is held out: all 100, or the other half.

    Raises:
        BadInput: The packages for maps are missing, or the number of groups is invalid.
    """
    table = counties()
    if groups:
        return merged(table, LATE, groups, seed)
    late_rows = np.flatnonzero(table["task"] == LATE)
    withheld = np.random.default_rng(seed).permutation(late_rows)[
        : round(WITHHELD * len(late_rows))
    ]
    table.loc[withheld, "split"] = TEST
    return table


def demo(settings: Grouped, rows: int | None = None) -> pd.DataFrame:
    """Both periods, the later one as scarce as in the settings."""
    return thinned(experiment(settings.n_groups, settings.data_seed), rows)


def size(settings: Grouped) -> tuple[int, int]:
    """Rows and columns of `demo`."""
    return 300 + settings.n_groups, 5
