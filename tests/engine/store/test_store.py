"""What outlives a process: every row comes back as it went in, on SQLite and on Postgres."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DataError

from scant.errors import BadInput, NotFound
from scant.events import (
    Changed,
    Checkpoint,
    Finished,
    Fitted,
    Metric,
    Note,
    Progress,
    Report,
    Snapshot,
    Started,
    State,
)
from scant.store import Store
from scant.store.events import SNAPSHOTS_KEPT, evenly
from scant.studies.aliases import ADDED

REPORT = Report((Metric("gpz", "rmse", 0.1, 0.02),), {"rows": np.arange(4.0)}, ("a note",))


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


def add(store: Store, owner: str = "ada", data: str = "demo") -> str:
    return store.add_run("redshift", {"seed": 1, "target": "z"}, data, owner)


def steps(first: int, last: int) -> list[Progress]:
    return [Progress(i, -1.0 / i, 0.1 * i, -0.5, -0.6) for i in range(first, last + 1)]


def finish(store: Store, run: str) -> None:
    end = Finished(State.CONVERGED, "It converged.", REPORT)
    store.write(run, [Started("cpu", 9), *steps(1, 3), Snapshot(3, {"a": np.ones(2)})])
    store.write(run, [Checkpoint(3, b"c"), Fitted(b"model"), end])


def test_a_run_comes_back_as_it_was_put_down(store: Store) -> None:
    run = add(store)
    record = store.run(run)
    assert (record.study, record.data, record.owner) == ("redshift", "demo", "ada")
    former = {"data_seed": 1, "seed": 1, "target": "z"} | ADDED["redshift"]
    assert record.settings == former  # of a former version
    assert record.state is State.QUEUED
    assert record.started is record.finished is None
    store.write(run, [Started("cuda", 70, 0, {"bands": ["u", "g"]})], "abc")
    record = store.run(run)
    assert (record.device, record.total_steps, record.data_hash) == ("cuda", 70, "abc")
    assert record.metadata == {"bands": ["u", "g"]}
    assert record.started is not None
    assert record.heartbeat is not None


def test_ids_cannot_be_guessed_and_an_unknown_one_is_a_sentence(store: Store) -> None:
    ids = {add(store) for _ in range(20)}
    assert len(ids) == 20
    assert min(map(len, ids)) >= 16
    with pytest.raises(NotFound, match="There is no run 'nope'"):
        store.run("nope")


def test_numbers_that_are_not_finite_survive(store: Store) -> None:
    run = add(store)
    odd = [
        Progress(1, math.nan, 0.1, -math.inf, math.nan, 0),
        Progress(2, math.inf, 0.2, 5e-324, 1.7976931348623157e308, 1),
    ]
    store.write(run, odd)
    trace = store.trace(run)
    assert trace.step.tolist() == [1, 2]
    assert trace.restart.tolist() == [0, 1]
    np.testing.assert_array_equal(trace.elbo, [math.nan, math.inf])
    np.testing.assert_array_equal(trace.best, [-math.inf, 5e-324])
    np.testing.assert_array_equal(trace.score, [math.nan, 1.7976931348623157e308])


def test_a_run_that_goes_on_voids_what_was_said_of_later_steps(store: Store) -> None:
    run = add(store)
    shots = [Snapshot(i, {"a": np.full(2, float(i))}) for i in (1, 4, 7)]
    store.write(run, [Started("cpu", 50), *steps(1, 8), *shots])
    store.write(run, [Started("cpu", 50, step=5), *steps(6, 10), Snapshot(9, {"a": np.ones(1)})])
    assert store.trace(run).step.tolist() == list(range(1, 11))
    assert store.trace(run, first=9).step.tolist() == [9, 10]
    assert store.trace(run, first=11).step.tolist() == []
    assert [s.step for s in store.snapshots(run)] == [1, 4, 9]


def test_what_is_written_again_stands_once(store: Store) -> None:
    """A write is repeated where the answer to its commit was lost with the connection."""
    run = store.add_run("redshift", {}, "demo", "ada", server="us")
    once = [Started("cpu", 9), Note("noted"), *steps(1, 4), Checkpoint(4, b"four")]
    then = [*steps(5, 6), Checkpoint(6, b"six"), Fitted(b"m"), Finished(State.STOPPED, "", REPORT)]
    for events in (once, once, then, then):
        store.write(run, events, server="us")
    assert store.trace(run).step.tolist() == list(range(1, 7))
    assert store.notes(run) == ["noted"]
    assert store.run(run).state is State.STOPPED


def test_a_write_that_fails_leaves_nothing(store: Store) -> None:
    run = add(store)
    bad = Progress(2**70, -1.0, 0.1, -1.0, -1.0)  # no database has a number for this step
    with pytest.raises((OverflowError, DataError)):
        store.write(run, [Note("half"), bad])
    assert store.notes(run) == []


def test_watchers_hear_no_blobs_and_no_note_twice(store: Store) -> None:
    run = add(store)
    message = store.write(run, [Note("a"), Checkpoint(1, b"x"), Fitted(b"y"), *steps(1, 2)])
    assert message == [Note("a"), *steps(1, 2)]
    assert store.write(run, [Note("a"), Note("b")]) == [Note("b")]
    assert store.notes(run) == ["a", "b"]


def test_many_snapshots_are_thinned_evenly(store: Store) -> None:
    run = add(store)
    for i in range(1, 400):
        store.write(run, [Snapshot(i, {"a": np.array([i])})])
    kept = [s.step for s in store.snapshots(run)]
    assert kept[0] == 1
    assert kept[-1] == 399
    assert SNAPSHOTS_KEPT // 2 <= len(kept) <= SNAPSHOTS_KEPT
    assert max(np.diff(kept)) <= 16
    latest = store.latest_snapshot(run)
    assert latest.arrays["a"].tolist() == [399]


@given(st.sets(st.integers(1, 10**6), min_size=1, max_size=300), st.integers(2, 60))
def test_thinning_keeps_both_ends(found: set[int], count: int) -> None:
    ordered = sorted(found)
    kept = evenly(ordered, count)
    assert kept <= found
    assert {ordered[0], ordered[-1]} <= kept
    assert len(kept) <= count


def test_only_the_latest_checkpoint_is_kept_and_none_after_the_end(store: Store) -> None:
    run = add(store)
    assert store.checkpoint(run) is None
    store.write(run, [Checkpoint(1, b"one"), Checkpoint(2, b"two")])
    assert store.checkpoint(run) == Checkpoint(2, b"two")
    store.write(run, [Finished(State.PAUSED, "Paused.")])
    assert store.run(run).state is State.PAUSED
    assert store.run(run).finished is None
    assert store.report(run) is None
    assert store.checkpoint(run) == Checkpoint(2, b"two")
    store.write(run, [Fitted(b"model"), Finished(State.STOPPED, "Stopped.", REPORT)])
    assert store.checkpoint(run) is None
    assert store.model(run) == b"model"


def test_the_report_comes_back(store: Store) -> None:
    run = add(store)
    finish(store, run)
    report = store.report(run)
    assert report.metrics == REPORT.metrics
    assert report.notes == REPORT.notes
    np.testing.assert_array_equal(report.arrays["rows"], REPORT.arrays["rows"])
    record = store.run(run)
    assert (record.state, record.reason) == (State.CONVERGED, "It converged.")
    assert record.finished is not None


def test_a_list_shows_own_runs_and_demonstrations_only(store: Store) -> None:
    mine, theirs = add(store, "ada"), add(store, "bob")
    shown = store.add_run("redshift", {}, "demo", "", run_id="demo-x", demonstration=True)
    assert {r.id for r in store.runs("ada")} == {mine, shown}
    assert {r.id for r in store.runs()} == {mine, theirs, shown}
    assert store.run(theirs).owner == "bob"  # whoever has the link may open it


def test_live_runs_are_those_that_a_new_server_takes_up(store: Store) -> None:
    states = {state: add(store) for state in State}
    for state, run in states.items():
        store.write(run, [Changed(state)])
    live = {r.state for r in store.acquire_orphans("new")}
    assert live == {s for s in State if not s.final and s is not State.PAUSED}


def test_attempts_are_counted(store: Store) -> None:
    run = add(store)
    assert store.begin_attempt(run) == (1, None, "")
    store.write(run, [Checkpoint(4, b"c")])
    assert store.begin_attempt(run) == (2, Checkpoint(4, b"c"), "")


def test_how_long_runs_take_is_learnt_from_those_that_ran_through(store: Store) -> None:
    assert store.typical_seconds("redshift") is None
    for seconds in (10.0, 20.0, 90.0):
        run = add(store)
        store.begin_attempt(run)
        finish(store, run)
        store.update_run(run, started=100.0, finished=100.0 + seconds)
    stopped = add(store)
    store.write(stopped, [Finished(State.STOPPED, "")])
    assert store.typical_seconds("redshift") == 20.0


FRAME = pd.DataFrame({"g": [1.5, math.nan, 3.0], "=cmd": [1, 2, 3], "z": [0.1, 0.2, 0.3]})


@pytest.mark.slow
def test_an_upload_comes_back_until_it_is_deleted(store: Store) -> None:
    about = {"owner": "ada", "name": "mine.csv", "study": "redshift"}
    upload = store.add_upload(FRAME, sha256="f00", notes=["a note"], **about)
    record = store.upload(upload)
    assert (record.name, record.rows, record.sha256) == ("mine.csv", 3, "f00")
    assert record.columns == list(FRAME.columns)
    assert [u.id for u in store.uploads("ada")] == [upload]
    assert store.uploads("bob") == []
    pd.testing.assert_frame_equal(store.upload_table(upload), FRAME)
    run = add(store, data=f"upload:{upload}")
    with pytest.raises(BadInput, match="in use by a run that is queued"):
        store.delete_upload(upload, "ada")
    finish(store, run)
    store.delete_upload(upload, "ada")
    assert store.uploads("ada") == []
    with pytest.raises(NotFound, match=r"'mine.csv' was deleted"):
        store.upload_table(upload)
    assert "was deleted" in store.notes(run)[-1]
    assert store.model(run) is None
    assert store.snapshots(run) == []
    report = store.report(run)
    assert report.arrays == {}
    assert report.metrics == REPORT.metrics
    assert len(store.trace(run).step) == 3


def test_old_uploads_are_purged_unless_in_use(store: Store) -> None:
    about = {"owner": "ada", "name": "t.csv", "study": "redshift"}
    old, used, new = (store.add_upload(FRAME, **about) for _ in range(3))
    add(store, data=f"upload:{used}")
    with store.engine.begin() as db:
        past = time.time() - 31 * 86400
        query = text("update uploads set created = :past where id in (:old, :used)")
        db.execute(query, {"past": past, "old": old, "used": used})
    assert store.purge_uploads(days=30) == 1
    assert {u.id for u in store.uploads("ada")} == {used, new}


def test_labels_are_appended_and_survive_a_new_process(store: Store) -> None:
    for item, label in [(3, "cell"), (1, "none"), (3, "")]:
        store.add_label("upload-1", item, label, "ada")
    again = Store.open(store.engine.url.render_as_string(hide_password=False))
    results = [(entry.item, entry.label) for entry in again.labels("upload-1")]
    assert results == [(3, "cell"), (1, "none"), (3, "")]
    assert again.labels("upload-2") == []
    again.close()


def test_a_recording_is_the_run_again(store: Store) -> None:
    run = add(store)
    store.write(run, [Note("noted")])
    finish(store, run)
    demo = store.import_recording(store.export_recording(run))
    assert demo == "demo-redshift"
    record = store.run(demo)
    assert record.demonstration
    assert (record.state, record.settings) == (State.CONVERGED, store.run(run).settings)
    assert record.created == store.run(run).created
    assert store.trace(demo).elbo.tolist() == store.trace(run).elbo.tolist()
    assert store.notes(demo) == ["noted"]
    assert store.model(demo) == b"model"
    assert [s.step for s in store.snapshots(demo)] == [3]
    report = store.report(demo)
    assert report.metrics == REPORT.metrics


def test_what_a_recording_only_shows_keeps_four_digits(store: Store) -> None:
    run = add(store)
    shown = np.array([1 / 3, -12345.678, 0.0, np.nan, np.inf])
    snapshot = Snapshot(3, {"shown": shown, "counted": np.array([123_456_789])})
    end = Finished(State.CONVERGED, "It converged.", REPORT)
    store.write(run, [Started("cpu", 9), *steps(1, 3), snapshot, Fitted(b"model"), end])
    kept = store.snapshots(store.import_recording(store.export_recording(run)))[0].arrays
    np.testing.assert_allclose(kept["shown"], shown, rtol=2e-4)
    assert kept["counted"].tolist() == [123_456_789]


def test_a_newer_recording_takes_the_place_of_the_older_one(store: Store) -> None:
    first, second = add(store), add(store)
    for run in (first, second):
        finish(store, run)
    store.update_run(second, reason="Newer.")
    for run in (first, second, second):
        store.import_recording(store.export_recording(run))
    assert store.run("demo-redshift").reason == "Newer."


@pytest.mark.parametrize("junk", [b"", b"not a zip", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_recording_is_refused(store: Store, junk: bytes) -> None:
    with pytest.raises(BadInput, match="not a recording"):
        store.import_recording(junk)
    assert store.runs() == []


def test_a_run_that_is_not_over_cannot_be_recorded(store: Store) -> None:
    with pytest.raises(NotFound, match="no result to record"):
        store.export_recording(add(store))


def test_writers_in_several_threads_wait_for_each_other(store: Store) -> None:
    runs = [add(store) for _ in range(4)]
    errors: list[Exception] = []

    def work(run: str) -> None:
        try:
            for i in range(1, 60, 2):
                store.write(run, [Note(str(i)), *steps(i, i + 1)])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all(len(store.trace(run).step) == 60 for run in runs)


def test_sqlite_writes_ahead_and_waits_for_locks(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path / 'runs.db'}")
    with store.engine.connect() as db:
        results = [
            db.execute(text(f"pragma {p}")).scalar() for p in ("journal_mode", "synchronous")
        ]
    assert results == ["wal", 1]
    add(store)
    store.close()
    with sqlite3.connect(tmp_path / "runs.db") as db:  # what is written is there for anyone
        assert db.execute("select count(*) from runs").fetchone() == (1,)


def test_the_default_store_is_in_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path / "here"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    Store.open().close()
    assert (tmp_path / "here" / "scant.db").exists()


@pytest.mark.parametrize("scheme", ["postgres://", "postgresql://"])
def test_a_postgres_address_names_the_driver_that_we_ship(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scant.store import database

    observed = []
    monkeypatch.setattr(database, "create_engine", lambda url, **_: observed.append(url) or 1 / 0)
    monkeypatch.setenv("DATABASE_URL", f"{scheme}user:word@host/name")
    with pytest.raises(ZeroDivisionError):
        Store.open()
    assert observed == ["postgresql+psycopg://user:word@host/name"]
