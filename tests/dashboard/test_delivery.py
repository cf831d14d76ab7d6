"""No message to a browser is left lying, though it was put down while another was being sent."""

from __future__ import annotations

import asyncio
from typing import Any

from bokeh.document import Document
from bokeh.models import Div
from bokeh.protocol import Protocol
from panel.io.document import schedule_write_events

from dashboard.delivery import deliver


class Slow:
    """A browser's connection that takes messages only while it is `open`."""

    def __init__(self) -> None:
        self.protocol = Protocol()
        self.open = asyncio.Event()
        self.heard: list[str] = []
        self._socket = self

    async def send(self, text_data: str) -> None:
        await self.open.wait()
        self.heard.append(text_data)


def said(connection: Slow) -> list[str]:
    text = "".join(connection.heard)
    return [word for word in ("first", "second") if word in text]


def test_what_was_put_down_while_another_was_being_sent_arrives() -> None:
    async def live() -> None:
        doc, div, connection = Document(), Div(), Slow()
        doc.add_root(div)
        events: list[Any] = []
        doc.on_change(events.append)

        def say(word: str) -> None:
            div.text = word
            schedule_write_events(doc, [connection], [events.pop()])  # type: ignore[list-item]

        async def turns() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        say("first")
        await turns()
        connection.open.set()  # the first goes out in the next turn,
        say("second")  # and the second is put down before it has
        await turns()
        deliver(doc)
        deliver(doc)  # which finds nothing more to do
        await turns()
        assert said(connection) == ["first", "second"]
        assert "".join(connection.heard).count("second") == 1

    asyncio.run(live())
