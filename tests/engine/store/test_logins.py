"""Login sessions in the store: they are over when they were ended, and by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from scant.store import Store, logins
from scant.store.schema import LOGINS

DAY = 86_400.0


class Clock:
    now = 1e9

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(logins, "time", clock)
    return clock


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


def test_a_session_lasts_while_it_is_used_and_thirty_days_at_most(
    store: Store, clock: Clock
) -> None:
    store.add_login("a", "ada", "c")
    store.add_login("b", "bob", "c")
    for _ in range(3):
        clock.now += 9 * DAY
        record = store.use_login("a")
        assert (record.user, record.credential) == ("ada", "c")
    assert store.use_login("b") is None
    assert set(store.logins(["a", "b", "c"])) == {"a"}
    clock.now += 4 * DAY
    assert store.use_login("a") is None
    assert store.logins([]) == {}


def test_ending_one_session_ends_no_other(store: Store, clock: Clock) -> None:
    store.add_login("a", "ada", "c")
    store.add_login("b", "ada", "c")
    store.end_login("a")
    store.end_login("never begun")
    assert store.use_login("a") is None
    assert store.use_login("b") is not None


def test_sessions_that_are_over_are_deleted(store: Store, clock: Clock) -> None:
    store.add_login("idle", "ada", "c")
    clock.now += 15 * DAY
    store.add_login("b", "ada", "c")
    with store.engine.connect() as db:
        assert db.execute(LOGINS.select()).scalars().all() == ["b"]


def test_a_database_from_before_gets_the_table(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    old = Store.open(url)
    LOGINS.drop(old.engine)
    old.close()
    opened = Store.open(url)
    opened.add_login("a", "ada", "c")
    assert opened.use_login("a") is not None
    opened.close()
