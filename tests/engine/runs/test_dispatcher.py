"""What is decided over a run while something else is decided over it, or the database is away."""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import Callable

import pytest
from sqlalchemy import insert, select

from scant.events import Finished, State, encode
from scant.runs import leases
from scant.runs.background import Background
from scant.runs.workers.protocol import Message
from scant.store import Store, TakenOver, claims, schema
from scant.store.clock import now
from scant.store.records import TEMPORARY
from tests.engine.runs.fake_worker_client import running, service, until
from tests.engine.runs.test_store_trouble import locked

pytestmark = pytest.mark.usefixtures("toy", "quick")


async def test_a_run_that_is_paused_on_its_way_to_a_worker_rests(url: str) -> None:
    """It used to begin, and to go on when its worker had paused it."""
    server, client = service(url)
    await server.start()
    run = await server.submit("toy", {}, "demo", "ada")
    async with server.lifecycle.turns.of(run):  # as a click has it that came before
        await until(lambda: server.lifecycle.live[run].assigned)
        await server.steering.pause(run)
    await until(lambda: server.store.run(run).state is State.PAUSED)
    assert client.begun == []
    assert not server.owns(run)
    await server.resume(run, "ada")
    await until(lambda: client.begun)
    await server.close(0.1)


async def test_a_server_that_has_hours_to_put_down_closes_though_its_database_is_locked(
    url: str,
) -> None:
    server, _, run = await running(url)
    await until(lambda: server.policy._used.get(run))
    with locked(url):
        await asyncio.wait_for(server.close(0.1), 20)


@pytest.mark.slow
async def test_servers_that_could_not_say_that_they_live_are_given_the_time_to(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a database was away for all, who came back first took the runs of all others."""
    monkeypatch.setattr(leases, "ADOPT_SECONDS", 2.0)
    monkeypatch.setattr(leases, "AWAY_SECONDS", 1.0)
    monkeypatch.setattr(claims, "DEAD_SECONDS", 1.0)
    server, _ = service(url)
    await server.start()
    theirs = server.store.add_run("toy", {}, "demo", "bob", server="theirs")
    with server.store.engine.begin() as db:
        row = {"id": "theirs", "host": "elsewhere", "pid": 1, "born": 1.0, "beat": now()}
        db.execute(insert(schema.SERVERS).values(row))
    with locked(url):
        await asyncio.sleep(2.5)
    await until(lambda: not server.storing())
    await asyncio.sleep(0.3)
    claimed = select(schema.CLAIMS.c.server).where(schema.CLAIMS.c.run == theirs)
    with server.store.engine.connect() as db:
        assert db.execute(claimed).scalar() == "theirs"
    await until(lambda: server.owns(theirs))  # as they never come
    await server.close(0.1)


async def test_runs_that_come_into_care_while_the_database_is_asked_are_taken_up_once(
    url: str,
) -> None:
    server, client, run = await running(url)
    record = server.store.run(run)

    async def ask(_: Callable[[], object]) -> list:
        return [record]

    await server.leases.adopt(ask)
    await server.stop(run, "ada")
    client.say(Finished(State.STOPPED, "After step 1."))
    await until(lambda: server.store.run(run).state is State.STOPPED)
    assert [job["attempt"] for job in client.begun] == [1]
    assert not any("restarted" in note for note in server.store.notes(run))
    await server.close(0.1)


async def test_a_message_does_not_stay_in_memory_until_the_next(url: str) -> None:
    server, client, run = await running(url)
    message = Message(run, 1, "worker", encode([]))
    alive = weakref.ref(message)
    client.inbox.put_nowait(message)
    del message
    await until(lambda: alive() is None)
    await server.close(0.1)


@pytest.mark.parametrize(
    ("error", "level"), [(TakenOver("run"), logging.INFO), (ValueError("of us"), logging.ERROR)]
)
def test_what_fails_aside_leaves_one_line(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def fail() -> None:
        raise error

    async def story() -> None:
        Background().spawn(fail())
        await until(lines)

    def lines() -> list[int]:
        names = ("asyncio", "scant.runs.background")
        return [line.levelno for line in caplog.records if line.name in names]

    asyncio.run(story())
    assert lines() == [level]


async def test_a_run_that_ended_in_its_last_second_is_not_given_up(url: str) -> None:
    """Its end waits for its turn while the meter, whose hours it used, has its own."""
    server, client, run = await running(url)
    live = server.lifecycle.live[run]
    async with server.lifecycle.turns.of(run):
        giving_up = asyncio.create_task(server.policy._give_up(live, live.attempt, 1.0))
        await asyncio.sleep(0)  # it waits for its turn, before …
        client.say(Finished(State.CONVERGED, "At rest."))
        await until(lambda: live.over)
    await giving_up
    await until(lambda: server.store.run(run).state is State.CONVERGED)
    await server.close(0.1)


async def test_a_server_that_closes_while_it_starts_lets_that_end_first(url: str) -> None:
    server, client = service(url)
    connecting, goes = 0, asyncio.Event()

    async def connect() -> None:
        nonlocal connecting
        connecting += 1
        await goes.wait()

    client.connect = connect  # type: ignore[method-assign]
    server.begin()
    started = asyncio.create_task(server.start())
    await until(lambda: connecting)
    closed = asyncio.create_task(server.close())
    await asyncio.sleep(0.05)
    assert not closed.done()
    assert not started.done()
    goes.set()
    await asyncio.gather(started, closed)
    assert connecting == 1


async def test_a_discarded_run_ends_without_a_result_and_is_deleted(url: str) -> None:
    server, client, run = await running(url)
    waiting = await server.submit("toy", {}, "demo", "ada")
    for one in (waiting, run, "none"):
        await server.discard(one)
    assert client.told[-1] == (run, "abandon")
    assert server.lifecycle.live == {}
    assert server.status().queued == 0
    assert all(record.demonstration for record in server.store.runs())
    client.say(Finished(State.FINISHED, "too late"))
    again = await server.submit("toy", {}, "demo", "ada")
    await until(lambda: client.begun[-1]["run"] == again)  # the worker is free
    await server.close(0.1)


async def test_a_temporary_run_is_not_continued_by_another_server(url: str) -> None:
    first, _ = service(url)
    run = first.store.add_run("toy", {}, "demo", f"{TEMPORARY}CODE", server="gone")
    await first.start()
    await until(lambda: all(record.demonstration for record in first.store.runs()))
    assert not first.owns(run)
    await first.close(0.1)


def test_ended_temporary_runs_of_an_earlier_server_are_deleted(url: str) -> None:
    store = Store.open(url)
    left, fresh, other = (
        store.add_run("toy", {}, "demo", owner)
        for owner in (f"{TEMPORARY}A", f"{TEMPORARY}B", "ada")
    )
    for run, ended in ((left, 0.0), (fresh, time.time()), (other, 0.0)):
        store.update_run(run, state=State.FINISHED, finished=ended)
    store.delete_temporary_runs()
    assert {run.id for run in store.runs()} == {fresh, other}
