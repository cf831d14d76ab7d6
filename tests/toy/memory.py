"""What work that resembles training asks of the system's memory."""

from __future__ import annotations

import resource
import threading

SIZE = 8 << 20  # bytes: an array of a larger step
STEPS = 50
PAGES_OF_ONE = SIZE // resource.getpagesize()


def pages_of_steps() -> int:
    """Pages that the system brought in for fifty steps after the first, on a thread as in a worker.

    Where freed memory is kept they are next to none, else those of all fifty.
    """
    found: list[int] = []

    def work() -> None:
        for step in range(STEPS + 1):
            bytearray(SIZE)
            if step == 0:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]
