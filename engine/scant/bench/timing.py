"""One loop that times any step: warm-up, then the median of several rounds, and the memory."""

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
WARM_UP = 2  # the first steps set things up
LEAST_ROUNDS = 3
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Timing(NamedTuple):
    """Milliseconds of a step: the median, the fastest and the slowest of so many rounds.

    `cpu` is the median of the processor's time, which other work on the machine does not swell.
    """

    ms: float
    cpu: float
    fastest: float
    slowest: float
    rounds: int


def timed(step: Step, device: torch.device, rounds: int = 15, seconds: float = 1.0) -> Timing:
    """Time a step.

    Args:
        step: What is timed; waited for where it runs on a GPU.
        device: Where it runs.
        rounds: At most, after the warm-up.
        seconds: Once they are spent no round is begun, but for the first three.
    """

    def once() -> tuple[float, float]:
        began, worked = time.perf_counter(), time.process_time()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - worked)

    began = time.perf_counter()
    for _ in range(WARM_UP):
        once()
    times: list[tuple[float, float]] = []
    while len(times) < LEAST_ROUNDS or (
        len(times) < rounds and time.perf_counter() - began < seconds
    ):
        times.append(once())
    ms, cpu = zip(*times)
    return Timing(median(ms), median(cpu), min(ms), max(ms), len(times))


@contextmanager
def undisturbed() -> Iterator[None]:
    """All arithmetic on a processor in one thread, so that methods and machines compare.

    Freed memory is kept, as it is where studies train; others' code, timed here too, has that also.
    What was there before is no longer searched for garbage, which is looked for between cases.
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
    """How far the peak of memory rose since it was made, in MB.

    On a processor that is the resident memory of the process, on Linux alone.

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
            ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system
            RESET.write_text("5")  # the peak begins anew
            self.before = _status("VmRSS")

    def risen(self) -> float | None:
        """MB; None where the system does not say."""
        if self.before is None:
            return None
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 2**20 - self.before
        return _status("VmHWM") - self.before


def _status(field: str) -> float:
    """MB of a line of the process's status."""
    lines = STATUS.read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))
