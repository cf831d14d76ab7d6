"""Files that are kept in the user's data directory."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from scant.data_dir import cached_table
from scant.studies.redshift.simulate import simulate


def test_a_table_asked_for_while_it_is_made_is_not_made_twice(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> pd.DataFrame:
        made.append(1)
        time.sleep(0.2)
        return simulate(60)

    path = tmp_path / "here" / "a.parquet"
    with ThreadPoolExecutor(3) as threads:
        tables = list(threads.map(lambda _: cached_table(path, make), range(3)))
    assert len(made) == 1
    for table in tables:
        pd.testing.assert_frame_equal(table, simulate(60))


def test_a_table_that_cannot_be_kept_is_made_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "here").touch()  # a file where a folder should be
    table = cached_table(tmp_path / "here" / "a.parquet", lambda: simulate(60))
    pd.testing.assert_frame_equal(table, simulate(60))
