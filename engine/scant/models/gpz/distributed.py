"""GPz's sums over rows, distributed over the workers of a Dask cluster.

Each worker stores a part of the rows. A step sends the parameters to every worker and receives sums
of p x p elements, so its cost scales with the number of workers for 10,000 or more rows per worker.
Inside a Dask task (a run of the server) the task's cluster is used; otherwise processes are started
and stopped with the rows.
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
    """Worker processes that store rows; create one per fit and reuse it for all restarts.

    Args:
        n_workers: Requested number of workers. Inside a Dask task these are its own worker and
            idle workers of the cluster, possibly fewer; otherwise processes are started, which end
            with this object.
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
        """Addresses of the workers to use, starting with the caller's own."""
        tasks = self.client.processing()
        free = [a for a in sorted(tasks) if not tasks[a] and a != self._own]
        return ([self._own] if self._own else []) + free[: self.n_workers - bool(self._own)]


def _nothing() -> None:
    """Leave the cluster running: this object did not start it."""


def _close(client: Any, cluster: Any) -> None:
    client.close()
    cluster.close()


class Shard:
    """Dask actor that holds one worker's rows."""

    def __init__(self, patterns: list[Pattern], n_basis: int) -> None:
        torch.set_num_threads(1)
        self._rows = LocalRows(patterns, n_basis)

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """First pass over this worker's rows (see `RowSums`)."""
        with torch.no_grad():
            return self._rows.moments(weights, v, b)

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """Second pass over this worker's rows (see `RowSums`)."""
        with torch.no_grad():
            return self._rows.slopes(mean, covariance, v)


class DistributedRows:
    """`scant.models.gpz.row_sums.RowSums` with rows on several workers.

    The caller keeps a copy of the rows. If a worker is lost, the rows are redistributed over the
    remaining workers and the sums are recomputed.

    Args:
        patterns: Rows, grouped by missing pattern.
        n_basis: Number m of basis functions.
        processes: Workers that store the rows.
    """

    def __init__(self, patterns: list[Pattern], n_basis: int, processes: Processes) -> None:
        self._patterns, self._n_basis, self._processes = patterns, n_basis, processes
        self._point: tuple[Any, ...] = ()
        self._shards = self._distribute()

    def moments(self, weights: tuple[Tensor, ...], v: Tensor, b: Tensor) -> Moments:
        """See `RowSums`."""
        self._point = _cpu((weights, v, b))
        return _total(self._map("moments", *self._point), b.device)

    def slopes(self, mean: Tensor, covariance: Tensor, v: Tensor) -> Slopes:
        """See `RowSums`."""
        return _total(self._map("slopes", *_cpu((mean, covariance, v))), v.device)

    def _map(self, name: str, *arguments: Any) -> list[Any]:
        """Call a method on all shards; after the loss of a worker, on new shards."""
        try:
            return [
                f.result() for f in [getattr(shard, name)(*arguments) for shard in self._shards]
            ]
        except Exception:  # Dask re-raises any exception of the connection
            log.warning("A worker was lost; its rows go to the others.", exc_info=True)
        self._shards = self._distribute()
        if name == "slopes":  # new shards need the first pass
            for future in [shard.moments(*self._point) for shard in self._shards]:
                future.result()
        return [f.result() for f in [getattr(shard, name)(*arguments) for shard in self._shards]]

    def _distribute(self) -> list[Any]:
        client, addresses = self._processes.client, self._processes.addresses()
        futures = []
        for k, address in enumerate(addresses):
            part = client.scatter(_part(self._patterns, k, len(addresses)), workers=[address])
            futures.append(
                client.submit(Shard, part, self._n_basis, actor=True, workers=[address], pure=False)
            )
        return [future.result() for future in futures]


def _part(patterns: list[Pattern], k: int, n: int) -> list[Pattern]:
    """The k-th of n nearly equal parts of every pattern's rows."""
    return [Pattern(*(part.tensor_split(n)[k].cpu() for part in p)) for p in patterns]


def _cpu(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detach tensors (also in nested tuples) and move them to the CPU for transfer."""
    return tuple(_cpu(v) if isinstance(v, tuple) else v.detach().cpu() for v in values)


def _total(parts: list[Any], device: torch.device) -> Any:
    """Sum of the shards' results, field by field."""
    first = parts[0]
    if isinstance(first, Tensor):
        return torch.stack(parts).sum(0).to(device)
    fields = [_total(list(column), device) for column in zip(*parts)]
    return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
