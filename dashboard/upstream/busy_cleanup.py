"""Panel's cleanup of its busy counter keeps the document of the first busy session for good.

`panel.io.state._state._schedule_busy_cleanup` starts one task for the life of the server from
inside whatever session is busy first. A task keeps the context it was created in, and that context
names the session's document: with it stay its models, its callbacks and what they hold, such as an
uploaded file. Started in an empty context, the task holds nothing.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from contextvars import Context
from functools import wraps
from typing import Any

from panel.io.state import _state


def install() -> None:
    """Patch Panel in this process; a second call changes nothing."""
    patched: Any = _state
    original: Any = patched._schedule_busy_cleanup
    if hasattr(original, "__wrapped__"):
        return

    @wraps(original)
    def schedule(state: Any) -> None:
        Context().run(original, state)

    patched._schedule_busy_cleanup = schedule
