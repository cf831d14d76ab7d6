"""What a Dask worker holds between the attempts of runs: controls, and the last fitted studies."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING

from distributed import Worker, WorkerPlugin

from scant.hardware import keep_freed_memory
from scant.runs.memory import limit_data
from scant.studies import STUDIES
from scant.training.control import Control

if TYPE_CHECKING:  # for it needs torch, which the server never imports
    from scant.studies.protocol import FittedStudy

PLUGIN = "scant"
WARM = 4  # fitted studies kept for predictions

log = logging.getLogger(__name__)


class ScantWorkerPlugin(WorkerPlugin):
    """A worker's state: controls of the attempts in hand, and the last fitted studies.

    Args:
        local: The worker is our own: nice it below the server, and give it its own GPU.
        gpus: Indices of the GPUs to be shared out among local workers, by the workers' names.
    """

    idempotent = True  # servers that share a cluster share its plugin

    def __init__(self, local: bool = False, gpus: tuple[str, ...] = ()) -> None:
        self.local = local
        self.gpus = gpus

    def setup(self, worker: Worker) -> None:
        self.controls: dict[tuple[str, int], Control] = {}
        self.studies: OrderedDict[str, FittedStudy] = OrderedDict()
        self._keeping = threading.Lock()
        self.executor = ThreadPoolExecutor(1, "predictions")
        self.files = ThreadPoolExecutor(1, "files")
        keep_freed_memory()  # Dask lets a worker hand back all that it frees, at once
        self.memory = int(worker.memory_manager.memory_limit or 0)
        if self.local:
            if hasattr(os, "nice"):
                os.nice(10)
            if self.gpus:
                index = int(worker.name) % len(self.gpus)
                os.environ["CUDA_VISIBLE_DEVICES"] = self.gpus[index]
        # In the background, so that the first run finds torch loaded and the worker is up at once.
        # Whoever needs it waits: two threads that import GPyTorch at once, whose modules import
        # each other, may meet one that is half made.
        self.science = threading.Thread(target=self._prepare, daemon=True)
        self.science.start()

    def _prepare(self) -> None:
        _import_science()
        if self.local and not self.gpus:
            limit_data(self.memory)

    def teardown(self, worker: Worker) -> None:
        self.executor.shutdown(wait=False)
        self.files.shutdown(wait=False)

    def keep(self, run: str, study: FittedStudy) -> None:
        """Keep a fitted study warm, the least used one going first."""
        with self._keeping:
            self.studies[run] = study
            self.studies.move_to_end(run)
            while len(self.studies) > WARM:
                self.studies.popitem(last=False)


def plugin_of(worker: Worker) -> ScantWorkerPlugin:
    place = worker.plugins[PLUGIN]
    assert isinstance(place, ScantWorkerPlugin)
    return place


def _import_science() -> None:
    for name in STUDIES:
        try:
            import_module(f"scant.studies.{name}.study")
        except Exception:  # a run of that study will say what is wrong
            log.exception("study %s cannot be imported", name)
    import torch

    # The first optimizer brings in torch's compiler, which takes a second or two.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
