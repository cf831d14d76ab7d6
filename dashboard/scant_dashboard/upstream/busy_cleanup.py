"""Patch: start Panel's cleanup of its busy counter without a reference to a session.

`panel.io.state._state._schedule_busy_cleanup` starts one task for the lifetime of the server, in
the first busy session. A task keeps the context in which it was created, and this context refers to
the session's document: its models, callbacks and their data, such as an uploaded file, are never
freed. In an empty context, the task refers to no session.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any

from panel.io.state import _state

from scant_dashboard.upstream.replacing import replace


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    replace(_state, "_schedule_busy_cleanup", _in_an_empty_context)


def _in_an_empty_context(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def schedule(state: Any) -> None:
        Context().run(original, state)

    return schedule
