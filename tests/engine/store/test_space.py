"""What the database no longer needs goes back to the disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from scant.events import Checkpoint, Finished, State
from scant.store import Store, space

LARGE = 30_000_000  # bytes


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("runs.db*"))


def _leave_free_pages(store: Store) -> None:
    run = store.add_run("clamp", {}, "demo", "ada")
    for step in (1, 2):
        store.write(run, [Checkpoint(step, bytes([step]) * LARGE)])
    store.write(run, [Finished(State.CONVERGED, "It converged.")])


def test_pages_and_log_are_given_back_a_little_at_a_time(store: Store, tmp_path: Path) -> None:
    empty = _size(tmp_path)
    _leave_free_pages(store)
    assert _size(tmp_path) > 2 * LARGE
    rounds = 1
    while store.give_back():
        rounds += 1
    assert rounds > LARGE / (space.PAGES * 4096)
    assert _size(tmp_path) < empty + 1_000_000


def test_a_small_database_of_before_is_migrated_and_keeps_its_content(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    with sqlite3.connect(file) as db:  # as earlier versions made it
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE uploads_of_before (name TEXT)")
        db.execute("INSERT INTO uploads_of_before VALUES ('mine')")
    db.close()
    store = Store.open(f"sqlite:///{file}")
    with store.engine.connect() as connection:
        query = connection.exec_driver_sql
        assert query("PRAGMA auto_vacuum").scalar_one() == space.INCREMENTAL
        assert query("SELECT name FROM uploads_of_before").scalar_one() == "mine"
    _leave_free_pages(store)
    while store.give_back():
        pass
    assert _size(tmp_path) < 2_000_000
    store.close()


def test_a_large_database_of_before_goes_on_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "runs.db"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE uploads_of_before (content BLOB)")
        db.execute("INSERT INTO uploads_of_before VALUES (zeroblob(?))", (LARGE,))
    db.close()
    monkeypatch.setattr(space, "MIGRATED_BYTES", 1e6)
    store = Store.open(f"sqlite:///{file}")
    assert f'sqlite3 {file} "PRAGMA auto_vacuum=2; VACUUM"' in caplog.text
    _leave_free_pages(store)
    assert not store.give_back()
    run = store.add_run("clamp", {}, "demo", "ada")
    assert store.run(run).owner == "ada"
    store.close()


def test_a_database_in_use_by_another_is_opened_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE uploads_of_before (name TEXT)")
    db.commit()
    other = Store.open(f"sqlite:///{file}")
    db.execute("BEGIN")
    db.execute("SELECT * FROM uploads_of_before").fetchall()  # a reader, in the midst of it
    store = Store.open(f"sqlite:///{file}")
    assert store.runs() == other.runs() == []
    db.close()
    for each in (store, other):
        each.close()
