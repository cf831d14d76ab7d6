"""Requests to a training loop, which reads them at every step.

A separate module, so that a worker can receive requests before PyTorch is imported.
"""

from collections.abc import Callable

from scant.events import Event


class Control:
    """Request to a run: None (continue), "pause", "stop", or "abandon".

    An abandoned attempt ends without further events, since its run continues elsewhere. `heeded` is
    set by the loop after it has received a request to pause or stop.

    Attributes:
        tell: Called with events of a long computation, such as its phases, before the loop can
            yield its next event. None: these events are dropped.
    """

    def __init__(self, wish: str | None = None) -> None:
        self.wish = wish
        self.heeded = False
        self.tell: Callable[[Event], None] | None = None

    def pause(self) -> None:
        """Request a checkpoint and a pause."""
        self.wish = "pause"

    def stop(self) -> None:
        """Request the end, with the best parameters so far as the result."""
        self.wish = "stop"
