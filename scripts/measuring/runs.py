"""What many runs leave in a server's memory and on its disk."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import numpy as np
import pandas as pd
from playwright.sync_api import Browser
from sqlalchemy import LargeBinary, cast, func, select

from measuring import browser
from measuring.server import Server
from measuring.table import Row
from scant.store import Store
from scant.store.schema import METADATA

STUDIES = ("redshift", "genes", "multiview", "aggregation")  # trained with their quick presets
WIDE = {"n_basis": 300, "covariance": "VC", "max_steps": 60, "restarts": 1, "stack": False}
WIDE_COLUMNS = 50  # of `WIDE`, whose checkpoints are then of tens of megabytes
GONE = 60.0  # seconds after which nothing is kept of a visitor, and free pages are given back
PATIENCE = 300.0  # seconds that a run may take


def rows(server: Server, count: int) -> list[Row]:
    """Rows on `count` runs, one after the other, each trained by a visitor of its own."""
    store = server.store
    upload = store.add_upload(_wide_table(), owner="runs", name="wide.csv", study="redshift")
    wide = urlencode({**WIDE, "data": f"upload:{upload}"})
    addresses = [f"/{study}?preset=quick" for study in STUDIES] + [f"/redshift?{wide}"]
    start = peak = server.memory()
    largest, course = 0.0, list[float]()
    with browser.chromium() as chromium:
        for number in range(count):
            address = server.url + addresses[number % len(addresses)]
            for memory, disk in _train(chromium, server, store, address):
                peak, largest = max(peak, memory), max(largest, disk)
            course.append(server.memory())
            print(f"run {number + 1} of {address}: {course[-1]:.0f} MB", file=sys.stderr)
    time.sleep(GONE)
    after, disk, content = server.memory(), server.disk(), _content(store)
    tenth = max(1, count // 10)
    while_training = ", ".join(f"{memory:.0f}" for memory in course[tenth - 1 :: tenth])
    return [
        Row(
            f"memory after {count} runs",
            "within 50 MB",
            f"{after - start:+.0f} MB (from {start:.0f} MB)",
        ),
        Row("after each tenth of them", "", f"{while_training} MB"),
        Row("its peak", "", f"{peak:.0f} MB"),
        Row("database, with its log", "", f"{disk:.1f} MB (at most {largest:.1f} MB)"),
        Row("database over its content", "≤ 1.5", f"{disk / content:.2f} ({content:.1f} MB)"),
    ]


def _train(
    chromium: Browser, server: Server, store: Store, address: str
) -> Iterator[tuple[float, float]]:
    """Yield the server's memory and disk in MB until a new run has ended."""
    run = browser.train(chromium, address)
    until = time.monotonic() + PATIENCE
    while not (record := store.run(run)).state.final:
        if time.monotonic() > until:
            raise SystemExit(f"run {run} of {address} is still {record.state} ({record.reason})")
        yield server.memory(), server.disk()
        time.sleep(0.1)
    if not record.state.usable:
        raise SystemExit(f"run {run} of {address}: {record.state}: {record.reason}")


def _content(store: Store) -> float:
    """Return the MB of all values in the database."""
    with store.engine.connect() as db:
        sizes = [
            db.execute(select(func.sum(func.length(cast(column, LargeBinary))))).scalar()
            for table in METADATA.tables.values()
            for column in table.columns
        ]
    return sum(size or 0 for size in sizes) / 1e6


def _wide_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, WIDE_COLUMNS))
    table = pd.DataFrame(x, columns=[f"x{i}" for i in range(WIDE_COLUMNS)])
    return table.assign(z=np.sin(x[:, 0]) + x[:, 1] / 2 + rng.normal(scale=0.1, size=len(x)))
