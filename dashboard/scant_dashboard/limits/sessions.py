"""Limits on live browser sessions: per visitor, per address and in total."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from scant_dashboard.limits.client import Busy, Client

PER_VISITOR = 24  # pages per cookie: open tabs, and recently closed ones
PER_ADDRESS = 120  # thirty people with four tabs each behind one router
OVERALL = 600  # 2 MB each


class LiveSessions:
    """The live sessions with their clients.

    Args:
        per_visitor: Maximum sessions with the same visitor cookie.
        per_address: Maximum sessions of the same address.
        overall: Maximum sessions in total.
    """

    def __init__(
        self,
        per_visitor: int = PER_VISITOR,
        per_address: int = PER_ADDRESS,
        overall: int = OVERALL,
    ) -> None:
        self._bounds = per_visitor, per_address, overall
        # Weak keys, so that ended sessions disappear by themselves.
        self._clients: WeakKeyDictionary[Any, Client] = WeakKeyDictionary()

    def add(self, session: Any, client: Client) -> None:
        """Count a client's session until it is destroyed."""
        self._clients[session] = client

    def check(self, client: Client) -> None:
        """Check whether a client may open another session.

        Raises:
            Busy: A limit is reached.
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
