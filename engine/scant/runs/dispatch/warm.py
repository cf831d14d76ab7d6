"""Record of the workers that have the models of runs in memory."""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED = 256  # maximum number of runs in the record


class WarmModels:
    """Least recently used cache of worker addresses by run."""

    def __init__(self) -> None:
        self._workers: OrderedDict[str, str] = OrderedDict()

    def worker(self, run: str) -> str | None:
        """Return the address of the worker with the model of a run; None if unknown."""
        return self._workers.get(run)

    def remember(self, run: str, address: str) -> None:
        """Record that a worker has the model of a run."""
        self._workers[run] = address
        self._workers.move_to_end(run)
        while len(self._workers) > REMEMBERED:
            self._workers.popitem(last=False)
