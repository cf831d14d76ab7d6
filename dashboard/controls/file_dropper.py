"""Panel's file dropper, with the limits on upload bytes applied to every chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scant.dashboard.limits.client import Client
from scant.dashboard.limits.uploads import (
    CHUNK,
    Received,
    Reservation,
    UploadBudget,
    UploadReceiver,
)
from scant.dashboard.upstream.early_chunks import EarlyDropper
from scant.errors import BadInput


class BoundedDropper(EarlyDropper):
    """Takes one file at a time; `value` is {name: bytes} once it is whole.

    Panel keeps chunks of any number and size, and each waits as a callback of the document while
    that is busy. Here a chunk is counted when it arrives, and only the whole file, or the sentence
    by which it is refused, waits for the document.

    Args:
        budget: The server's budget of upload bytes.
        client: Who uploads.
        limit: Bytes of a file.
        started: Called when a file begins to come; what was uploaded before is to be let go.
        refused: Called on the document with a sentence.
    """

    def __init__(
        self,
        budget: UploadBudget,
        client: Client,
        limit: int,
        started: Callable[[], None],
        refused: Callable[[str], None],
        **params: Any,
    ) -> None:
        super().__init__(
            multiple=False, chunk_size=CHUNK, max_file_size=f"{limit // 10**6}MB", **params
        )
        self._receiver = UploadReceiver(budget, client, limit, self._stalled)
        self._reservation: Reservation | None = None
        self._started, self._refused = started, refused

    def release(self) -> None:
        """The file is not needed any more, nor what has come of another one."""
        self._receiver.drop()
        if self._reservation is not None:
            self._reservation.release()
        self._reservation = None

    def arrived(self, data: Any) -> Received | str | None:
        """Count a chunk; returns the whole file, or the sentence by which it is refused."""
        if not isinstance(data, dict):
            return None
        if data.get("chunk") == 1:
            self.release()
            self._started()
        try:
            return self._receiver.take(data)
        except BadInput as error:
            return str(error)

    def handle(self, outcome: Received | str) -> None:
        """Show it on the page."""
        if isinstance(outcome, Received):
            self._reservation = outcome.reservation
            self.value = {outcome.name: outcome.content}
        else:
            self._refused(outcome)

    def _stalled(self, sentence: str) -> None:
        if self._doc is not None and self._doc.session_context is not None:
            self._doc.add_next_tick_callback(lambda: self._refused(sentence))
