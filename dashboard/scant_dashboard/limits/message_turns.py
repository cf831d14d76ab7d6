"""Messages of open pages take turns: one at a time of each network address, in fair turns there.

A message may cost the event loop a third of a second (a page's whole document, as every page asks
for once), in which the server answers nobody. A hundred connections of one client that send such
messages would stop it for half a minute; so they wait for each other, and the loop is free after
each for a part of the time that it took. Addresses do not wait for each other.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from scant_dashboard.limits.client import Client
from scant_dashboard.limits.gate import PageGate

# A connection waits with one message at a time, so what bounds connections bounds these.
UNBOUNDED = 2**31
HELD = 0.5  # seconds after which a turn ends though its browser has not taken the answer yet


class MessageTurns:
    """The gates of all addresses with open pages. Used on one event loop."""

    def __init__(self) -> None:
        self._gates: WeakValueDictionary[str, PageGate] = WeakValueDictionary()

    def gate(self, address: str) -> PageGate:
        """Where messages from an address wait; it lasts as long as anybody holds it."""
        gate = self._gates.get(address)
        if gate is None:
            gate = PageGate(UNBOUNDED, UNBOUNDED, UNBOUNDED, shortest=0.0)
            self._gates[address] = gate
        return gate


class BoundedSocket:
    """Mixed into a handler of pages' websockets: messages are handled in turns."""

    turns: MessageTurns  # these two are set on the class that `bound_pages` makes
    key: str
    _client: Client | None = None
    _gate: PageGate | None = None

    async def answer(self: Any, message: Any) -> None:
        """Handle a message, and send the answer, when its turn has come."""
        if self._client is None:
            self._client = Client.of(self.request, self.key)
            self._gate = self.turns.gate(self._client.address)
        loop = asyncio.get_running_loop()
        async with self._gate.turn(self._client.address, self._client.visitor) as turn:
            if self.ws_connection is None:  # gone while it waited
                return
            expiry = loop.call_later(HELD, turn.end)
            try:
                work = await super().answer(message)  # type: ignore[misc]
                if work:  # to write an answer down takes as long as to make it
                    await self.send_message(work)
            finally:
                expiry.cancel()
