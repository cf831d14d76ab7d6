"""What a worker does for pages: questions to fitted studies, and demonstrations made ahead."""

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

NOT_CACHED = "cold"  # the answer of a worker that needs the model sent along

log = logging.getLogger(__name__)


def prefetch_demo(study: str, dask_worker: Worker) -> None:
    """Have a study's demonstration made, in the background (through `Client.run`)."""
    place = plugin_of(dask_worker)
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
        request: "run", "study", "settings", then "predict" (a table), "file" (name and bytes of
            one to predict), "own" (the run's data set, to be predicted; an upload beside it as
            "table") or "explore" (a question) and "asked" (its arguments).
        model: The run's model, None if it should be warm here.
        dask_worker: Filled in by Dask.

    Returns:
        ("answer", result), ("bad input", sentence), or (NOT_CACHED, None): send the model along.
    """
    place = plugin_of(dask_worker)
    call = functools.partial(_answer, place, request, model)
    # A file may take minutes, which the questions of others do not wait for.
    executor = place.files if "file" in request or "own" in request else place.executor
    return await asyncio.get_running_loop().run_in_executor(executor, call)


def _answer(
    place: ScantWorkerPlugin, request: dict[str, Any], model: bytes | None
) -> tuple[str, Any]:
    place.science.join()
    from scant.training.api import restore
    from scant.training.prediction import predict_own, predict_upload

    study = place.studies.get(request["run"])
    if study is None and model is None:
        return NOT_CACHED, None
    try:
        if study is None:
            study = restore(request["study"], request["settings"], model)  # type: ignore[arg-type]
        place.keep(request["run"], study)
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
        place.studies.clear()
        return "bad input", out_of_memory(place.memory)
