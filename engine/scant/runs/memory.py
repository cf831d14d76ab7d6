"""Memory of a worker: its limit, its use, and the report when it runs out."""

from __future__ import annotations

import sys
from contextlib import suppress

import psutil

DATA_SHARE = 0.9  # of a worker's memory that it may hold; Dask kills it at 0.95
_SIGNS = (
    "can't allocate memory",  # PyTorch on a processor
    "cannot allocate memory",
    "out of memory",  # PyTorch on a GPU
    "std::bad_alloc",
    "unable to allocate",
)


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(psutil.Process().memory_info().rss)


def limit_data(limit: int) -> None:
    """Have allocations fail in this process, rather than have it killed, near `limit` bytes.

    A library then raises, which can be answered. To be called once the libraries are in, for they
    map a gigabyte that they never touch. Linux alone counts what is mapped for data; CUDA maps far
    more than it uses, so this is not for processes that use a GPU.
    """
    if sys.platform != "linux" or limit <= 0:
        return
    import resource

    with suppress(OSError, ValueError):
        more = max(int(DATA_SHARE * limit) - resident(), 0)
        wanted = int(psutil.Process().memory_info().data) + more
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def ran_out(error: BaseException | None) -> bool:
    """Whether an error, or what it came of, is that there was no memory left."""
    passed: set[int] = set()
    while error is not None and id(error) not in passed:
        passed.add(id(error))
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, RuntimeError | OSError):
            text = str(error).lower()
            if any(sign in text for sign in _SIGNS):
                return True
        error = error.__cause__ or error.__context__
    return False


def out_of_memory(limit: float) -> str:
    """The sentence of a run whose worker had too little memory; `limit` in bytes, 0 if unknown."""
    size = f" (its limit is {limit / 1e9:.3g} GB)" if limit else ""
    return (
        f"The worker ran out of memory{size}; use fewer rows or a smaller model, or run it on a "
        "machine with more memory with `scant fit`."
    )
