"""Measurement of time and memory of steps."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from threadpoolctl import threadpool_limits

from scant.hardware import keep_freed_memory

Step = Callable[[], object]
WARM_UP = 2  # steps before the measurement
MIN_ROUNDS = 3
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Timing(NamedTuple):
    """Milliseconds of a step: median, minimum and maximum over `rounds` rounds.

    `cpu` is the median CPU time, which depends less on other load.
    """

    ms: float
    cpu: float
    fastest: float
    slowest: float
    rounds: int


def timed(step: Step, device: torch.device, rounds: int = 15, seconds: float = 1.0) -> Timing:
    """Measure the time of a step.

    Args:
        step: Step to measure, with synchronization on a GPU.
        device: Device of the step.
        rounds: Maximum number of rounds after the warm-up.
        seconds: Time limit for starting a round, except the first three.
    """

    def once() -> tuple[float, float]:
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return 1000 * (time.perf_counter() - wall_start), 1000 * (time.process_time() - cpu_start)

    began = time.perf_counter()
    for _ in range(WARM_UP):
        once()
    times: list[tuple[float, float]] = []
    while len(times) < MIN_ROUNDS or (
        len(times) < rounds and time.perf_counter() - began < seconds
    ):
        times.append(once())
    ms, cpu = zip(*times)
    return Timing(median(ms), median(cpu), min(ms), max(ms), len(times))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Restrict CPU computations to one thread for comparable measurements.

    Freed memory is kept as in training. Existing objects are excluded from garbage collection.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    keep_freed_memory()
    gc.collect()
    gc.freeze()
    try:
        with threadpool_limits(1):
            yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(before)


class Memory:
    """Increase of the peak memory since the construction in MB.

    On a CPU this is the resident memory of the process, only on Linux.

        memory = Memory(device)
        ...
        memory.risen()
    """

    def __init__(self, device: torch.device) -> None:
        gc.collect()
        self.device = device
        self.before: float | None = None
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
            self.before = torch.cuda.memory_allocated(device) / 2**20
            return
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # return freed memory to the system
            RESET.write_text("5")  # reset the peak
            self.before = _status("VmRSS")

    def risen(self) -> float | None:
        """Return the increase in MB; None if not available."""
        if self.before is None:
            return None
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 2**20 - self.before
        return _status("VmHWM") - self.before


def _status(field: str) -> float:
    """Read a field of the process status in MB."""
    lines = STATUS.read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))
