"""Attempt of a run as a Dask task on a worker.

The server imports this module to submit its functions, so PyTorch is imported within them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import pandas as pd
from distributed import Worker, get_worker

from scant.errors import BadInput
from scant.events import Event, Finished, Fitted, State, encode
from scant.runs.memory import out_of_memory, ran_out, resident
from scant.runs.workers.batcher import EventBatcher
from scant.runs.workers.plugin import ScantWorkerPlugin, plugin_of
from scant.tables.digest import table_hash
from scant.training.control import Control

TOPIC = "scant"  # one topic for all runs, since Dask keeps the latest messages of every topic
FAULT = (
    "The run failed because of an error in the program, recorded in the worker's log; train again "
    "with other settings or another table."
)

log = logging.getLogger(__name__)


def work(job: str, table: bytes | None, checkpoint: bytes | None) -> None:
    """Run an attempt as a Dask task and send its events to the server.

    Args:
        job: JSON with "run", "attempt", "study", "settings", "data", "device" and "wish".
        table: Data as Parquet; None to open `data` by name.
        checkpoint: Checkpoint to continue from; None to start from the beginning.
    """
    order = json.loads(job)
    worker = get_worker()
    plugin = plugin_of(worker)
    about = {"run": order["run"], "attempt": order["attempt"], "worker": worker.address}
    control = Control(order["wish"])

    def send(message: bytes) -> None:
        status = {"resident": resident(), "memory": plugin.memory, "heeded": control.heeded}
        worker.log_event(TOPIC, {**about, **status, "events": message})

    key = (order["run"], order["attempt"])
    plugin.controls[key] = control
    send(encode([]))  # tells the server the worker's address, after the control is registered
    outbox = EventBatcher(send, plugin.memory)
    control.tell = outbox.put
    try:
        for event in _attempt(order, table, checkpoint, control, plugin, about):
            if control.wish == "abandon":
                break
            outbox.put(event)
    except BadInput as error:
        outbox.put(Finished(State.FAILED, str(error)))
    except Exception as error:
        log.exception("run %s failed", order["run"])
        reason = FAULT
        if ran_out(error):
            reason = out_of_memory(plugin.memory)
            plugin.studies.clear()  # free memory for the next attempt
        outbox.put(Finished(State.FAILED, reason))
    finally:
        outbox.close()
        del plugin.controls[key]


def _attempt(
    order: dict[str, Any],
    table: bytes | None,
    checkpoint: bytes | None,
    control: Control,
    plugin: ScantWorkerPlugin,
    about: dict[str, Any],
) -> Iterable[Event]:
    plugin.science.join()
    from scant.training.api import fit

    run = fit(
        order["study"],
        order["data"] if table is None else pd.read_parquet(BytesIO(table), use_threads=False),
        device=order["device"],
        control=control,
        checkpoint=checkpoint,
        **order["settings"],
    )
    about["data_hash"] = table_hash(run.table)
    for event in run:
        if isinstance(event, Fitted):
            plugin.keep(order["run"], run.study)
        yield event


def tell(run: str, attempt: int, wish: str | None, dask_worker: Worker) -> bool:
    """Set the request of an attempt (through `Client.run`); False if it is not on this worker."""
    control = plugin_of(dask_worker).controls.get((run, attempt))
    if control is not None:
        control.wish = wish
    return control is not None


def abandon(runs: list[str], dask_worker: Worker) -> None:
    """End all attempts of these runs on this worker without further events."""
    for (run, _), control in plugin_of(dask_worker).controls.items():
        if run in runs:
            control.wish = "abandon"
