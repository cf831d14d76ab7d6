"""Transfer of a file from one page to another of the same visitor, without a second upload."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from scant.errors import NotFound
from scant_dashboard.limits.uploads import Received


class CarriedFiles:
    """Files offered by open upload wizards to other pages of the same visitor. For the event loop.

    An offer lasts as long as the wizard holds the file, and can be taken once; the memory
    reservation is transferred with it.
    """

    def __init__(self) -> None:
        self._offers: dict[str, tuple[str, Callable[[], Received]]] = {}

    def offer(self, owner: str, hand_over: Callable[[], Received]) -> str:
        """Offer the file returned by `hand_over`; return the secret with which to take it."""
        made = secrets.token_urlsafe(12)  # 96 bits, like ids of runs and tables
        self._offers[made] = owner, hand_over
        return made

    def withdraw(self, secret: str) -> None:
        """Withdraw an offer."""
        self._offers.pop(secret, None)

    def take(self, owner: str, secret: str) -> Received:
        """Return an offered file.

        Raises:
            NotFound: There is no such offer for this visitor.
        """
        of, hand_over = self._offers.get(secret, ("", None))
        if hand_over is None or not owner or of != owner:
            raise NotFound("The table did not come along; drop its file here.")
        self.withdraw(secret)
        return hand_over()
