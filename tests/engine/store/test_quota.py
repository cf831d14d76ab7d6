"""What the store refuses to keep, and what it keeps on the disk at once."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import Connection, event

from scant.errors import BadInput, Unavailable
from scant.events import Note
from scant.runs import RunService
from scant.store import Store, quota
from scant.store.database import durable_transaction
from scant.store.schema import LABELS

Usage = namedtuple("Usage", "total used free")
TABLE = pd.DataFrame({"x": range(50)})


def add(store: Store, owner: str = "me") -> str:
    return store.add_upload(TABLE, owner=owner, name="t.csv", study="redshift")


def free(monkeypatch: pytest.MonkeyPatch, size: float) -> list[Path]:
    """Have the disk report so many free bytes; the folders that were looked at."""
    looked: list[Path] = []

    def usage(folder: Path) -> Usage:
        looked.append(folder)
        return Usage(10**12, 0, int(size))

    monkeypatch.setattr(quota.shutil, "disk_usage", usage)
    return looked


def test_a_nearly_full_disk_takes_no_upload_and_no_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = free(monkeypatch, 0.9e9)
    sentence = "nearly full: 0.9 GB are free, and 1.0 GB are reserved"
    with pytest.raises(Unavailable, match=sentence):
        add(store)
    with pytest.raises(Unavailable, match=sentence):
        asyncio.run(RunService(store).submit("redshift", {}, "demo", "me"))
    assert store.uploads("me") == []
    assert set(looked) == {tmp_path}
    monkeypatch.setenv("SCANT_DISK_RESERVE", "0.5")
    add(store)
    free(monkeypatch, 0.5e9)  # not the table's own bytes, too
    with pytest.raises(Unavailable):
        add(store)


@pytest.mark.parametrize("given", ["much", "-1", "nan", "inf"])
def test_a_reserve_that_is_no_number_of_gb(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCANT_DISK_RESERVE", given)
    with pytest.raises(BadInput, match=f"a number of GB, 0 or more; got '{given}'"):
        quota.disk_reserve()


def test_an_owner_has_so_many_tables_and_deletes_one_for_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "TABLES", 2)
    first, _ = add(store), add(store)
    with pytest.raises(BadInput, match="You have 2 tables on this server"):
        add(store)
    add(store, "another")
    store.delete_upload(first, "me")
    add(store)


def test_an_owner_has_so_many_bytes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(store.upload_parquet(add(store)))
    monkeypatch.setattr(quota, "TABLE_BYTES", 2 * size)
    add(store)
    with pytest.raises(BadInput, match="Your tables on this server take"):
        add(store)
    add(store, "another")


NORMAL, FULL = 1, 2  # as SQLite numbers them


def synchronous(db: Connection) -> int:
    return int(db.exec_driver_sql("PRAGMA synchronous").scalar_one())


def test_only_the_transaction_of_a_label_waits_for_the_disk(store: Store) -> None:
    run = store.add_run("clamp", {}, "demo", "ada")
    messages: list[tuple[str, int]] = []
    doing = "label"

    @event.listens_for(store.engine, "commit")
    def committing(db: Connection) -> None:
        messages.append((doing, synchronous(db)))

    store.add_label(run, 3, "clamp", "ada")
    doing = "note"
    store.write(run, [Note("a note")])
    assert messages[-1] == ("note", NORMAL)
    assert [level for what, level in messages if what == "label"][-1] == FULL
    assert [label.item for label in store.labels(run)] == [3]
    with store.engine.connect() as db:
        assert synchronous(db) == NORMAL
    store.close()


def test_one_that_fails_leaves_nothing_and_the_connection_as_it_was(store: Store) -> None:
    store.add_label("pool", 3, "clamp", "ada")

    def fail() -> None:
        with durable_transaction(store.engine) as db:
            db.execute(LABELS.delete())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(store.labels("pool")) == 1
    with store.engine.connect() as db:
        assert synchronous(db) == NORMAL
    store.close()
