"""An attempt on a worker, without the worker."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from scant.events import State, decode
from scant.runs.workers import plugin, task


class Place:
    """Stands for a Dask worker with our plugin; a wish comes with the first sign of life."""

    address = "here"

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.plugins = {plugin.PLUGIN: self.made()}

    def made(self) -> plugin.ScantWorkerPlugin:
        place = plugin.ScantWorkerPlugin()
        place.controls = {}
        place.memory = 0
        place.science = threading.Thread(target=str)
        place.science.start()
        return place

    def log_event(self, _topic: str, message: dict[str, Any]) -> None:
        if not self.said:
            assert task.tell("r", 1, "pause", self)  # type: ignore[arg-type]
        self.said += [message, *decode(message["events"])]


def test_a_wish_that_answers_the_first_sign_of_life_is_heard(
    toy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Place()
    monkeypatch.setattr(task, "get_worker", lambda: here)
    job = {"run": "r", "attempt": 1, "study": toy, "settings": {}, "data": "demo"}
    task.work(json.dumps({**job, "device": "cpu", "wish": None}), None, None)
    end = here.said[-1]
    assert end.state is State.PAUSED
