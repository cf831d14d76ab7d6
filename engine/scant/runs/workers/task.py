"""One attempt of a run, as a Dask task on a worker.

The server imports this file to name its functions, so torch comes in only where they run.
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

TOPIC = "scant"  # one for all runs: Dask keeps the latest messages of every topic

log = logging.getLogger(__name__)


def work(job: str, table: bytes | None, checkpoint: bytes | None) -> None:
    """One attempt of a run, as a Dask task; all it has to say goes out as events.

    Args:
        job: JSON with "run", "attempt", "study", "settings", "data", "device" and "wish".
        table: The data as Parquet, None where the worker opens `data` by its name.
        checkpoint: Where to go on from, None to begin.
    """
    order = json.loads(job)
    worker = get_worker()
    place = plugin_of(worker)
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
        reason = f"The run failed with an error: {type(error).__name__}: {error}"
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
    place.science.join()
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
            place.keep(order["run"], run.study)
        yield event


def tell(run: str, attempt: int, wish: str | None, dask_worker: Worker) -> bool:
    """Set the wish of an attempt on this worker (through `Client.run`); False: not here."""
    control = plugin_of(dask_worker).controls.get((run, attempt))
    if control is not None:
        control.wish = wish
    return control is not None


def abandon(runs: list[str], dask_worker: Worker) -> None:
    """End every attempt of these runs on this worker, without another word."""
    for (run, _), control in plugin_of(dask_worker).controls.items():
        if run in runs:
            control.wish = "abandon"
