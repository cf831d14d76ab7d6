"""A wish from outside, read by the training loop at every step.

It stands apart from the loop so that a worker can take a wish before it has imported torch.
"""


class Control:
    """What is wished of a run: None (go on), "pause", "stop", or "abandon".

    An abandoned attempt ends without another word: its run goes on elsewhere. `heeded` is set by
    the loop once it has taken a wish to pause or stop: a step that never ends leaves it unset.
    """

    def __init__(self, wish: str | None = None) -> None:
        self.wish = wish
        self.heeded = False

    def pause(self) -> None:
        """Ask for a checkpoint and an end that can be resumed."""
        self.wish = "pause"

    def stop(self) -> None:
        """Ask for the end; the best parameters so far become the result."""
        self.wish = "stop"
