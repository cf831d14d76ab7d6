"""The queue of runs, and one that is active."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scant.events import State, decode
from scant.runs.dispatch.queue import FairQueue, waits
from scant.runs.workers import plugin, task
from scant.runs.workers.cluster import default_workers, gpus


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_the_queue_keeps_its_word(asked: list[tuple[str, bool]]) -> None:
    queue = FairQueue()
    for i, (owner, first) in enumerate(asked):
        queue.put(f"{owner}{i}", owner, first=first)
    order = queue.order()
    assert len(queue) == len(asked)
    assert [queue.take() for _ in asked] == order
    for owner in "abc":  # each owner's runs keep their order
        mine = [r for r in order if r[0] == owner and not asked[int(r[1:])][1]]
        assert mine == sorted(mine, key=lambda r: int(r[1:]))


def test_one_owner_cannot_crowd_out_another() -> None:
    queue = FairQueue()
    for run in ("a1", "a2", "a3"):
        queue.put(run, "a")
    queue.put("b1", "b")
    assert queue.order() == ["a1", "b1", "a2", "a3"]
    assert queue.take() == "a1"
    queue.put("c1", "c")
    assert queue.order() == ["b1", "a2", "c1", "a3"]
    assert queue.remove("a2")
    assert not queue.remove("a2")
    assert queue.order() == ["b1", "c1", "a3"] or queue.order() == ["b1", "a3", "c1"]


def test_one_address_cannot_crowd_out_another_with_many_owners() -> None:
    queue = FairQueue()
    for i in range(4):
        queue.put(f"a{i}", f"cookie {i}", "here")
    queue.put("b", "bob", "there")
    queue.put("a4", "cookie 0", "here")
    assert queue.order() == ["a0", "b", "a1", "a2", "a3", "a4"]
    assert queue.take() == "a0"
    assert queue.remove("b")
    assert "b" not in queue
    assert len(queue) == 4


def test_waits_follow_from_how_long_runs_take() -> None:
    takes = {"x": 10.0, "y": 4.0, "p": 20.0, "q": 5.0, "r": 1.0}
    assert waits(["p", "q", "r"], ["x", "y"], 2, takes.get) == [4.0, 10.0, 15.0]
    assert waits(["p"], ["x"], 2, takes.get) == [0.0]
    assert waits(["p", "q"], ["x", "new"], 2, takes.get) == [None, None]
    assert waits(["new", "q", "p"], [], 1, takes.get) == [0.0, None, None]
    assert waits(["p"], [], 0, takes.get) == [None]


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (4, 2), (16, 4), (64, 8)])
def test_small_machines_take_two_runs_and_large_ones_share_their_cores(
    cores: int, workers: int
) -> None:
    assert default_workers(cores) == workers


def test_devices_are_counted_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1, 3")
    assert gpus() == ("1", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpus() == ()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", "")
    assert gpus() == ()


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
