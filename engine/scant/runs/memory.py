"""Memory limit and use of a worker, and detection of exhausted memory."""

from __future__ import annotations

import sys
from contextlib import suppress

import psutil

DATA_SHARE = 0.9  # fraction of the memory limit for data; Dask kills workers at 0.95
_SIGNS = (
    "can't allocate memory",  # PyTorch on a processor
    "cannot allocate memory",
    "out of memory",  # PyTorch on a GPU
    "std::bad_alloc",
    "unable to allocate",
)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(psutil.Process().memory_info().rss)


def limit_data(limit: int) -> None:
    """Make allocations of this process fail near `limit` bytes, before it is killed.

    Failed allocations raise exceptions that can be handled. Call it after the libraries are
    imported, since they map about a gigabyte that they never use. Only for Linux, and not for
    processes that use a GPU, since CUDA maps much more memory than it uses.
    """
    if sys.platform != "linux" or limit <= 0:
        return
    import resource

    with suppress(OSError, ValueError):
        more = max(int(DATA_SHARE * limit) - resident(), 0)
        target = int(psutil.Process().memory_info().data) + more
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = target if hard == resource.RLIM_INFINITY else min(target, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def ran_out(error: BaseException | None) -> bool:
    """Return True if an error or one of its causes is exhausted memory."""
    visited: set[int] = set()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, RuntimeError | OSError):
            text = str(error).lower()
            if any(sign in text for sign in _SIGNS):
                return True
        error = error.__cause__ or error.__context__
    return False


def out_of_memory(limit: float) -> str:
    """Return the message for exhausted memory; `limit` in bytes, 0 if unknown."""
    size = f" (its limit is {limit / 1e9:.3g} GB)" if limit else ""
    return (
        f"The worker ran out of memory{size}; use fewer rows or a smaller model, or run it on a "
        "machine with more memory with `scant fit`."
    )
