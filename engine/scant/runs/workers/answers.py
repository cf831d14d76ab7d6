"""Tasks of a worker for pages: queries to fitted studies, and generation of example data."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from typing import Any

from distributed import Worker

from scant.errors import BadInput
from scant.runs.memory import out_of_memory, ran_out
from scant.runs.workers.plugin import ScantWorkerPlugin, plugin_of
from scant.studies import entry

NOT_CACHED = "cold"  # answer of a worker that needs the model

log = logging.getLogger(__name__)


def prefetch_demo(study: str, dask_worker: Worker) -> None:
    """Generate the example data of a study in the background (through `Client.run`)."""
    plugin = plugin_of(dask_worker)
    work = threading.Thread(target=_prefetch_demo, args=(plugin, study), name="ahead", daemon=True)
    work.start()


def _prefetch_demo(plugin: ScantWorkerPlugin, study: str) -> None:
    plugin.science.join()
    from scant.data_sources.open import prefetch_demo as make

    try:
        make(entry(study))
    except Exception:  # a run on it reports the error
        log.exception("the demonstration of %s cannot be made", study)


async def answer(
    request: dict[str, Any], model: bytes | None, dask_worker: Worker
) -> tuple[str, Any]:
    """Query a fitted study (through `Client.run`) in a thread, to keep the worker responsive.

    Args:
        request: "run", "study", "settings", and one of "predict" (table), "file" (name and bytes to
            predict), "own" (data set of the run to predict, with an upload as "table"), or
            "explore" (question) with "asked" (arguments).
        model: Model of the run; None if the worker should have it.
        dask_worker: Worker, set by Dask.

    Returns:
        ("answer", result), ("bad input", message), or (NOT_CACHED, None) to request the model.
    """
    plugin = plugin_of(dask_worker)
    call = functools.partial(_answer, plugin, request, model)
    # Files may take minutes and must not delay other queries.
    executor = plugin.files if "file" in request or "own" in request else plugin.executor
    return await asyncio.get_running_loop().run_in_executor(executor, call)


def _answer(
    plugin: ScantWorkerPlugin, request: dict[str, Any], model: bytes | None
) -> tuple[str, Any]:
    plugin.science.join()
    from scant.training.api import restore
    from scant.training.downloads import predict_own, predict_upload

    study = plugin.studies.get(request["run"])
    if study is None and model is None:
        return NOT_CACHED, None
    try:
        if study is None:
            study = restore(request["study"], request["settings"], model)  # type: ignore[arg-type]
        plugin.keep(request["run"], study)
        if "predict" in request:
            return "answer", study.predict(request["predict"])
        if "file" in request:
            return "answer", predict_upload(study, *request["file"])
        if "own" in request:
            return "answer", predict_own(study, request["own"], request["table"])
        return "answer", study.explore(request["explore"], **request["asked"])
    except BadInput as error:
        return "bad input", str(error)
    except Exception as error:
        if not ran_out(error):
            raise
        plugin.studies.clear()
        return "bad input", out_of_memory(plugin.memory)
