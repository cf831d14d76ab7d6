"""The database locked, full, gone or slow for a while: no step is lost, nothing hangs for ever."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from scant.errors import Unavailable
from scant.events import Checkpoint, Finished, Note, Progress, Report, Snapshot, Started, State
from scant.runs import RunService, backlog, store_writer
from scant.runs.dispatch import pool, turns
from scant.runs.workers.protocol import Ended
from scant.store import Store, StoreTrouble
from tests.engine.runs.fake_worker_client import running, service, until

pytestmark = pytest.mark.usefixtures("toy", "quick")


@contextmanager
def locked(url: str) -> Iterator[None]:
    """The database, locked by another program."""
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    yield
    other.execute("ROLLBACK")
    other.close()


@contextmanager
def full(store: Store) -> Iterator[None]:
    """The database on a disk that has no room left."""
    limit = [1]

    def checkout(connection: Any, *_: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={limit[0]}")

    event.listen(store.engine, "checkout", checkout)
    yield
    limit[0] = 2**30


def step(number: int) -> Progress:
    return Progress(number, -1.0 / number, 0.1 * number, -1.0, -1.0)


def bobs(server: RunService) -> list[str]:
    return [record.id for record in server.store.runs("bob") if not record.demonstration]


def steps_of(server: RunService, run: str) -> list[int]:
    return server.store.trace(run).step.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["locked", "full"])
async def test_what_is_said_while_the_database_is_in_trouble_is_stored_when_it_is_not(
    url: str, trouble: str
) -> None:
    server, client, run = await running(url)
    published: list[int] = []
    server.subscribe(  # the first step may be stored and its word still on its way
        lambda _, said: published.extend(
            e.step for e in said if isinstance(e, Progress) and e.step > 1
        )
    )
    with locked(url) if trouble == "locked" else full(server.store):
        for number in range(2, 200):
            shot = Snapshot(number, {"a": np.random.default_rng(number).normal(size=2000)})
            client.say(step(number), shot)
        client.say(Checkpoint(199, b"c" * 5000), Finished(State.CONVERGED, "It converged."))
        client.inbox.put_nowait(Ended(run, 1))
        await until(server.storing)
        assert ("locked by another" if trouble == "locked" else "full") in server.storing()
        await asyncio.sleep(0.2)
        assert server.store.run(run).state is State.RUNNING
        assert len(published) < 198  # nobody is told of what is not stored
        assert server.healthy()
    await until(lambda: server.store.run(run).state is State.CONVERGED)
    assert steps_of(server, run) == list(range(1, 200))
    await until(lambda: not server.owns(run))
    assert published == list(range(2, 200))
    assert server.store.run(run).losses == 0
    assert server.storing() == ""
    await server.close(0.1)


@pytest.mark.slow
async def test_a_worker_that_is_heard_is_not_given_up_while_the_server_waits_for_its_database(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SILENCE_SECONDS", 0.5)
    server, client, run = await running(url)
    with locked(url):
        for number in range(2, 22):
            client.say(step(number))
            await asyncio.sleep(0.1)
    await until(lambda: steps_of(server, run)[-1] == 21)
    assert server.store.run(run).losses == 0
    client.say(Finished(State.CONVERGED, "It converged."))
    await until(lambda: not server.owns(run))
    await server.close(0.1)


async def test_a_worker_lost_meanwhile_is_a_loss_when_that_can_be_written_and_the_run_goes_on(
    url: str,
) -> None:
    server, client, run = await running(url)
    with locked(url):
        client.say(step(2), Checkpoint(2, b"two"), step(3))
        client.inbox.put_nowait(Ended(run, 1, "KilledWorker"))
        await until(server.storing)
        assert len(client.begun) == 1
        assert server.store.run(run).losses == 0
    await until(lambda: len(client.begun) == 2)
    assert client.checkpoints[1] == b"two"
    assert server.store.run(run).losses == 1
    assert any("going on from step 2" in note for note in server.store.notes(run))
    assert steps_of(server, run) == [1, 2, 3]
    await server.close(0.1)


async def test_a_run_is_given_up_only_when_that_is_written(url: str) -> None:
    server, client, run = await running(url)
    for attempt in range(1, 4):
        client.inbox.put_nowait(Ended(run, attempt, "KilledWorker"))
        await until(lambda n=attempt: len(client.begun) == n + 1)
    with locked(url):
        client.inbox.put_nowait(Ended(run, 4, "KilledWorker"))
        await until(server.storing)
        await asyncio.sleep(0.2)
        assert server.owns(run)
    await until(lambda: not server.owns(run))
    assert server.store.run(run).state is State.FAILED
    assert "lost 4 times (KilledWorker)" in server.store.run(run).reason
    await server.close(0.1)


async def test_a_visitor_hears_within_seconds_that_nothing_can_be_stored_and_nothing_is_half_done(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(turns, "ACT_SECONDS", 1.0)
    server, client, run = await running(url)
    with locked(url):
        with pytest.raises(StoreTrouble, match="cannot store anything at the moment"):
            await server.submit("toy", {}, "demo", "bob")  # the first to meet the trouble
        for act in (server.pause, server.stop, server.resume):
            with pytest.raises(Unavailable, match="database"):
                await act(run, "ada")
        with pytest.raises(StoreTrouble):
            await server.submit("toy", {}, "demo", "bob")
        assert client.told == []
    await until(lambda: not server.storing())
    await until(lambda: not server.leases.coming)
    assert bobs(server) == []
    assert server.store.run(run).state is State.RUNNING
    await server.pause(run, "ada")
    assert client.told == [(run, "pause")]
    await server.close(0.1)


async def test_an_answer_that_was_lost_makes_no_double_and_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit succeeds and the connection breaks before the answer."""

    def losing(call: Callable[..., Any]) -> Callable[..., Any]:
        lost: list[bool] = []

        def losing_once(*given: Any, **named: Any) -> Any:
            result = call(*given, **named)
            if not lost:
                lost.append(True)
                raise StoreTrouble
            return result

        return losing_once

    server, client, run = await running(url)
    for name in (
        "write",
        "add_run_from",
        "acquire_orphans",
        "begin_attempt",
        "update_run",
        "claim",
    ):
        monkeypatch.setattr(server.store, name, losing(getattr(server.store, name)))
    client.say(step(2), Note("noted"), step(3), Checkpoint(3, b"three"))
    with pytest.raises(StoreTrouble):
        await server.submit("toy", {}, "demo", "bob")
    await until(lambda: not server.leases.coming)
    assert bobs(server) == []
    await until(lambda: steps_of(server, run) == [1, 2, 3])
    client.inbox.put_nowait(Ended(run, 1, "KilledWorker"))
    await until(lambda: len(client.begun) == 2)
    assert client.checkpoints[1] == b"three"
    monkeypatch.setattr(server.store, "write", losing(server.store.write))
    client.say(Started("cpu", 40, 3), step(4), Finished(State.CONVERGED, "Yes."))
    await until(lambda: not server.owns(run))
    assert steps_of(server, run) == [1, 2, 3, 4]
    assert server.store.notes(run).count("noted") == 1
    assert server.store.run(run).losses == 1
    await server.close(0.1)


async def test_a_run_that_was_claimed_without_hearing_of_it_is_taken_up(url: str) -> None:
    server, client = service(url)
    await server.start()
    run = server.store.add_run("toy", {}, "demo", "ada", server=server.lifecycle.journal.server)
    await until(lambda: server.owns(run))
    await until(lambda: client.begun)
    await server.close(0.1)


async def test_what_waited_is_not_written_over_what_another_server_did_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any) -> None:
        raise StoreTrouble

    server, client, run = await running(url)
    other = Store.open(url)
    other.sign_in("other")
    with locked(url):
        client.say(step(2), step(3), Finished(State.DIVERGED, "Ours."))
        await until(server.storing)
        monkeypatch.setattr(
            server.lifecycle.journal.writer, "_call", never
        )  # cut off from the database
    other.claim(run, "other")
    other.write(run, [step(2)], server="other")
    monkeypatch.undo()
    await until(lambda: not server.owns(run))
    assert other.run(run).state is State.RUNNING
    assert steps_of(server, run) == [1, 2]
    assert (run, "abandon") in client.told
    other.close()
    await server.close(0.1)


async def test_what_the_database_refuses_takes_nothing_with_it_and_is_a_note(url: str) -> None:
    server, client, run = await running(url)
    client.say(step(2), step(2**70), step(3))
    await until(lambda: steps_of(server, run) == [1, 2, 3])
    await until(lambda: any("refused 1 point " in note for note in server.store.notes(run)))
    client.say(step(4), Finished(State.CONVERGED, "It converged.", Report()))
    await until(lambda: server.store.run(run).state is State.CONVERGED)
    assert steps_of(server, run) == [1, 2, 3, 4]
    await server.close(0.1)


async def test_what_there_is_no_room_for_is_counted_on_the_run(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MAX_BYTES", 20_000)
    server, client, run = await running(url)
    with locked(url):
        client.say(step(2))
        await until(server.storing)
        for number in range(3, 303):
            client.say(step(number), Snapshot(number, {"a": np.zeros(100)}))
        client.say(Note("kept"), Checkpoint(302, b"c"))
        await until(client.inbox.empty)
        await until(lambda: server.lifecycle.live[run].backlog.weight <= 20_000)
    await until(lambda: "kept" in server.store.notes(run))
    (note,) = [text for text in server.store.notes(run) if "could not be kept" in text]
    missing = 302 - len(steps_of(server, run))
    assert missing > 0
    assert f"{missing} points of the curve between steps 3 and" in note
    assert "snapshots" in note
    assert steps_of(server, run)[-1] == 302
    assert server.store.latest_snapshot(run).step == 302  # type: ignore[union-attr]
    assert server.store.checkpoint(run) == Checkpoint(302, b"c")
    await server.close(0.1)


async def test_a_server_whose_database_is_locked_comes_up_when_it_is_free(url: str) -> None:
    server, client = service(url)
    with locked(url):
        coming = asyncio.create_task(server.start())
        await until(server.storing)
    await coming
    assert server.storing() == ""
    await server.submit("toy", {}, "demo", "ada")
    await until(lambda: client.begun)
    await server.close(0.1)


@pytest.mark.slow
async def test_a_server_closes_though_its_database_does_not_answer(url: str) -> None:
    server, client, run = await running(url)
    with locked(url):
        client.say(step(2))
        await until(server.storing)
        began = time.monotonic()
        await asyncio.wait_for(server.close(0.1), 20)
        assert time.monotonic() - began < 20
    again, client = service(url)
    again.store.sign_out(server.lifecycle.journal.server)
    await again.start()
    await until(lambda: client.begun)
    assert client.checkpoints == [b"one"]
    assert again.owns(run)
    await again.close(0.1)


@pytest.mark.slow
async def test_a_damaged_checkpoint_costs_its_steps_and_not_the_run(url: str) -> None:
    server, client, run = await running(url)
    client.say(step(2), step(3), Checkpoint(3, b"three"))
    await until(lambda: server.store.checkpoint(run) == Checkpoint(3, b"three"))
    damage(url, "checkpoints")
    client.inbox.put_nowait(Ended(run, 1, "KilledWorker"))
    await until(lambda: len(client.begun) == 2)
    assert client.checkpoints[1] == b"one"
    assert (
        "The checkpoint of step 3 is damaged in the database; the run goes on from the one "
        "before, of step 1." in server.store.notes(run)
    )
    damage(url, "earlier_checkpoints")
    client.inbox.put_nowait(Ended(run, 2, "KilledWorker"))
    await until(lambda: len(client.begun) == 3)
    assert client.checkpoints[2] is None
    assert any(
        "the run starts again from the beginning" in note for note in server.store.notes(run)
    )
    await server.close(0.1)


def damage(url: str, table: str) -> None:
    """Turn the last byte of a stored blob."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
        ((key, blob),) = db.execute(f"select run, blob from {table}").fetchall()
        db.execute(f"update {table} set blob=? where run=?", (blob[:-1] + b"\xff", key))
