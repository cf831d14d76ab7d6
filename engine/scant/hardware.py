"""Description of the machine, and its use by a process."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
REFERENCE_SECONDS = 7.8e-4  # that `speed` measures where the studies' costs were measured

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameters of glibc's mallopt


def keep_freed_memory() -> None:
    """Keep up to 256 MB of freed memory in this process for the next training step.

    By default glibc returns it to the system and requests it again page by page, which takes up to
    half of the time of a step. No effect with other C libraries.
    """
    _mallopt({_TRIM_THRESHOLD: 256 << 20, _MMAP_THRESHOLD: 32 << 20})  # the maximum of the latter


def keep_little_freed_memory() -> None:
    """Return freed blocks of 1 MB or more to the system at once, and use one heap for all threads.

    By default glibc raises this size to that of the largest freed block, and the heap of each
    thread keeps tens of megabytes, also after `return_freed_memory`. Call it before threads start.
    No effect with other C libraries.
    """
    _mallopt({_ARENA_MAX: 1, _TRIM_THRESHOLD: 1 << 20, _MMAP_THRESHOLD: 1 << 20})


def _mallopt(values: Mapping[int, int]) -> None:
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in values.items():
            mallopt(parameter, value)


def return_freed_memory() -> None:
    """Return all freed memory of this process to the system. No effect without glibc.

    After blobs of tens of megabytes, glibc keeps their memory below later small allocations.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers(cores: int) -> int:
    """Return the number of workers: two on small machines, then one per four cores, at most 8."""
    return max(min(cores, 2), min(cores // 4, 8))


def default_threads() -> int:
    """Return the number of threads of a fit; a fixed choice, since rounding depends on it."""
    return max(cores() // default_workers(cores()), 1)


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Map a function over items with threads, for work that mostly releases the GIL."""
    with ThreadPoolExecutor(cores()) as threads:
        return list(threads.map(function, items))


@cache
def speed() -> float:
    """Return the speed of a core relative to the machine of all estimates, at most 1.

    A faster machine uses its time budget to learn more. The least processor time of several tries
    differs by 10 % at most where other programs fill all cores.
    """
    import numpy as np

    A = np.random.default_rng(0).standard_normal((48, 48))
    K = A @ A.T + 48 * np.eye(48)
    times = []
    for _ in range(10):
        begun = time.thread_time()
        for _ in range(40):
            np.linalg.cholesky(K)
            np.exp(-A * A) @ K
        times.append(time.thread_time() - begun)
    return min(1.0, REFERENCE_SECONDS / min(times))


def machine() -> str:
    """Describe the number of cores, the processor, and the GPU if available."""
    import torch

    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    gpu = f", {torch.cuda.get_device_name(0)}" if torch.cuda.is_available() else ""
    return f"{cores()} cores, {model}{gpu}"
