"""State of a Dask worker between attempts: controls and recently fitted studies."""

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

if TYPE_CHECKING:  # requires PyTorch, which the server never imports
    from scant.studies.protocol import FittedStudy

PLUGIN = "scant"
WARM = 4  # maximum number of fitted studies in memory

log = logging.getLogger(__name__)


class ScantWorkerPlugin(WorkerPlugin):
    """State of a worker: controls of current attempts and recently fitted studies.

    Args:
        local: True for a local worker, which gets a lower priority than the server and its own GPU.
        gpus: Indices of the GPUs to distribute among local workers.
    """

    idempotent = True  # servers that share a cluster share its plugin

    def __init__(self, local: bool = False, gpus: tuple[str, ...] = ()) -> None:
        self.local = local
        self.gpus = gpus

    def setup(self, worker: Worker) -> None:
        self.controls: dict[tuple[str, int], Control] = {}
        self.studies: OrderedDict[str, FittedStudy] = OrderedDict()
        self._lock = threading.Lock()
        self.executor = ThreadPoolExecutor(1, "predictions")
        self.files = ThreadPoolExecutor(1, "files")
        keep_freed_memory()  # undo Dask's setting to return freed memory at once
        self.memory = int(worker.memory_manager.memory_limit or 0)
        if self.local:
            if hasattr(os, "nice"):
                os.nice(10)
            if self.gpus:
                index = int(worker.name) % len(self.gpus)
                os.environ["CUDA_VISIBLE_DEVICES"] = self.gpus[index]
        # Imported in the background, so that the worker starts quickly. Tasks wait for the thread,
        # since concurrent imports of GPyTorch, with circular imports, may see a partial module.
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
        """Keep a fitted study in memory and drop the least recently used ones."""
        with self._lock:
            self.studies[run] = study
            self.studies.move_to_end(run)
            while len(self.studies) > WARM:
                self.studies.popitem(last=False)


def plugin_of(worker: Worker) -> ScantWorkerPlugin:
    plugin = worker.plugins[PLUGIN]
    assert isinstance(plugin, ScantWorkerPlugin)
    return plugin


def _import_science() -> None:
    for name in STUDIES:
        try:
            import_module(f"scant.studies.{name}.study")
        except Exception:  # a run of that study reports the error
            log.exception("study %s cannot be imported", name)
    import torch

    # The first optimizer imports the compiler of PyTorch, which takes a second or two.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
