"""Runs on real worker processes: watched, paused, stopped, killed, and gone on with."""

from __future__ import annotations

import platform
import signal
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput, NotFound, Unavailable
from scant.events import Finished, Note, Progress, Queued, Report, Snapshot, Started, State
from scant.runs import questions, service
from scant.runs.dispatch import pool
from scant.runs.workers.task import FAULT, TOPIC
from tests.engine.runs.driver import Driver, database, in_process, trust_toy
from toy import entry, memory

pytestmark = [pytest.mark.usefixtures("toy"), pytest.mark.timeout(180), pytest.mark.slow]
SLOW = {"delay": 0.02, "max_steps": 4000}


@pytest.fixture(scope="module")
def driver(toy: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    trust_toy()
    driver = Driver(database(tmp_path_factory.mktemp("runs")), workers=2, limit_per_owner=4)
    yield driver
    driver.close()


def test_a_run_is_watched_from_queue_to_report_and_stands_in_the_store(driver: Driver) -> None:
    run = driver.submit(max_steps=30, restarts=2)
    assert driver.end(run) is State.HIT_LIMIT
    assert driver.states(run) == [State.QUEUED, State.STARTING, State.RUNNING, State.HIT_LIMIT]
    assert driver.steps(run) == list(range(1, 61))
    message = driver.said[run]
    (started,) = [e for e in message if isinstance(e, Started)]
    assert (started.device, started.total_steps) == ("cpu", 60)
    assert Note("The toy is a toy.") in message
    assert any(isinstance(e, Snapshot) for e in message)
    record = driver.store.run(run)
    assert (record.state, record.total_steps, record.attempt) == (State.HIT_LIMIT, 60, 1)
    assert len(record.data_hash) == 64
    assert driver.curve(run) == in_process(max_steps=30, restarts=2)
    end = message[-1]
    stored = driver.store.report(run)
    assert stored.metrics == end.report.metrics
    assert driver.store.model(run)


def test_a_demonstration_is_made_ahead_by_one_worker_once(driver: Driver) -> None:
    def made() -> int:
        return sum(driver.on(None, entry.times_made).values())

    before = made()
    for _ in range(3):  # as often as its page is opened
        driver.loop.call_soon_threadsafe(driver.service.prefetch_demo, "toy")
    driver.until(lambda: made() > before, "the demonstration")
    driver.end(driver.submit(max_steps=1))  # asks for it, too; what was begun is over by then
    assert made() == before + 2


def test_no_demonstration_is_made_ahead_without_workers(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    query: set[str] = {"toy"}
    monkeypatch.setattr(driver.service.questions, "_prefetched", query)
    monkeypatch.setattr(driver.service.dispatcher.pool, "slots", {})
    driver.call(driver.service.questions._prefetch_demo("toy"))
    assert query == set()  # the next who opens the page asks again


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_workers_keep_the_memory_that_every_step_needs_again(driver: Driver) -> None:
    """Dask would have it handed back to the system at once; half of the time is lost to that."""
    result = driver.on(None, memory.pages_of_steps)
    assert len(result) == 2
    assert max(result.values()) < memory.PAGES_OF_ONE


def test_the_scheduler_keeps_no_message_of_a_run(driver: Driver) -> None:
    """Each may have a checkpoint of tens of megabytes."""
    driver.end(driver.submit(max_steps=20))
    scheduler = driver.service.lifecycle.client._cluster.local.scheduler
    topic = scheduler._broker._topics[TOPIC]
    assert topic.count > 0
    assert not topic.events


def test_what_watchers_hear_is_in_the_store_already(driver: Driver) -> None:
    behind = []

    def check(run: str, events: list) -> None:
        for event in events:
            if isinstance(event, Progress) and driver.store.trace(run).step[-1] < event.step:
                behind.append(event)
            if isinstance(event, Finished) and driver.store.run(run).state is not event.state:
                behind.append(event)

    unsubscribe = driver.service.subscribe(check)
    run = driver.submit(max_steps=200, delay=0.002)
    driver.end(run)
    unsubscribe()
    assert behind == []


def test_stop_is_answered_at_the_next_step_and_leaves_a_model(driver: Driver) -> None:
    run = driver.submit(**SLOW)
    driver.until_step(run, 5)
    driver.stop(run)
    query = driver.store.trace(run).step[-1]
    assert driver.end(run) is State.STOPPED
    assert State.STOPPING in driver.states(run)
    assert driver.steps(run)[-1] - query <= 25  # half a second of steps on a busy machine
    assert driver.store.model(run)


def test_a_paused_and_resumed_run_is_the_uninterrupted_run(driver: Driver) -> None:
    run = driver.submit(max_steps=120, delay=0.01, seed=4)
    for _ in range(2):
        before = len(driver.steps(run))
        driver.until(lambda n=before: len(driver.steps(run)) > n + 5, "some steps")
        driver.pause(run)
        driver.until_state(run, State.PAUSED)
        assert driver.store.run(run).state is State.PAUSED
        driver.resume(run)
        driver.until_state(run, State.RUNNING)
    driver.end(run)
    assert driver.curve(run) == in_process(max_steps=120, seed=4)
    assert driver.steps(run) == list(range(1, 121))


def test_a_paused_run_can_be_stopped_into_a_usable_model(driver: Driver) -> None:
    run = driver.submit(**SLOW)
    driver.until_step(run, 3)
    driver.pause(run)
    driver.until_state(run, State.PAUSED)
    steps = driver.steps(run)
    driver.stop(run)
    assert driver.end(run) is State.STOPPED
    assert driver.steps(run) == steps
    assert driver.store.model(run)


def test_pause_taken_back_at_once_leaves_the_run_running(driver: Driver) -> None:
    run = driver.submit(max_steps=100, delay=0.01)
    driver.until_step(run, 3)
    driver.pause(run)
    driver.resume(run)
    assert driver.end(run) is State.HIT_LIMIT
    assert driver.curve(run) == in_process(max_steps=100)


def test_a_wish_before_the_worker_has_answered_is_not_lost(driver: Driver) -> None:
    run = driver.submit(**SLOW)
    driver.pause(run)
    driver.until_state(run, State.PAUSED)
    driver.resume(run)
    driver.stop(run)
    assert driver.end(run) is State.STOPPED


def test_a_wish_that_is_lost_on_its_way_is_told_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, lost = driver.service.lifecycle.client, []
    tell = desk.tell

    async def second(*arguments: Any) -> None:
        if lost:
            await tell(*arguments)
        lost.append(arguments)

    monkeypatch.setattr(desk, "tell", second)
    run = driver.submit(**SLOW)
    driver.until_step(run, 3)
    driver.pause(run)
    driver.until_state(run, State.PAUSED)
    assert len(lost) > 1
    driver.stop(run)
    assert driver.end(run) is State.STOPPED


def test_owners_take_turns_and_a_queued_run_knows_its_place(driver: Driver) -> None:
    busy = [driver.submit(owner, **SLOW) for owner in ("ada", "bob")]
    for run in busy:
        driver.until_step(run, 1)
    ada = [driver.submit("ada", max_steps=3) for _ in range(3)]
    bob = driver.submit("bob", max_steps=3)
    waiting = [ada[0], bob, ada[1], ada[2]]
    driver.until(lambda: any(isinstance(e, Queued) for e in driver.said[bob]), "a place")
    driver.until(lambda: [driver.service.place(r) for r in waiting] == [1, 2, 3, 4], "the order")
    places = [e for e in driver.said[bob] if isinstance(e, Queued)]
    assert places[-1].place == 2
    with pytest.raises(BadInput, match="4 runs queued or running, and the limit"):
        driver.submit("ada")
    driver.stop(ada[2])
    assert driver.end(ada[2]) is State.STOPPED
    assert "never started" in driver.store.run(ada[2]).reason
    assert driver.store.model(ada[2]) is None
    driver.pause(ada[1])
    driver.until_state(ada[1], State.PAUSED)
    driver.stop(ada[1])
    assert driver.end(ada[1]) is State.STOPPED
    for run in busy:
        driver.stop(run)
    for run in (*busy, ada[0], bob):
        driver.end(run)


def test_a_killed_worker_costs_no_point_of_the_curve(driver: Driver) -> None:
    values = {"max_steps": 150, "delay": 0.01, "seed": 9}
    run = driver.submit(**values)
    driver.until_checkpoint(run)
    driver.until_step(run, driver.store.checkpoint(run).step + 5)
    driver.kill_worker(run)
    assert driver.end(run) is State.HIT_LIMIT
    record = driver.store.run(run)
    assert (record.attempt, record.losses) == (2, 1)
    (note,) = [text for text in driver.store.notes(run) if "lost" in text]
    step = int(note.rstrip(".").split()[-1])
    assert step > 0
    assert [e.step for e in driver.said[run] if isinstance(e, Started)] == [0, step]
    assert driver.curve(run) == in_process(**values)


def test_a_run_that_kills_its_workers_is_given_up(driver: Driver) -> None:
    run = driver.submit(**SLOW)
    for attempt in range(1, 5):
        driver.until(lambda n=attempt: driver.store.run(run).attempt == n, "the next attempt")
        driver.until(
            lambda: getattr(driver.service.lifecycle.live[run], "worker", None), "its worker"
        )
        driver.kill_worker(run)
    assert driver.end(run) is State.FAILED
    reason = driver.store.run(run).reason
    assert "lost 4 times (the process died or could not be reached); train again" in reason


def test_a_worker_that_falls_silent_is_replaced(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 4.0)
    values = {"max_steps": 150, "delay": 0.01, "seed": 8}
    run = driver.submit(**values)
    driver.until_checkpoint(run)
    driver.kill_worker(run, signal.SIGSTOP)
    assert driver.end(run) is State.HIT_LIMIT
    assert driver.store.run(run).losses >= 1
    assert driver.curve(run) == in_process(**values)
    driver.until(lambda: driver.service.status().workers == 2, "the new worker")


def test_a_worker_that_computes_without_a_word_keeps_its_run(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 3.0)
    run = driver.submit(max_steps=60, seize_at=20, seize=2 * pool.SILENCE_SECONDS)
    assert driver.end(run) is State.HIT_LIMIT
    record = driver.store.run(run)
    assert (record.attempt, record.losses) == (1, 0)


def test_workers_that_are_all_gone_are_brought_up_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "GONE_SECONDS", 3.0)
    run = driver.submit(max_steps=150, delay=0.01)
    driver.until_step(run, 5)
    driver.loop.call_soon_threadsafe(driver.service.lifecycle.client._cluster.local.scale, 0)
    assert driver.end(run) is State.HIT_LIMIT
    assert driver.curve(run) == in_process(max_steps=150)
    assert driver.service.healthy()


def test_predictions_come_while_workers_train(driver: Driver) -> None:
    fitted = driver.submit(max_steps=20)
    driver.end(fitted)
    busy = [driver.submit(owner, **SLOW) for owner in ("ada", "bob")]
    for run in busy:
        driver.until_step(run, 1)
    table = pd.DataFrame({"y": [1.0, 2.0], "other": ["a", "b"]}, index=[7, 3])
    predicted = driver.call(driver.service.predict(fitted, table))
    assert predicted[["y", "other"]].equals(table)
    assert predicted["mean"].notna().all()
    file = table.to_csv(index=False).encode()
    answer = driver.call(driver.service.predict_file(fitted, "mine.csv", file))
    with ZipFile(BytesIO(answer.content)) as made:
        assert made.namelist() == ["predictions.csv", "columns.md"]
        own = pd.read_csv(made.open("predictions.csv"))
    assert own["other"].tolist() == ["a", "b"]
    np.testing.assert_allclose(own["mean"], predicted["mean"])
    with pytest.raises(BadInput, match=r"no\.csv"):
        driver.call(driver.service.predict_file(fitted, "no.csv", b"other\na\n"))
    report = driver.store.report(fitted)
    assert isinstance(report, Report)
    shifted = driver.call(driver.service.explore(fitted, "shifted", {"by": 2.0}))["mean"]
    np.testing.assert_allclose(shifted, report.arrays["mean"] + 2)
    with pytest.raises(BadInput, match="no column 'y'"):
        driver.call(driver.service.predict(fitted, table[["other"]]))
    with pytest.raises(NotFound, match="no fitted model"):
        driver.call(driver.service.explore(busy[0], "shifted", {"by": 1.0}))
    for run in busy:
        driver.stop(run)
        driver.end(run)


def test_a_cold_worker_is_sent_the_model(driver: Driver) -> None:
    run = driver.submit(max_steps=10)
    driver.end(run)
    known, slots = driver.service.dispatcher.warm, driver.service.dispatcher.pool.slots
    warm = known.worker(run)
    cold = next(address for address in slots if address != warm)
    for address in (cold, warm):
        known.remember(run, address)
        assert driver.call(driver.service.explore(run, "shifted", {"by": 0.0}))


def test_a_question_waits_for_a_worker(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    run = driver.submit(max_steps=10)
    driver.end(run)
    driver.kill(driver.service.dispatcher.warm.worker(run))
    assert driver.call(driver.service.explore(run, "shifted", {"by": 0.0}))
    driver.until(lambda: driver.service.status().workers == 2, "the new worker")
    monkeypatch.setattr(questions, "PATIENCE", 0.5)
    monkeypatch.setattr(type(driver.service.questions), "_choose", nobody)
    with pytest.raises(Unavailable):
        driver.call(driver.service.explore(run, "shifted", {"by": 0.0}))


def nobody(*_: object) -> None:
    raise Unavailable("No worker is up at the moment; try again in a few seconds.")


def test_an_upload_travels_to_the_worker(driver: Driver) -> None:
    frame = pd.DataFrame({"y": np.full(30, 5.0)})
    upload = driver.store.add_upload(frame, owner="ada", name="y.csv", study="toy")
    run = driver.submit(data=f"upload:{upload}", max_steps=400)
    assert driver.end(run) is State.HIT_LIMIT
    report = driver.store.report(run)
    np.testing.assert_allclose(report.arrays["mean"], 5, atol=0.5)


def test_large_tables_go_past_the_scheduler_to_a_worker_each(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask warned of large graphs; a task also goes to whichever worker has its data."""
    warned: list[str] = []
    monkeypatch.setattr("distributed.client.warnings.warn", lambda w, *_, **__: warned.append(w))
    frame = pd.DataFrame({"y": np.random.default_rng(0).normal(5, 0.1, 1_500_000)})  # 12 MB
    upload = driver.store.add_upload(frame, owner="ada", name="y.csv", study="toy")
    runs = [driver.submit(data=f"upload:{upload}", **SLOW) for _ in range(2)]
    for run in runs:
        driver.until_step(run, 1)
    assert len({driver.service.lifecycle.live[run].worker for run in runs}) == 2
    driver.kill_worker(runs[0])
    driver.until(lambda: driver.store.run(runs[0]).attempt == 2, "another attempt")
    for run in runs:
        driver.until_state(run, State.RUNNING)
        driver.until_checkpoint(run)
        driver.stop(run)
    assert [driver.end(run) for run in runs] == [State.STOPPED] * 2
    assert not [w for w in warned if "large graph" in str(w)]
    assert driver.service.lifecycle.client._placed == {}


def test_bad_input_found_by_the_worker_is_the_reason_word_for_word(driver: Driver) -> None:
    run = driver.submit(refuse=True)
    assert driver.end(run) is State.FAILED
    assert driver.store.run(run).reason == "Column 'y' of the table cannot be used; mend it."


def test_code_that_breaks_fails_the_run_and_not_the_worker(driver: Driver) -> None:
    run = driver.submit(break_at=4)
    assert driver.end(run) is State.FAILED
    assert driver.store.run(run).reason == FAULT
    assert driver.steps(run) == [1, 2, 3]
    assert driver.end(driver.submit(max_steps=2)) is State.HIT_LIMIT


def test_divergence_reaches_watchers_with_its_point(driver: Driver) -> None:
    run = driver.submit(nan_at=4)
    assert driver.end(run) is State.DIVERGED
    assert np.isnan(driver.store.trace(run).elbo).tolist() == [False, False, False, True]


def test_bad_input_at_submission_leaves_nothing_behind(driver: Driver) -> None:
    before = len(driver.store.runs())
    for values in ({"max_steps": 0}, {"nonsense": 1}):
        with pytest.raises(BadInput, match=r"max_steps|nonsense"):
            driver.submit(**values)
    with pytest.raises(BadInput, match="has no data 'moon'"):
        driver.submit(data="moon")
    with pytest.raises(NotFound, match="no upload 'x'"):
        driver.submit(data="upload:x")
    with pytest.raises(NotFound, match="no study 'moon'"):
        driver.call(driver.service.submit("moon", {}, "demo", "ada"))
    for command in (driver.service.stop, driver.service.pause, driver.service.resume):
        with pytest.raises(NotFound, match="no run 'nope'"):
            driver.call(command("nope", "ada"))
    assert len(driver.store.runs()) == before


def test_commands_to_a_run_that_is_over_do_nothing(driver: Driver) -> None:
    run = driver.submit(max_steps=3)
    driver.end(run)
    for command in (driver.service.stop, driver.service.pause, driver.service.resume):
        driver.call(command(run, "ada"))
    assert driver.store.run(run).state is State.HIT_LIMIT


def test_a_watcher_that_fails_harms_no_other(driver: Driver) -> None:
    unsubscribe = driver.service.subscribe(lambda run, events: 1 / 0)
    run = driver.submit(max_steps=3)
    assert driver.end(run) is State.HIT_LIMIT
    unsubscribe()
    unsubscribe()


def test_the_service_tells_how_it_stands(driver: Driver) -> None:
    """Asked from another thread: the last test's run ended for it before all its watchers knew."""
    driver.until(lambda: driver.service.status() == service.Status(2, 0, 0), "two idle workers")
    assert driver.service.healthy()
