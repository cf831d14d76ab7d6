"""GPz's sums over rows on the workers of a Dask cluster, each of which holds its rows.

A step sends the parameters to every worker and gets sums of p x p numbers back, so that its cost
falls with the number of workers as long as a worker has some 10,000 rows or more. In a task of a
cluster, such as a run of the server, that cluster's workers are used; elsewhere processes are
started for as long as the rows are used.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

import torch
from distributed import Client, LocalCluster, get_client, get_worker, secede
from torch import Tensor

from scant.models.gpz.row_sums import LocalRows, Moments, Pattern, Slopes

log = logging.getLogger(__name__)


class Processes:
    """Worker processes that can hold rows.

    Make one for a fit, and keep it for all its restarts.

    Args:
        n_workers: How many are wanted. In a task of a cluster these are its own worker and others
            that have no task now, so that there may be fewer; elsewhere they are started here, and
            end with this object.
    """

    def __init__(self, n_workers: int) -> None:
        try:
            own: str | None = get_worker().address
        except ValueError:
            own = None
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            self.client: Any = Client(cluster)
            self.close: Callable[[], Any] = weakref.finalize(self, _close, self.client, cluster)
        else:
            secede()  # the worker of this task has one thread, which its share of rows needs
            self.client = get_client()
            self.close = _nothing
        self.n_workers, self._own = n_workers, own

    def addresses(self) -> list[str]:
        """Of the workers to be used now, the caller's first."""
        tasks = self.client.processing()
        free = [a for a in sorted(tasks) if not tasks[a] and a != self._own]
        return ([self._own] if self._own else []) + free[: self.n_workers - bool(self._own)]


def _nothing() -> None:
    """The cluster belongs to others."""


def _close(client: Any, cluster: Any) -> None:
    client.close()
    cluster.close()


class Shard:
    """A worker's rows, as a Dask actor."""

    def __init__(self, patterns: list[Pattern], n_basis: int) -> None:
        torch.set_num_threads(1)
        self._rows = LocalRows(patterns, n_basis)

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """The first pass over this worker's rows."""
        with torch.no_grad():
            return self._rows.moments(weights, v, b)

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """The second pass."""
        with torch.no_grad():
            return self._rows.slopes(mean, covariance, v)


class DistributedRows:
    """A `scant.models.gpz.row_sums.RowSums` whose rows lie on several workers.

    The caller keeps the rows, too: where a worker is lost, they are spread over those that are
    left, and the sums are made again.

    Args:
        patterns: The rows, by pattern of missing values.
        n_basis: m.
        processes: Among which they are shared.
    """

    def __init__(self, patterns: list[Pattern], n_basis: int, processes: Processes) -> None:
        self._patterns, self._n_basis, self._processes = patterns, n_basis, processes
        self._point: tuple[Any, ...] = ()
        self._shards = self._spread()

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """See `RowSums`."""
        self._point = _cpu((weights, v, b))
        return _total(self._all("moments", *self._point), b.device)

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """See `RowSums`."""
        return _total(self._all("slopes", *_cpu((mean, covariance, v))), v.device)

    def _all(self, name: str, *given: Any) -> list[Any]:
        """The answers of all shards; where one is lost, of new shards."""
        try:
            return [f.result() for f in [getattr(shard, name)(*given) for shard in self._shards]]
        except Exception:  # Dask raises what the connection raised
            log.warning("A worker was lost; its rows go to the others.", exc_info=True)
        self._shards = self._spread()
        if name == "slopes":  # of the point of the first pass, which new shards do not know
            for future in [shard.moments(*self._point) for shard in self._shards]:
                future.result()
        return [f.result() for f in [getattr(shard, name)(*given) for shard in self._shards]]

    def _spread(self) -> list[Any]:
        client, addresses = self._processes.client, self._processes.addresses()
        made = []
        for k, address in enumerate(addresses):
            part = client.scatter(_part(self._patterns, k, len(addresses)), workers=[address])
            made.append(
                client.submit(Shard, part, self._n_basis, actor=True, workers=[address], pure=False)
            )
        return [future.result() for future in made]


def _part(patterns: list[Pattern], k: int, n: int) -> list[Pattern]:
    """The k-th of n equal shares of every pattern's rows."""
    return [Pattern(*(part.tensor_split(n)[k].cpu() for part in p)) for p in patterns]


def _cpu(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same without graphs, on the processor, to be sent."""
    return tuple(_cpu(v) if isinstance(v, tuple) else v.detach().cpu() for v in values)


def _total(parts: list[Any], device: torch.device) -> Any:
    """The sum of answers, field by field."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.stack(parts).sum(0).to(device)
    fields = [_total(list(column), device) for column in zip(*parts)]
    return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
