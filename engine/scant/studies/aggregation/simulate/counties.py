"""Sudden infant deaths in North Carolina's counties, of which one period is known in groups.

Real counts and polygons (`data/maps/README.md` tells where they are from), made scarce: the deaths
of 1974 to 1978 are known by county, those of 1979 to 1984 in groups of counties, or of some
counties alone. Births are the exposure, so that a rate is deaths per birth. They are rows by
county, too: a group's rate is mostly that of the county where most of its children are born.
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
BIRTHS = "births"  # no task: the people by whom the points of a group are weighed
WITHHELD = 0.5  # of the later period's counties, where none are merged


@runtime_checkable
class Grouped(Protocol):
    """What this demonstration needs of the settings."""

    @property
    def data_seed(self) -> int: ...
    @property
    def n_groups(self) -> int: ...


def counties() -> pd.DataFrame:
    """All counts: `task`, `y` (deaths), `exposure` (births), `geometry` and `split`, for both
    periods, each 100 rows by county's code, all to learn from; then births of both periods."""
    with package_file("maps", "nc_sids.csv").open(encoding="utf-8") as file:
        read = pd.read_csv(file)
    parts = [
        pd.DataFrame(
            {
                "task": task,
                "y": read[f"deaths_{years}"].astype(float),
                "exposure": read[f"births_{years}"].astype(float),
                geometry.COLUMN: f"SRID={geometry.DEGREES};" + read["geometry"],
                "split": TRAIN,
            }
        )
        for task, years in ((EARLY, "1974_78"), (LATE, "1979_84"))
    ]
    return with_people(pd.concat(parts, ignore_index=True), BIRTHS)


def with_people(table: pd.DataFrame, task: str) -> pd.DataFrame:
    """The table and rows of such a task: the mean exposure of each polygon, which it has once."""
    people = table.groupby(geometry.COLUMN, sort=False)["exposure"].mean().reset_index(name="y")
    rows = people.assign(task=task, split=TRAIN)
    return pd.concat([table, rows], ignore_index=True)[list(table.columns)]


def experiment(groups: int = 20, seed: int = 0) -> pd.DataFrame:
    """The later period known in so many groups of counties, or, if 0, for half of the counties.

    What is held out is the later period by county: all 100, or the other half.

    Raises:
        BadInput: The packages for maps are missing, or a number of groups that cannot be.
    """
    table = counties()
    if groups:
        return merged(table, LATE, groups, seed)
    late = np.flatnonzero(table["task"] == LATE)
    withheld = np.random.default_rng(seed).permutation(late)[: round(WITHHELD * len(late))]
    table.loc[withheld, "split"] = TEST
    return table


def demo(settings: Grouped, rows: int | None = None) -> pd.DataFrame:
    """Both periods, the later one as scarce as the settings want it."""
    return thinned(experiment(settings.n_groups, settings.data_seed), rows)


def size(settings: Grouped) -> tuple[int, int]:
    """Rows and columns of it."""
    return 300 + settings.n_groups, 5
