"""A worker imports the science in one thread, and nobody asks it anything meanwhile."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor, wait

from scant.runs.workers.answers import NOT_CACHED, _answer
from scant.runs.workers.plugin import ScantWorkerPlugin


def test_a_question_waits_until_the_science_is_imported() -> None:
    imported = threading.Event()
    place = ScantWorkerPlugin()
    place.studies = OrderedDict()
    place.science = threading.Thread(target=imported.wait, daemon=True)
    place.science.start()
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(_answer, place, {"run": "some"}, None)
        assert not wait([query], timeout=0.3).done
        imported.set()
        assert query.result(timeout=60) == (NOT_CACHED, None)
