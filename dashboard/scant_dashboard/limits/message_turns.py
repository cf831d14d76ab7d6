"""Queues of messages of open pages: per network address one message at a time, in fair turns.

A message may take a third of a second of the event loop (e.g. the whole document, which each page
requests once), during which the server cannot respond. A hundred such messages of one client would
block it for half a minute. Therefore they wait for each other, and the loop is free for a fraction
of their time after each. Addresses do not wait for each other.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from scant_dashboard.limits.client import Client
from scant_dashboard.limits.gate import PageGate

# A connection has one waiting message at most, so that the limits on connections suffice.
UNBOUNDED = 2**31
HELD = 0.5  # seconds after which a turn ends even if its response is not sent yet


class MessageTurns:
    """The queues of all addresses with open pages. For a single event loop."""

    def __init__(self) -> None:
        self._gates: WeakValueDictionary[str, PageGate] = WeakValueDictionary()

    def gate(self, address: str) -> PageGate:
        """Return the queue of an address, which exists as long as it is referenced."""
        gate = self._gates.get(address)
        if gate is None:
            gate = PageGate(UNBOUNDED, UNBOUNDED, UNBOUNDED, shortest=0.0)
            self._gates[address] = gate
        return gate


class BoundedSocket:
    """Mixin for the websocket handler of pages: messages are handled in turns."""

    turns: MessageTurns  # set by `bound_pages`, like `key`
    key: str
    _client: Client | None = None
    _gate: PageGate | None = None

    async def answer(self: Any, message: Any) -> None:
        """Handle a message in its turn, and send the response."""
        if self._client is None:
            self._client = Client.of(self.request, self.key)
            self._gate = self.turns.gate(self._client.address)
        loop = asyncio.get_running_loop()
        async with self._gate.turn(self._client.address, self._client.visitor) as turn:
            if self.ws_connection is None:  # closed while waiting
                return
            expiry = loop.call_later(HELD, turn.end)
            try:
                work = await super().answer(message)  # type: ignore[misc]
                if work:  # serialization takes as long as the work
                    await self.send_message(work)
            finally:
                expiry.cancel()
