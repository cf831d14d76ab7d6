"""Where the models of runs are warm: which worker holds one fitted."""

from __future__ import annotations

from collections import OrderedDict

REMEMBERED = 256  # runs of which we remember it


class WarmModels:
    """Workers by the runs whose models they hold; the runs least asked are forgotten first."""

    def __init__(self) -> None:
        self._workers: OrderedDict[str, str] = OrderedDict()

    def worker(self, run: str) -> str | None:
        """The address of the worker that has the model of a run; None where nobody knows."""
        return self._workers.get(run)

    def remember(self, run: str, address: str) -> None:
        """A worker has the model of a run by now."""
        self._workers[run] = address
        self._workers.move_to_end(run)
        while len(self._workers) > REMEMBERED:
            self._workers.popitem(last=False)
