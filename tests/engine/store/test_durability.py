"""A label is on the disk when the next patch shows; nothing else waits for the disk."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, event

from scant.events import Note
from scant.store import Store
from scant.store.database import durable_transaction
from scant.store.schema import LABELS

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
