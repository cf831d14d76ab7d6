"""A process that trains keeps what its steps free; a server returns it."""

import os
import platform
import subprocess
import sys

import pytest

from toy import memory

ASK = "from toy.memory import pages_of_steps; print(pages_of_steps())"
KEEP = "from scant.hardware import keep_freed_memory; keep_freed_memory();"


def _pages(code: str) -> int:
    # With Dask's setting, which fixes what glibc would learn from what is freed.
    env = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_kept_for_the_next_step() -> None:
    assert _pages(ASK) > memory.STEPS * memory.PAGES_OF_ONE * 0.9
    assert _pages(KEEP + ASK) < memory.PAGES_OF_ONE


HELD = """
import psutil
from scant.hardware import return_freed_memory
memory = lambda: psutil.Process().memory_info().rss
start = memory()
blocks = [bytes([1]) * 100_000 for _ in range(1000)]
above = bytes(1000)
del blocks
held = memory() - start
return_freed_memory()
print(held // 1_000_000, (memory() - start) // 1_000_000)
"""


def _held_and_left(code: str, **variables: str) -> tuple[int, int]:
    """MB that a process holds after it has freed them, and after it has returned them."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}  # Dask sets some
    env |= variables | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    held, left = map(int, done.stdout.split())
    return held, left


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_freed_memory_is_returned_also_from_below_what_is_in_use() -> None:
    held, left = _held_and_left(HELD, MALLOC_TRIM_THRESHOLD_="1000000000")
    assert held > 90
    assert left < 10


BLOBS = """
import psutil
from concurrent.futures import ThreadPoolExecutor
from scant.hardware import return_freed_memory
memory = lambda: psutil.Process().memory_info().rss
def receive():
    for size in (32_000_000, 24_000_000, 24_000_000):
        bytes([1]) * size
thread = ThreadPoolExecutor(1)
start = memory()
thread.submit(receive).result()
held = memory() - start
return_freed_memory()
print(held // 1_000_000, (memory() - start) // 1_000_000)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_a_server_keeps_no_memory_of_blobs_that_its_threads_have_freed() -> None:
    little = "from scant.hardware import keep_little_freed_memory; keep_little_freed_memory();"
    assert min(_held_and_left(BLOBS)) > 20  # glibc alone
    assert max(_held_and_left(little + BLOBS)) < 10
