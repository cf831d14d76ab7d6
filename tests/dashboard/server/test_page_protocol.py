"""Messages of a page that has been left meanwhile, and of one that is still there."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from bokeh.protocol import Protocol
from bokeh.server.connection import ServerConnection

from scant_dashboard.server.page_protocol import PageProtocol


class Session:
    """A session whose document takes no change."""

    def subscribe(self, connection: Any) -> None:
        """Do nothing."""

    unsubscribe = subscribe

    @property
    def _handle_patch(self) -> Any:
        raise ValueError("not taken")


@pytest.mark.parametrize(("left", "answer"), [(True, "OK"), (False, "ERROR")])
def test_a_change_of_a_page_that_was_left_is_no_fault(
    left: bool, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    session: Any = Session()
    connection = ServerConnection(Protocol(), SimpleNamespace(), SimpleNamespace(), session)  # type: ignore[arg-type]
    if left:
        connection.detach_session()
    message = SimpleNamespace(msgtype="PATCH-DOC", header={"msgid": "1"})
    with caplog.at_level(logging.ERROR):
        made = asyncio.run(PageProtocol().handle(message, connection))
    assert made.msgtype == answer
    assert bool(caplog.records) is not left
