"""Files on their way from one page to another of the same visitor, who sends them only once."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from scant.errors import NotFound
from scant_dashboard.limits.uploads import Received


class CarriedFiles:
    """Files that open wizards offer to other pages of their visitors. Used on the event loop.

    An offer lives as long as the wizard holds the file, and is taken once; its reservation of
    memory goes with it.
    """

    def __init__(self) -> None:
        self._offers: dict[str, tuple[str, Callable[[], Received]]] = {}

    def offer(self, owner: str, hand_over: Callable[[], Received]) -> str:
        """Offer a file that `hand_over` gives away; the secret by which it is asked for."""
        made = secrets.token_urlsafe(12)  # 96 bits, as ids of runs and tables have
        self._offers[made] = owner, hand_over
        return made

    def withdraw(self, secret: str) -> None:
        """The file is no longer held."""
        self._offers.pop(secret, None)

    def take(self, owner: str, secret: str) -> Received:
        """The file.

        Raises:
            NotFound: There is none of that name for this visitor.
        """
        of, hand_over = self._offers.get(secret, ("", None))
        if hand_over is None or not owner or of != owner:
            raise NotFound("The table did not come along; drop its file here.")
        self.withdraw(secret)
        return hand_over()
