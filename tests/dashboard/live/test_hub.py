"""The hub: what watchers see, in which order, and what is left when they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bokeh.document import Document

from scant.errors import NotFound
from scant.events import OPENING, Changed, Finished, Phase, Progress, Results, Started, State
from scant.store import Store
from scant_dashboard.live import hub as live
from scant_dashboard.live.broadcast import NEWEST, newest
from scant_dashboard.live.hub import Hub, Update
from scant_dashboard.live.run_state import OWN, RunState, TraceBuffer, load
from tests.dashboard.fakes import FakeService, point, report, snapshot


class Doc(Document):
    """A document whose turns a test hands out, like a browser that is slow or gone."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[Callable[[], None]] = []
        self.gone = False

    def add_next_tick_callback(self, callback: Callable[[], None]) -> None:  # type: ignore[override]
        if self.gone:
            raise AttributeError("destroyed")
        self.turns.append(callback)

    def take(self) -> None:
        self.turns.pop(0)()


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(Store.open(f"sqlite:///{tmp_path / 'runs.db'}"))


@pytest.fixture
def run(service: FakeService) -> str:
    return service.store.add_run("redshift", {}, "demo", "me")


def watched(hub: Hub, run: str) -> tuple[Doc, list[Update], live.Watcher]:
    doc, observed = Doc(), []
    watcher = hub.watch(doc, observed.append)
    watcher.follow(run)
    return doc, observed, watcher


def test_a_watcher_gets_each_point_once_and_the_latest_snapshot(
    service: FakeService, run: str
) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    service.say(run, Started("cpu", 10), point(1), snapshot(1))
    doc, observed, watcher = watched(hub, run)
    watcher.flush()
    service.say(run, point(2), snapshot(2))
    service.say(run, point(3), snapshot(3))
    watcher.schedule_update()
    doc.take()
    assert [u.first for u in observed] == [0, 1]
    assert observed[1].snapshot is not None
    assert observed[1].snapshot.step == 3
    assert list(observed[1].run.trace.step) == [1, 2, 3]


def test_who_began_a_run_is_shown_its_beginning_although_training_is_ahead(
    service: FakeService, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, now = Hub(service), [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    service.subscribe(hub.on_events)
    hub.history(run)
    service.say(run, Started("cpu", 300), Changed(State.RUNNING), snapshot(0))
    for k in range(1, 201):
        service.say(run, point(k), snapshot(k))
    service.say(run, Finished(State.CONVERGED, "It rests.", report()))
    doc, observed = Doc(), []
    watcher = hub.watch(doc, observed.append)
    watcher.follow(run, opening=True)
    watcher.up = False
    watcher.flush()  # while the page is being built
    watcher.up = True

    def shown() -> tuple[int, int, State, bool]:
        update = observed[-1]
        assert update.snapshot is not None
        trace = len(update.run.trace)
        return update.snapshot.step, trace, update.run.state, update.finished

    assert shown() == (0, 0, State.RUNNING, False)
    now[0] += live.OPENING_SECONDS + 1  # the page takes its time until it is in sight
    for step in OPENING:
        assert watcher.schedule_update()
        doc.take()
        if step != OPENING[-1]:
            assert not watcher.schedule_update()  # each stays in sight for a moment
        now[0] += live.FRAME
        watcher.acknowledge(observed[-1].number)
        assert observed[-1].run.trace.step.tolist() == list(range(1, step + 1))
    assert shown() == (OPENING[-1], OPENING[-1], State.RUNNING, False)
    assert watcher.schedule_update()
    doc.take()
    assert shown() == (200, 200, State.CONVERGED, True)
    assert not watcher.schedule_update()

    watcher.follow(run, opening=True)  # and once more, on the page that is in sight
    watcher.flush()
    now[0] += live.OPENING_SECONDS + 1  # a browser that is slow: it is shown no more of it
    watcher.flush()
    assert shown() == (200, 200, State.CONVERGED, True)


def test_a_stop_ends_the_beginning_of_a_run(service: FakeService, run: str) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    hub.history(run)
    service.say(run, Started("cpu", 300), snapshot(0), point(1), snapshot(1), point(2), snapshot(2))
    doc, observed = Doc(), list[Update]()
    watcher = hub.watch(doc, observed.append)
    watcher.follow(run, opening=True)
    watcher.flush()
    assert len(observed[-1].run.trace) == 0
    service.say(run, Finished(State.STOPPED, "As requested.", report()))
    assert watcher.schedule_update()
    doc.take()
    assert observed[-1].finished
    assert len(observed[-1].run.trace) == 2


def test_own_results_come_once_and_before_the_report(service: FakeService, run: str) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    service.say(run, Started("cpu", 300), Changed(State.RUNNING), point(1))
    _, observed, watcher = watched(hub, run)
    watcher.flush()
    service.say(run, Results(report()))
    watcher.flush()
    service.say(run, Phase("comparing with 2 other methods", 1, 2, 5.0))
    watcher.flush()
    assert [update.results is not None for update in observed] == [False, True, False]
    assert not any(update.finished for update in observed)
    service.say(run, Finished(State.FINISHED, "All steps are done.", report()))
    watcher.flush()
    assert (observed[-1].results, observed[-1].finished) == (None, True)


def test_what_follows_the_steps_is_in_the_store(service: FakeService, run: str) -> None:
    service.say(run, Started("cpu", 300), Changed(State.RUNNING), point(1))
    service.say(run, Phase("comparing with 2 other methods", 1, 2, 5.0), Results(report()))
    elsewhere = load(service.store, run)
    assert elsewhere.reason == "comparing with 2 other methods, 1 of 2 done, about 5 s left"
    assert elsewhere.report is None


def test_a_browser_that_has_not_drawn_the_last_updates_is_told_no_more(
    service: FakeService, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, now = Hub(service), [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    service.subscribe(hub.on_events)
    service.say(run, Started("cpu", 100), point(1))
    doc, observed, watcher = watched(hub, run)
    watcher.flush()

    def step(k: int) -> None:
        now[0] += live.TICK
        service.say(run, point(k))
        if watcher.schedule_update():
            doc.take()

    for k in range(2, 12):
        step(k)
    assert [u.number for u in observed] == [1, 2, 3]
    watcher.acknowledge(2)
    for k in range(12, 20):
        step(k)
    assert [u.number for u in observed] == [1, 2, 3, 4, 5]
    assert len(observed[-1].run.trace) >= 13  # what came meanwhile came with it
    service.say(run, Changed(State.PAUSED))
    assert watcher.schedule_update()  # a new state is told at once
    doc.take()
    service.say(run, point(30))
    assert not watcher.schedule_update()
    now[0] += live.ACK_TIMEOUT  # an answer was lost, or its browser is new
    assert watcher.schedule_update()


def test_few_watchers_are_updated_more_often_than_many(service: FakeService, run: str) -> None:
    hub = Hub(service)
    rounds = []
    for _ in range(live.CROWD + 1):
        watched(hub, run)
        rounds.append(len(hub.watchers) / hub.tick)
    assert hub.tick > live.TICK
    assert rounds[:2] == pytest.approx([1 / live.TICK, 2 / live.TICK])
    assert max(rounds[: live.CROWD]) == pytest.approx(live.UPDATES)


def test_one_of_many_has_a_turn_each_second_and_at_once_when_the_run_changes_state(
    service: FakeService, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, now = Hub(service), [100.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    service.subscribe(hub.on_events)
    service.say(run, Started("cpu", 10), point(1), snapshot(1))
    others = [watched(hub, run) for _ in range(live.CROWD)]
    doc, observed, watcher = watched(hub, run)
    watcher.flush()

    def tick() -> None:
        now[0] += 0.4
        watcher.schedule_update()
        while doc.turns:
            doc.take()

    for step in range(2, 8):
        service.say(run, point(step), snapshot(step))
        tick()
    service.say(run, snapshot(8), Finished(State.HIT_LIMIT, "Done.", report()))
    tick()
    assert [u.snapshot.step for u in observed if u.snapshot] == [1, 4, 7, 8]
    assert [u.first for u in observed] == [0, 1, 4, 7]
    assert len(others) == live.CROWD


def test_between_turns_a_crowd_is_told_the_newest_points_by_one_message(
    service: FakeService, run: str
) -> None:
    async def tick() -> list[list[Any]]:
        hub = Hub(service)
        service.subscribe(hub.on_events)
        service.say(run, Started("cpu", 10), point(1))
        crowd = [watched(hub, run) for _ in range(live.CROWD + 1)]
        for _, _, watcher in crowd:
            watcher.flush()
        service.say(run, point(2), point(3))
        crowd[0][2].pending = True  # this one is about to have a turn
        heard = [connected(doc) for doc, _, _ in crowd]
        await hub._round()
        await asyncio.sleep(0.01)
        return heard

    first, *others = asyncio.run(tick())
    assert first == []
    assert len(others) == live.CROWD
    assert all(told is others[0][0] for [told] in others)
    (event,) = others[0][0].content["events"]
    columns = dict(event["msg_data"]["entries"])
    assert event["msg_type"] == "scant_news"
    assert columns["step"] == [2.0, 3.0]
    assert columns["elbo"] == pytest.approx([point(2).elbo, point(3).elbo], rel=1e-5)


def test_news_hold_no_more_than_fits_one_message_and_say_where_a_value_is_not_finite() -> None:
    trace = TraceBuffer()
    for step in range(1, 2 * NEWEST):
        trace.append(Progress(step, float("nan") if step % 7 == 0 else step, 0.1, 0.0, 0.0, 0))
    (event,) = newest(trace, 3).content["events"]
    columns = dict(event["msg_data"]["entries"])
    assert columns["step"][-1] == 2 * NEWEST - 1
    assert columns["step"][0] >= NEWEST
    assert None in columns["elbo"]
    assert all(v is None or v % 7 for v in columns["elbo"])


@pytest.mark.parametrize(("browsers", "up", "ended"), [(0, True, 1), (1, True, 0), (0, False, 0)])
def test_a_session_ends_as_soon_as_its_browser_has_gone(
    service: FakeService, run: str, browsers: int, up: bool, ended: int
) -> None:
    hub, query = Hub(service), []
    doc, _, watcher = watched(hub, run)
    session = SimpleNamespace(
        connection_count=browsers, request_expiration=lambda: query.append("end")
    )
    doc._session_context = lambda: SimpleNamespace(session=session)  # type: ignore[assignment]
    watcher.up = up  # a page that is not up yet has had no browser
    watcher.expire_if_idle()
    assert len(query) == ended


def connected(doc: Doc) -> list[Any]:
    """Gives the document one browser; what that is sent."""
    heard: list[Any] = []

    async def send_message(message: Any) -> None:
        heard.append(message)

    connection = SimpleNamespace(_socket=SimpleNamespace(send_message=send_message))
    session = SimpleNamespace(_subscribed_connections=[connection], connection_count=1)
    doc._session_context = lambda: SimpleNamespace(session=session)  # type: ignore[assignment]
    return heard


def test_a_slow_session_is_asked_once_until_it_has_answered(service: FakeService, run: str) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    doc, observed, watcher = watched(hub, run)
    for step in range(1, 6):
        service.say(run, point(step))
        watcher.schedule_update()
    assert len(doc.turns) == 1
    doc.take()
    assert len(observed) == 1
    assert len(observed[0].run.trace) == 5
    watcher.schedule_update()
    assert doc.turns == []


def test_a_started_event_voids_the_points_after_its_step(service: FakeService, run: str) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    doc, observed, watcher = watched(hub, run)
    service.say(run, Started("cpu", 10), *(point(s) for s in range(1, 8)))
    watcher.schedule_update()
    doc.take()
    service.say(run, Started("cpu", 10, step=4), point(5))
    watcher.schedule_update()
    doc.take()
    assert observed[-1].first == 0
    assert list(observed[-1].run.trace.step) == [1, 2, 3, 4, 5]


def test_batches_that_the_store_already_held_are_not_added_twice(
    service: FakeService, run: str
) -> None:
    hub = Hub(service)
    service.say(run, Started("cpu", 10), point(1), point(2))
    history = hub.history(run)
    hub.on_events(run, [point(1), point(2), point(3)])
    assert list(history.trace.step) == [1, 2, 3]


def test_a_finished_run_is_read_from_the_store(service: FakeService, run: str) -> None:
    ending = Finished(State.CONVERGED, "Converged after step 2.", report())
    service.say(run, Started("cpu", 10), point(1), point(2), snapshot(2), ending)
    hub = Hub(service)
    _, observed, watcher = watched(hub, run)
    watcher.flush()
    assert observed[0].finished
    assert observed[0].run.state is State.CONVERGED
    assert observed[0].run.report is not None
    assert observed[0].run.report.metrics == report().metrics
    assert observed[0].snapshot is not None


def test_no_such_run_is_said(service: FakeService) -> None:
    with pytest.raises(NotFound, match="no run 'nonsense'"):
        Hub(service).history("nonsense")


def test_a_destroyed_session_leaves_and_the_others_go_on(service: FakeService, run: str) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    gone, _, dead = watched(hub, run)
    doc, observed, alive = watched(hub, run)
    gone.gone = True
    service.say(run, point(1))
    for watcher in (dead, alive):
        watcher.schedule_update()
    doc.take()
    assert hub.watchers == {alive}
    assert len(observed) == 1


def test_a_view_that_breaks_does_not_silence_its_session(service: FakeService, run: str) -> None:
    hub = Hub(service)
    service.subscribe(hub.on_events)
    calls = []

    def broken(update: Update) -> None:
        calls.append(update.first)
        raise RuntimeError("a fault in a plot")

    watcher = hub.watch(Doc(), broken)
    watcher.follow(run)
    for step in (1, 2):
        service.say(run, point(step))
        watcher.flush()
    assert calls == [0, 1]


def test_the_ticking_hub_pokes_and_forgets(
    service: FakeService, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TICK", 0.01)
    monkeypatch.setattr(live, "FORGET", 0.0)

    async def main() -> tuple[int, int]:
        hub = Hub(service)
        hub.start()
        doc, _, watcher = watched(hub, run)
        service.say(run, point(1))
        for _ in range(200):
            await asyncio.sleep(0.01)
            if doc.turns:
                break
        watcher.close()
        for _ in range(200):
            await asyncio.sleep(0.01)
            if not hub._histories:
                break
        hub.close()
        return len(doc.turns), len(hub._histories)

    assert asyncio.run(main()) == (1, 0)
    assert service.watchers == []


def test_a_long_curve_grows_without_loss() -> None:
    trace = TraceBuffer()
    for step in range(1, 3001):
        trace.append(Progress(step, float("nan") if step == 7 else step, 0.1 * step, step, step))
    assert len(trace) == 3000
    assert np.array_equal(trace.step, np.arange(1, 3001))
    assert np.isnan(trace.elbo[6])
    assert list(trace.upto(3).step) == [1, 2, 3]


def test_pace_and_time_left(service: FakeService, run: str) -> None:
    history = RunState(run, service.store.run(run))
    history.apply([Started("cpu", 100, 0, {"rows": 5}), *(point(s) for s in range(1, 11))])
    assert history.metadata == {"rows": 5, OWN: False}
    assert history.pace == pytest.approx(0.1)
    assert history.remaining == pytest.approx(9.0)
    assert load(service.store, run).state is State.QUEUED
