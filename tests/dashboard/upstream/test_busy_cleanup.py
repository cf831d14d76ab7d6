"""The task that Panel starts for its busy counter holds no session's document."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar, copy_context
from typing import Any

import panel as pn
import pytest
from panel.io.state import _state

from scant_dashboard.upstream import busy_cleanup


class Visit:
    """What a session's context holds."""


CURRENT: ContextVar[Visit] = ContextVar("CURRENT")


def outlives_its_session(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what the context held that was busy first is there when it has ended."""
    monkeypatch.setattr(_state, "_busy_cleanup_scheduled", None)

    def session() -> weakref.ref[Visit]:
        visit = Visit()
        CURRENT.set(visit)
        pn.state._schedule_busy_cleanup()
        return weakref.ref(visit)

    async def main() -> bool:
        left = copy_context().run(session)
        await asyncio.sleep(0)
        gc.collect()
        held = left() is not None
        scheduled: Any = _state._busy_cleanup_scheduled
        scheduled.stop()
        return held

    return asyncio.run(main())


@pytest.mark.slow
def test_a_session_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    busy_cleanup.install()
    busy_cleanup.install()
    assert not outlives_its_session(monkeypatch)


@pytest.mark.slow
def test_panel_needs_it_still(monkeypatch: pytest.MonkeyPatch) -> None:
    busy_cleanup.install()
    patched: Any = _state._schedule_busy_cleanup
    monkeypatch.setattr(_state, "_schedule_busy_cleanup", patched.__wrapped__)
    assert outlives_its_session(monkeypatch)
