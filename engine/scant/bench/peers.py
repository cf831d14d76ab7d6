"""Times of programs that are in no package index, for the same work on a similar machine.

Measured once before the start of this project, in double precision, accurate to a factor of 1.5;
`data/results/peers.csv` has them, with date, machine and, where it is known, version. Programs that
can be installed are measured by `stock` and `programs`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pandas as pd

from scant.package_data import package_file

Work = tuple[str, str, int, int, int]  # model, method, n, m and classes as in the table


class Peer(NamedTuple):
    """Milliseconds for the work of a case, and the program."""

    ms: float
    program: str


@cache
def measured() -> dict[Work, tuple[Peer, ...]]:
    """Return times of other programs by work, fastest first."""
    with package_file("results", "peers.csv").open("rb") as file:
        table = pd.read_csv(file).sort_values("ms", kind="stable")
    return {
        key: tuple(Peer(row.ms, row.program) for row in rows.itertuples())
        for key, rows in table.groupby(["model", "method", "n", "m", "classes"])
    }


def peers_of(model: str, method: str, n: int, m: int, classes: int) -> tuple[Peer, ...]:
    """Return times of other programs for the same work, fastest first."""
    return measured().get((model, method, n, m, classes), ())
