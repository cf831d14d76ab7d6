"""Times of programs that are in no package index, for the same work on a similar machine.

Measured once before the start of this project, in double precision, accurate to a factor of 1.5;
`data/results/peers.csv` has them, with date, machine and, where it is known, version. Programs that
can be installed are measured by `stock` and `programs`.
"""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from scant.package_data import package_file

Work = tuple[str, str, int, int, int]  # model, method, n, m and classes as in the table


class Peer(NamedTuple):
    """Milliseconds for the work of a case, and the program."""

    ms: float
    program: str


@cache
def measured() -> dict[Work, tuple[Peer, ...]]:
    """Return times of other programs by work, fastest first."""
    times: dict[Work, list[Peer]] = {}
    with package_file("results", "peers.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            work = row["model"], row["method"], int(row["n"]), int(row["m"]), int(row["classes"])
            times.setdefault(work, []).append(Peer(float(row["ms"]), row["program"]))
    return {work: tuple(sorted(peers)) for work, peers in times.items()}


def peers_of(model: str, method: str, n: int, m: int, classes: int) -> tuple[Peer, ...]:
    """Return times of other programs for the same work, fastest first."""
    return measured().get((model, method, n, m, classes), ())
