"""Limits on browser sessions that live at once, by visitor, by address and in all."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from scant_dashboard.limits.client import Busy, Client

PER_VISITOR = 24  # pages of one cookie: tabs, and those just closed
PER_ADDRESS = 120  # thirty people with four tabs each behind one router
OVERALL = 600  # 2 MB each


class LiveSessions:
    """The sessions that are live, each with its client.

    Args:
        per_visitor: Sessions of the same visitor cookie.
        per_address: Sessions of the same address.
        overall: Sessions in all.
    """

    def __init__(
        self,
        per_visitor: int = PER_VISITOR,
        per_address: int = PER_ADDRESS,
        overall: int = OVERALL,
    ) -> None:
        self._bounds = per_visitor, per_address, overall
        # Sessions are the keys, so nothing needs to be called when one ends in whatever way.
        self._clients: WeakKeyDictionary[Any, Client] = WeakKeyDictionary()

    def add(self, session: Any, client: Client) -> None:
        """Count a Bokeh session that was made for a client, until it is destroyed."""
        self._clients[session] = client

    def check(self, client: Client) -> None:
        """Whether a client may have one more session.

        Raises:
            Busy: It may not; the sentence says why.
        """
        live = [c for session, c in list(self._clients.items()) if not session.destroyed]
        per_visitor, per_address, overall = self._bounds
        if client.visitor and sum(c == client for c in live) >= per_visitor:
            raise Busy(
                f"You have {per_visitor} pages of this server open, which is the limit; close "
                "some, and this one opens within half a minute.",
                seconds=10,
            )
        if sum(c.address == client.address for c in live) >= per_address:
            raise Busy(
                f"Your network has {per_address} pages of this server open, which is the limit; "
                "this one opens when others are closed.",
                seconds=10,
            )
        if len(live) >= overall:
            raise Busy(
                f"This server has {overall} pages open, which is its limit; this one opens when "
                "others are closed.",
                status=503,
                seconds=10,
            )
