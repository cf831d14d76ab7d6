"""Tests that are coroutines, and the database that they share with a server."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

from scant.runs import leases, limited, store_writer
from scant.runs.dispatch import dispatcher, pool
from scant.store import database

PATIENCE = 60.0  # seconds


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine on a loop of its own, to its end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters
    }
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), PATIENCE))
    return True


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'scant.db'}"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that look after their runs, and try again, many times a second."""
    for name in ("POLL_SECONDS", "BEAT_SECONDS", "ADOPT_SECONDS"):
        monkeypatch.setattr(leases, name, 0.05)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.02)
    monkeypatch.setattr(dispatcher, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(pool, "COUNT_SECONDS", 0.05)
    monkeypatch.setattr(limited, "METER_SECONDS", 0.02)
    monkeypatch.setattr(limited, "STORE_SECONDS", 0.05)
    monkeypatch.setattr(store_writer, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(store_writer, "LAST_PAUSE", 0.05)
