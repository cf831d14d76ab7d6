"""Panel's cleanup of its busy counter keeps the document of the first busy session for good.

`panel.io.state._state._schedule_busy_cleanup` starts one task for the life of the server from
inside whatever session is busy first. A task keeps the context it was created in, and that context
names the session's document: with it stay its models, its callbacks and what they hold, such as an
uploaded file. Started in an empty context, the task holds nothing.

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
