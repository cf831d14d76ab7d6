"""Runs that another server on the same database trains: read from the store, not from its words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bokeh.document import Document
from safetensors.torch import save

from scant.events import Checkpoint, Finished, Progress, Started, State
from scant.store import Store
from scant.training.checkpoint_format import FORMAT, OTHER_VERSION
from scant_dashboard.live import hub as live
from scant_dashboard.live.hub import Hub
from scant_dashboard.live.run_state import fresh, load
from tests.dashboard.fakes import FakeService, point, report, snapshot


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeService:
    """A server that cares for no run."""
    monkeypatch.setattr(live, "ELSEWHERE", 0.02)
    made = FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}"))
    monkeypatch.setattr(made, "owns", lambda run: False)
    return made


def test_a_history_catches_up_with_the_store_point_by_point(service: FakeService) -> None:
    store = service.store
    run = store.add_run("redshift", {}, "demo", "me")
    store.write(run, [Started("cpu", 10), point(1), point(2), snapshot(2)])
    history = load(store, run)
    shown = history.snapshot
    assert fresh(store, history) is None
    store.write(run, [point(3)])
    result = fresh(store, history)
    assert result is not None
    history.catch_up(result)
    assert (history.trace.step.tolist(), history.trace.epoch) == ([1, 2, 3], 0)
    assert history.snapshot is shown
    store.write(run, [Started("cpu", 10, 1), Progress(2, -9.0, 0.2, -9.0, -9.0), snapshot(2)])
    result = fresh(store, history)
    assert result is not None
    history.catch_up(result)
    assert (history.trace.step.tolist(), history.trace.epoch) == ([1, 2], 1)  # drawn anew


def test_a_curve_is_read_on_from_where_it_was_unless_it_went_on_from_before(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = service.store
    run = store.add_run("redshift", {}, "demo", "me")
    store.write(run, [Started("cpu", 10), *(point(i) for i in range(1, 6))])
    history = load(store, run)
    asked: list[int] = []
    read = store.trace
    monkeypatch.setattr(
        store, "trace", lambda run, first: (asked.append(first), read(run, first))[1]
    )
    store.write(run, [point(6), point(7)])
    result = fresh(store, history)
    assert result is not None
    assert asked == [5]
    assert result.trace.step.tolist() == list(range(1, 8))
    assert result.trace.elbo.tolist() == read(run).elbo.tolist()
    history.catch_up(result)
    store.write(
        run, [Started("cpu", 10, 3), *(Progress(i, -9.0, 0.2, -9.0, -9.0) for i in range(4, 9))]
    )
    result = fresh(store, history)
    assert result is not None
    assert asked == [5, 7, 0]
    assert result.trace.elbo.tolist() == read(run).elbo.tolist()


def test_watchers_see_what_another_server_puts_down_to_the_end(service: FakeService) -> None:
    async def story() -> None:
        store = service.store
        run = store.add_run("redshift", {}, "demo", "me")
        hub, observed = Hub(service), []
        watcher = hub.watch(
            Now(), lambda update: observed.append((update.run.state, update.run.step))
        )
        watcher.follow(run)
        hub.start()
        for step in (1, 2):
            store.write(run, [Started("cpu", 10, step - 1), point(step)])
            store.update_run(run, state=State.RUNNING)
            await until(lambda s=step: observed and observed[-1] == (State.RUNNING, s))
        store.write(run, [Finished(State.CONVERGED, "It converged.", report())])
        await until(lambda: observed[-1] == (State.CONVERGED, 2))
        hub.close()

    asyncio.run(asyncio.wait_for(story(), 60))


class Now(Document):
    """A document that is free at once."""

    def add_next_tick_callback(self, callback: Callable[[], None]) -> None:  # type: ignore[override]
        callback()


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("checkpoint_format", "reason"), [(1, OTHER_VERSION), (FORMAT, "Step 4.")])
def test_a_paused_run_says_before_it_is_resumed_that_another_version_began_it(
    service: FakeService, checkpoint_format: int, reason: str
) -> None:
    run = service.store.add_run("redshift", {}, "demo", "me")
    blob = save({}, metadata={"loop": json.dumps({"format": checkpoint_format})})
    service.store.write(run, [Checkpoint(4, blob), Finished(State.PAUSED, "Step 4.")])
    assert load(service.store, run).reason == reason
