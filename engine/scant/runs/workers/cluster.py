"""Where runs execute: worker processes of our own, or somebody's existing Dask cluster."""

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

# Dask keeps this many of its own messages and of each topic's; ours hold arrays.
_CONFIG: dict[str, Any] = {
    "distributed.admin.low-level-log-length": 10,
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.allowed-failures": 0,  # the service itself tries again
    "distributed.scheduler.worker-ttl": "15 minutes",  # the service itself judges silence
    "distributed.worker.multiprocessing-method": "spawn",  # forking after torch was used hangs
    # Threads share what they allocate from: what one has for itself is not kept when it is freed.
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
}

# Dask looks once more at a worker so long after it was lost, and if it is being replaced just then,
# for the second time, closes its nanny: there is one worker less for good. Ours are replaced by
# their nannies, and where all are gone the service brings new ones up.
_LOST = {"distributed.deploy.lost-worker-timeout": "1000 days"}

CONNECT_SECONDS = 5.0  # that a scheduler may take to answer
CLOSE_SECONDS = 0.5


class Cluster:
    """A Dask client and, where there is no scheduler to go to, the local cluster behind it."""

    def __init__(self, client: Client, local: LocalCluster | None) -> None:
        self.client: Any = client  # whose methods are awaited here, as its types do not know
        self.local: Any = local

    @classmethod
    async def connect(cls, scheduler: str | None = None, workers: int | None = None) -> Cluster:
        """Connect to a scheduler, or start worker processes on this machine.

        Args:
            scheduler: An address such as tcp://host:8786; None: SCANT_SCHEDULER, else local.
            workers: How many local workers; None: one a GPU, else by cores.

        Raises:
            BadInput: Nothing answers at the scheduler's address, or its workers lack Scant.
        """
        scheduler = scheduler or os.environ.get("SCANT_SCHEDULER") or None
        if scheduler is None:
            return await cls._start(workers)
        try:
            client = await Client(
                scheduler, asynchronous=True, timeout=CONNECT_SECONDS, name="scant"
            )
        except Exception as error:  # it also raises whatever a way to connect is wanting
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
        dask.config.set(_LOST)  # for as long as the process lives: it is read at every loss
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
        """How many runs each worker can take, by its address."""
        return dict(await self.client.ncores())

    async def memory(self) -> list[int]:
        """Bytes that workers may hold, of those that have a limit."""
        known = await self.client.scheduler.identity(n_workers=-1)
        return [int(w["memory_limit"]) for w in known["workers"].values() if w["memory_limit"]]

    def process_of(self, address: str) -> int | None:
        """Number of the process of one of our own workers."""
        keepers = self.local.workers.values() if self.local is not None else ()
        found = (keeper.pid for keeper in keepers if keeper.worker_address == address)
        return next(found, None)

    async def close(self) -> None:
        await self.client.close()
        if self.local is not None:
            # At once: what the workers had to say is in the store, and a step may be long.
            nannies = self.local.workers.values()
            closes = (nanny.close(timeout=CLOSE_SECONDS) for nanny in nannies)
            await asyncio.gather(*closes, return_exceptions=True)
            await self.local.close()


def gpus() -> tuple[str, ...]:
    """Indices of the CUDA devices we may use, found without torch."""
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
