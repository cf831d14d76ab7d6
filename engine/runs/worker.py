"""What runs on a Dask worker: one attempt of a run, and the answers of its warm, fitted studies.

The server imports this file to name its functions, so torch comes in only where they run.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

from distributed import Worker, WorkerPlugin, get_worker
from scant.errors import BadInput
from scant.events import Event, Finished, Fitted, State, encode
from scant.hardware import keep_freed_memory
from scant.runs.memory import limit_data, out_of_memory, ran_out, resident
from scant.studies import STUDIES, entry
from scant.training.control import Control

if TYPE_CHECKING:
    import pandas as pd
    from scant.studies.protocol import FittedStudy

TOPIC = "scant"  # one for all runs: Dask keeps the latest messages of every topic
PLUGIN = "scant"
BATCH_SECONDS = 0.1
BEAT_SECONDS = 2.0
LOOK_SECONDS = 0.25  # between looks at memory, which may fill between two beats
WARM = 4  # fitted studies kept for predictions
NOT_CACHED = "cold"  # the answer of a worker that needs the model sent along

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
        self.executor = ThreadPoolExecutor(1, "predictions")
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

    def keep(self, run: str, study: FittedStudy) -> None:
        """Keep a fitted study warm, the least used one going first."""
        self.studies[run] = study
        self.studies.move_to_end(run)
        while len(self.studies) > WARM:
            self.studies.popitem(last=False)


def _workplace(worker: Worker) -> ScantWorkerPlugin:
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


class EventBatcher:
    """Sends an attempt's events to the server: at most ten messages a second, the first at once.

    When there is nothing to say an empty message tells that the worker lives, or that it holds a
    tenth more of its memory (`limit` bytes; 0 for no limit) than it last said.
    """

    def __init__(self, send: Callable[[bytes], None], limit: int = 0) -> None:
        self._send = send
        self._limit = limit
        self._events: list[Event] = []
        self._ready = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="outbox", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        with self._ready:
            self._events.append(event)
            self._ready.notify()

    def close(self) -> None:
        """Send what is left."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            held, until = resident(), time.monotonic() + BEAT_SECONDS
            with self._ready:
                while not self._events and not self._closed and time.monotonic() < until:
                    self._ready.wait(LOOK_SECONDS)
                    if self._limit and resident() > held + self._limit / 10:
                        break
                events, self._events = self._events, []
                closed = self._closed
            if events or not closed:
                self._send(encode(events))
            if closed:
                return
            time.sleep(BATCH_SECONDS)


def work(job: str, table: bytes | None, checkpoint: bytes | None) -> None:
    """One attempt of a run, as a Dask task; all it has to say goes out as events.

    Args:
        job: JSON with "run", "attempt", "study", "settings", "data", "device" and "wish".
        table: The data as Parquet, None where the worker opens `data` by its name.
        checkpoint: Where to go on from, None to begin.
    """
    order = json.loads(job)
    worker = get_worker()
    place = _workplace(worker)
    about = {"run": order["run"], "attempt": order["attempt"], "worker": worker.address}
    control = Control(order["wish"])

    def send(message: bytes) -> None:
        stand = {"resident": resident(), "memory": place.memory, "heeded": control.heeded}
        worker.log_event(TOPIC, {**about, **stand, "events": message})

    key = (order["run"], order["attempt"])
    place.controls[key] = control
    send(encode([]))  # the server now knows where to send a wish, and a wish finds the control
    outbox = EventBatcher(send, place.memory)
    try:
        for event in _attempt(order, table, checkpoint, control, place, about):
            if control.wish == "abandon":
                break
            outbox.put(event)
    except BadInput as error:
        outbox.put(Finished(State.FAILED, str(error)))
    except Exception as error:
        log.exception("run %s failed", order["run"])
        reason = f"The run broke off with an error: {type(error).__name__}: {error}"
        if ran_out(error):
            reason = out_of_memory(place.memory)
            place.studies.clear()  # room for the next
        outbox.put(Finished(State.FAILED, reason))
    finally:
        outbox.close()
        del place.controls[key]


def _attempt(
    order: dict[str, Any],
    table: bytes | None,
    checkpoint: bytes | None,
    control: Control,
    place: ScantWorkerPlugin,
    about: dict[str, Any],
) -> Iterable[Event]:
    import pandas as pd

    place.science.join()
    from scant.training.api import fit

    run = fit(
        order["study"],
        order["data"] if table is None else pd.read_parquet(BytesIO(table)),
        device=order["device"],
        control=control,
        checkpoint=checkpoint,
        **order["settings"],
    )
    about["data_hash"] = _hash(run.table)
    for event in run:
        if isinstance(event, Fitted):
            place.keep(order["run"], run.study)
        yield event


def _hash(frame: pd.DataFrame | None) -> str:
    """SHA-256 of a table's names and cells, so that two runs on the same data can be told."""
    if frame is None:
        return ""
    from pandas.util import hash_pandas_object

    digest = hashlib.sha256(json.dumps([str(c) for c in frame.columns]).encode())
    digest.update(hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def tell(run: str, attempt: int, wish: str | None, dask_worker: Worker) -> bool:
    """Set the wish of an attempt on this worker (through `Client.run`); False: not here."""
    control = _workplace(dask_worker).controls.get((run, attempt))
    if control is not None:
        control.wish = wish
    return control is not None


def abandon(runs: list[str], dask_worker: Worker) -> None:
    """End every attempt of these runs on this worker, without another word."""
    for (run, _), control in _workplace(dask_worker).controls.items():
        if run in runs:
            control.wish = "abandon"


def prefetch_demo(study: str, dask_worker: Worker) -> None:
    """Have a study's demonstration made, in the background (through `Client.run`)."""
    place = _workplace(dask_worker)
    work = threading.Thread(target=_prefetch_demo, args=(place, study), name="ahead", daemon=True)
    work.start()


def _prefetch_demo(place: ScantWorkerPlugin, study: str) -> None:
    place.science.join()
    from scant.data_sources.open import prefetch_demo as make

    try:
        make(entry(study))
    except Exception:  # a run on it will say what is wrong
        log.exception("the demonstration of %s cannot be made", study)


async def answer(
    request: dict[str, Any], model: bytes | None, dask_worker: Worker
) -> tuple[str, Any]:
    """Ask a fitted study (through `Client.run`), in a thread, so that the worker stays awake.

    Args:
        request: "run", "study", "settings", then "predict" (a table) or "explore" (a question)
            and "asked" (its arguments).
        model: The run's model, None if it should be warm here.
        dask_worker: Filled in by Dask.

    Returns:
        ("answer", result), ("bad input", sentence), or (COLD, None): send the model along.
    """
    place = _workplace(dask_worker)
    call = functools.partial(_answer, place, request, model)
    return await asyncio.get_running_loop().run_in_executor(place.executor, call)


def _answer(
    place: ScantWorkerPlugin, request: dict[str, Any], model: bytes | None
) -> tuple[str, Any]:
    place.science.join()
    from scant.training.api import restore

    study = place.studies.get(request["run"])
    if study is None and model is None:
        return NOT_CACHED, None
    try:
        if study is None:
            study = restore(request["study"], request["settings"], model)  # type: ignore[arg-type]
        place.keep(request["run"], study)
        if "predict" in request:
            return "answer", study.predict(request["predict"])
        return "answer", study.explore(request["explore"], **request["asked"])
    except BadInput as error:
        return "bad input", str(error)
    except Exception as error:
        if not ran_out(error):
            raise
        place.studies.clear()
        return "bad input", out_of_memory(place.memory)
