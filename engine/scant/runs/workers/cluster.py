"""Cluster of worker processes: local ones, or an existing Dask cluster."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import Any

import dask.config
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster, Security

from scant.errors import BadInput
from scant.hardware import default_workers
from scant.runs.workers.nodes import QuietNanny, QuietScheduler
from scant.runs.workers.plugin import PLUGIN, ScantWorkerPlugin

_CONFIG: dict[str, Any] = {
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.allowed-failures": 0,  # retries are up to the service
    "distributed.scheduler.worker-ttl": "15 minutes",  # timeouts are up to the service
    "distributed.worker.multiprocessing-method": "spawn",  # forking after the use of PyTorch hangs
    # One arena for all threads, so that freed memory is reused.
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
}

# Settings that Dask reads again for each connection and at each loss of a worker.
_PERMANENT = {
    "distributed.admin.low-level-log-length": 0,  # logs of messages, with tables and checkpoints
    # After this timeout, Dask checks a lost worker again and closes its nanny if it is just being
    # replaced once more, so the cluster would shrink permanently. Local workers are replaced by
    # their nannies, and the service starts new ones if all are lost.
    "distributed.deploy.lost-worker-timeout": "1000 days",
}

CONNECT_SECONDS = 5.0  # timeout of the connection to a scheduler
CLOSE_SECONDS = 0.5


class Cluster:
    """Dask client with the local cluster, if there is no external scheduler."""

    def __init__(self, client: Client, local: LocalCluster | None) -> None:
        self.client: Any = client  # untyped, since its methods are awaited
        self.local: Any = local

    @classmethod
    async def connect(cls, scheduler: str | None = None, workers: int | None = None) -> Cluster:
        """Connect to a scheduler, or start worker processes on this machine.

        Args:
            scheduler: Address such as tcp://host:8786; None for SCANT_SCHEDULER, else local.
            workers: Number of local workers; None for one per GPU, else by number of cores.

        Raises:
            BadInput: The scheduler does not answer, or its workers cannot import Scant.
        """
        dask.config.set(_PERMANENT)
        scheduler = scheduler or os.environ.get("SCANT_SCHEDULER") or None
        if scheduler is None:
            return await cls._start(workers)
        try:
            client = await Client(
                scheduler, asynchronous=True, timeout=CONNECT_SECONDS, name="scant"
            )
        except Exception as error:  # of many types
            raise BadInput(
                f"No Dask scheduler answers at {scheduler}; check the address given by "
                "--scheduler or SCANT_SCHEDULER, or leave it out to run on this machine."
            ) from error
        registered: Any = client.register_plugin(ScantWorkerPlugin(), name=PLUGIN)
        try:
            await registered
        except Exception as error:
            closed: Any = client.close()
            await closed
            raise BadInput(
                f"The workers at {scheduler} cannot load Scant ({error}); "
                "install the version that runs here on all of them, then start this server again."
            ) from error
        return cls(client, None)

    @classmethod
    async def _start(cls, workers: int | None) -> Cluster:
        devices = gpus()
        count = workers or len(devices) or default_workers(CPU_COUNT)
        threads = max(CPU_COUNT // count, 1)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        env = {name: str(threads) for name in names}
        if threads > 1:
            env["GOMP_SPINCOUNT"] = "0"  # spinning threads double step times on shared cores
        with dask.config.set(_CONFIG):
            local: Any = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                asynchronous=True,
                dashboard_address=None,
                worker_class=QuietNanny,
                env=env,
                # Whoever is heard by a scheduler can have anything executed. Other users of this
                # machine reach it, but have not this key, which never leaves our processes.
                security=Security.temporary(),
            )
            local.scheduler_spec["cls"] = QuietScheduler
            await local
            client = await Client(local, asynchronous=True)
            place = ScantWorkerPlugin(local=True, gpus=devices)
            registered: Any = client.register_plugin(place, name=PLUGIN)
            await registered
        return cls(client, local)

    @property
    def connected(self) -> bool:
        return self.client.status == "running"

    async def slots(self) -> dict[str, int]:
        """Return the capacity for runs of each worker by address."""
        return dict(await self.client.ncores())

    async def memory(self) -> list[int]:
        """Return the memory limits of workers in bytes, of those with a limit."""
        identity = await self.client.scheduler.identity(n_workers=-1)
        return [int(w["memory_limit"]) for w in identity["workers"].values() if w["memory_limit"]]

    def process_of(self, address: str) -> int | None:
        """Return the process id of a local worker; None for others."""
        nannies = self.local.workers.values() if self.local is not None else ()
        pids = (nanny.pid for nanny in nannies if nanny.worker_address == address)
        return next(pids, None)

    async def close(self) -> None:
        await self.client.close()
        if self.local is not None:
            # With a short timeout: all events are stored, and a training step may be long.
            nannies = self.local.workers.values()
            closes = (nanny.close(timeout=CLOSE_SECONDS) for nanny in nannies)
            await asyncio.gather(*closes, return_exceptions=True)
            await self.local.close()


def gpus() -> tuple[str, ...]:
    """Return the indices of visible CUDA devices, without PyTorch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return tuple(d.strip() for d in visible.split(",") if d.strip() not in ("", "-1"))
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(listed.stdout.split())
