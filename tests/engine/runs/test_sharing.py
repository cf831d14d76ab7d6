"""Several servers on one database: each cares for its own runs, and those of one that is gone."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import insert, select, update

from scant.events import Changed, Finished, State
from scant.store import Store, TakenOver
from scant.store.claims import DEAD_SECONDS
from scant.store.schema import METADATA, SERVERS

POSTGRES = os.environ.get("SCANT_TEST_POSTGRES")


@pytest.fixture(params=["sqlite", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """One database, opened by two servers."""
    if request.param == "postgres" and not POSTGRES:
        pytest.skip("SCANT_TEST_POSTGRES names no database")
    url = POSTGRES if request.param == "postgres" else f"sqlite:///{tmp_path / 'runs.db'}"
    ours, theirs = Store.open(url), Store.open(url)
    ours.sign_in("ours")
    theirs.sign_in("theirs")
    yield ours, theirs
    METADATA.drop_all(ours.engine)
    ours.close()
    theirs.close()


def add(store: Store, server: str = "") -> str:
    return store.add_run("redshift", {}, "demo", "ada", server=server)


def foreign(store: Store, run: str, *, host: str, pid: int = 1, born: float = 1.0, ago: float = 0):
    """Put a run into the care of a server that is not of this process."""
    with store.engine.begin() as db:
        row = {"id": "foreign", "host": host, "pid": pid, "born": born, "beat": time.time() - ago}
        db.execute(insert(SERVERS).values(row))
    store.claim(run, "foreign")


def test_a_run_in_a_living_servers_care_is_left_alone(stores: tuple[Store, Store]) -> None:
    ours, theirs = stores
    run = add(ours, "ours")
    assert theirs.acquire_orphans("theirs") == []
    assert ours.acquire_orphans("ours") == []
    ours.sign_out("ours")
    assert [r.id for r in theirs.acquire_orphans("theirs")] == [run]
    assert theirs.acquire_orphans("theirs") == []


def test_a_run_that_nobody_claimed_is_taken_up_unless_it_rests(stores: tuple[Store, Store]) -> None:
    ours, theirs = stores
    left, paused, over = add(ours), add(ours), add(ours)
    ours.write(paused, [Finished(State.PAUSED, "Paused.")])
    ours.write(over, [Finished(State.CONVERGED, "It converged.")])
    assert [r.id for r in theirs.acquire_orphans("theirs")] == [left]
    assert ours.acquire_orphans("ours") == []


def test_a_killed_server_is_known_at_once_on_its_machine(stores: tuple[Store, Store]) -> None:
    ours, _ = stores
    run, gone = add(ours), subprocess.Popen(["true"])
    gone.wait()
    foreign(ours, run, host=socket.gethostname(), pid=gone.pid, born=time.time())
    assert [r.id for r in ours.acquire_orphans("ours")] == [run]


@pytest.mark.parametrize(("later", "taken"), [(0.0, False), (60.0, True)])
def test_a_number_that_another_process_has_now_is_not_taken_for_the_server(
    stores: tuple[Store, Store], later: float, taken: bool
) -> None:
    ours, _ = stores
    run, me = add(ours), psutil.Process()
    foreign(ours, run, host=socket.gethostname(), pid=me.pid, born=me.create_time() - later)
    assert bool(ours.acquire_orphans("ours")) is taken


@pytest.mark.parametrize(("ago", "taken"), [(DEAD_SECONDS / 2, False), (DEAD_SECONDS * 2, True)])
def test_a_server_elsewhere_is_gone_when_it_is_silent(
    stores: tuple[Store, Store], ago: float, taken: bool
) -> None:
    ours, _ = stores
    run = add(ours)
    foreign(ours, run, host="another machine", ago=ago)
    assert [r.id for r in ours.acquire_orphans("ours")] == [run] * taken


@pytest.mark.parametrize("ahead", [-60.0, 60.0])
def test_clocks_of_machines_that_differ_steal_no_run(
    stores: tuple[Store, Store], ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = stores
    run = add(ours, "ours")
    with ours.engine.begin() as db:  # as if it were signed in from elsewhere
        here = SERVERS.c.id == "ours"
        db.execute(update(SERVERS).where(here).values(host="another machine"))
    ours.sign_in("ours")
    monkeypatch.setattr(time, "time", lambda now=time.time: now() + ahead)
    assert theirs.acquire_orphans("theirs") == []
    theirs.sign_in("theirs")
    monkeypatch.undo()
    with ours.engine.begin() as db:
        beats = db.execute(select(SERVERS.c.beat)).scalars().all()
    assert max(beats) - min(beats) < DEAD_SECONDS / 2
    assert ours.run(run).attempt == 0


def test_runs_claimed_without_hearing_of_it_are_given_again(stores: tuple[Store, Store]) -> None:
    ours, theirs = stores
    known, unheard = add(ours, "ours"), add(ours, "ours")
    assert [r.id for r in ours.acquire_orphans("ours", held=[known])] == [unheard]
    assert theirs.acquire_orphans("theirs", held=[]) == []


def test_what_a_server_writes_of_a_run_that_is_not_its_own_any_more_is_not_written(
    stores: tuple[Store, Store],
) -> None:
    ours, theirs = stores
    run = add(ours, "ours")
    ours.write(run, [Changed(State.RUNNING)], server="ours")
    theirs.claim(run, "theirs")
    for attempt in (
        lambda: ours.write(run, [Finished(State.FAILED, "Ours.")], server="ours"),
        lambda: ours.begin_attempt(run, "ours"),
    ):
        with pytest.raises(TakenOver):
            attempt()
    assert (ours.run(run).state, ours.run(run).attempt) == (State.RUNNING, 0)
    theirs.write(run, [Finished(State.STOPPED, "Theirs.")], server="theirs")
    theirs.write(run, [Finished(State.STOPPED, "Theirs.")], server="theirs")  # its answer was lost
    with pytest.raises(TakenOver):
        ours.write(run, [Finished(State.FAILED, "Ours.")], server="ours")


def test_a_server_that_was_thought_gone_hears_that_its_run_was_taken(
    stores: tuple[Store, Store],
) -> None:
    ours, theirs = stores
    run, other = add(ours, "ours"), add(ours, "ours")
    with ours.engine.begin() as db:
        silent = {"host": "another machine", "beat": time.time() - 2 * DEAD_SECONDS}
        db.execute(update(SERVERS).where(SERVERS.c.id == "ours").values(silent))
    assert {r.id for r in theirs.acquire_orphans("theirs")} == {run, other}
    ours.claim(other, "ours")
    assert ours.read_requests("ours", [run, other]) == ({}, [run])
    ours.sign_in("ours")  # it lives after all
    assert theirs.acquire_orphans("theirs") == []


def test_a_wish_reaches_the_server_that_cares_once(stores: tuple[Store, Store]) -> None:
    ours, theirs = stores
    run = add(ours, "ours")
    theirs.wish(run, "pause")
    assert theirs.read_requests("theirs", []) == ({}, [])
    assert ours.read_requests("ours", [run]) == ({run: "pause"}, [])
    assert ours.read_requests("ours", [run]) == ({}, [])


def test_a_run_that_ends_or_rests_is_in_nobodys_care(stores: tuple[Store, Store]) -> None:
    ours, theirs = stores
    run = add(ours, "ours")
    ours.write(run, [Finished(State.PAUSED, "Paused.")])
    theirs.claim(run, "theirs")  # where it was resumed
    theirs.write(run, [Changed(State.QUEUED)])
    assert ours.read_requests("ours", []) == ({}, [])
    ours.sign_out("ours")
    theirs.sign_out("theirs")
    ours.sign_in("ours")
    assert [r.id for r in ours.acquire_orphans("ours")] == [run]


def test_of_two_servers_that_come_at_once_each_run_is_taken_by_one(
    stores: tuple[Store, Store],
) -> None:
    runs = [add(stores[0]) for _ in range(20)]
    taken: dict[str, list[str]] = {}
    together = threading.Barrier(2)

    def take(store: Store, server: str) -> None:
        together.wait()
        taken[server] = [r.id for r in store.acquire_orphans(server)]

    threads = [threading.Thread(target=take, args=p) for p in zip(stores, ("ours", "theirs"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken["ours"] + taken["theirs"]) == sorted(runs)
