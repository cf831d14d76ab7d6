"""Each private step of Bokeh's websocket handler goes through a public name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bokeh.server.views.ws import WSHandler

from scant_dashboard.upstream.socket_steps import SocketSteps

STEPS = {
    "_async_open": "join_session",
    "_receive": "read",
    "_handle": "answer",
    "_protocol_error": "unreadable",
    "_internal_error": "failed",
}


@pytest.mark.parametrize(("private", "public"), STEPS.items())
def test_a_step_goes_through_its_public_name(private: str, public: str) -> None:
    heard: list[str] = []

    async def later(_: Any, given: str) -> None:
        heard.append(given)

    now = lambda _, given: heard.append(given)  # noqa: E731
    waits = asyncio.iscoroutinefunction(getattr(WSHandler, private))
    kind: Any = type("Overridden", (SocketSteps,), {public: later if waits else now})
    outcome = getattr(kind.__new__(kind), private)("given")
    if waits:
        asyncio.run(outcome)
    assert heard == ["given"]


def test_bokeh_has_no_public_way_still() -> None:
    own = {name for name in vars(WSHandler) if name[0] != "_"}
    assert own == {
        "check_origin", "get_compression_options", "initialize", "on_close", "on_message",
        "on_pong", "open", "select_subprotocol", "send_message", "write_message",
    }  # fmt: skip
    assert set(STEPS) <= set(vars(WSHandler))
