"""The machine: in words that stand beside a measurement, and how a process uses it."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_KEPT, _LARGEST = 256 << 20, 32 << 20  # bytes; glibc takes no more for the second


def keep_freed_memory() -> None:
    """Have this process keep what a training step frees, up to 256 MB, for the next step.

    By itself glibc hands it back to the system and asks for it anew, page by page: up to half of
    the time of a step. Where another library allocates, nothing is done.
    """
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _LARGEST)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers(cores: int) -> int:
    """Two runs at a time even on small machines; further cores make the runs faster first."""
    return max(min(cores, 2), min(cores // 4, 8))


def default_threads() -> int:
    """Threads of one fit, on a page as in the terminal: the last digits of sums depend on it."""
    return max(cores() // default_workers(cores()), 1)


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """What a function gives for each item, on threads: for work that is mostly not Python's own."""
    with ThreadPoolExecutor(cores()) as threads:
        return list(threads.map(function, items))


def machine() -> str:
    """Cores and model of the processor, and the GPU where one is used."""
    import torch

    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    gpu = f", {torch.cuda.get_device_name(0)}" if torch.cuda.is_available() else ""
    return f"{cores()} cores, {model}{gpu}"
