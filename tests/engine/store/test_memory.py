"""Blobs that a store has written stay in the database, not in memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 30_000_000  # bytes
WRITE = f"""
import io
import sys
import numpy as np
import pandas as pd
import psutil
import pyarrow
from scant.events import Checkpoint, Finished, Fitted, State
from scant.hardware import keep_little_freed_memory, return_freed_memory
from scant.store import Store

def memory():
    pyarrow.default_memory_pool().release_unused()
    return_freed_memory()
    return psutil.Process().memory_info().rss

keep_little_freed_memory()
store = Store.open(f"sqlite:///{{sys.argv[1]}}")
run = store.add_run("redshift", {{}}, "demo", "ada")
table = pd.DataFrame({{"x": np.arange({SIZE} / 8)}})
table.to_parquet(io.BytesIO())
before = memory()
store.add_upload(table, owner="ada", name="mine.csv", study="redshift")
for step in (1, 2):
    store.write(run, [Checkpoint(step, bytes([step]) * {SIZE})])
store.write(run, [Fitted(bytes([1]) * {SIZE}), Finished(State.CONVERGED, "")])
print(memory() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_a_store_keeps_no_blob_in_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path / "scant.db")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) < SIZE / 3
