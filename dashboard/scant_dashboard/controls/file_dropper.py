"""Panel's file dropper with the limits on upload bytes applied to every chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scant.errors import BadInput
from scant.runs.addresses import network
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.images.archives import IMAGE_LIMIT_BYTES
from scant_dashboard.frame.session import SessionContext
from scant_dashboard.limits.client import Client
from scant_dashboard.limits.uploads import (
    CHUNK,
    Received,
    Reservation,
    UploadReceiver,
)
from scant_dashboard.upstream.early_chunks import EarlyDropper

HEIGHT = 120  # pixels, for the file's name and progress


class BoundedDropper(EarlyDropper):
    """File dropper for one file at a time; `value` is {name: bytes} once it is complete.

    Panel stores any number of chunks of any size, and each waits as a document callback while the
    document is busy. Here chunks are counted on arrival, and only the complete file, or the error
    message, waits for the document.

    Args:
        visit: The session of the dropper. Memory is reserved for its visitor and freed with the
            session.
        images: Whether images are taken, whose limit is larger.
        started: Called when a file starts to arrive; the previous one is to be released.
        dropped: Called with `value` when it changes.
        refused: Called on the document with an error message.
    """

    def __init__(
        self,
        visit: SessionContext,
        images: bool,
        started: Callable[[], None],
        dropped: Callable[[dict[str, bytes | str]], None],
        refused: Callable[[str], None],
        **params: Any,
    ) -> None:
        limit = IMAGE_LIMIT_BYTES if images else LIMIT_BYTES
        super().__init__(
            multiple=False,
            chunk_size=CHUNK,
            max_file_size=f"{limit // 10**6}MB",
            sizing_mode="stretch_width",
            margin=0,
            height=HEIGHT,
            **params,
        )
        self.limit = limit
        client = Client(network(visit.address), visit.owner)
        self._receiver = UploadReceiver(visit.site.uploads, client, limit, self._stalled)
        self._reservation: Reservation | None = None
        self._started, self._refused = started, refused
        visit.doc.on_session_destroyed(lambda _: self.release())
        self.param.watch(lambda event: dropped(event.new), "value")

    def release(self) -> None:
        """Free the memory of the file, and of one that is still arriving."""
        self._receiver.drop()
        if self._reservation is not None:
            self._reservation.release()
        self._reservation = None

    def hand_over(self) -> Reservation:
        """Transfer the reservation of the file's memory to the caller."""
        assert self._reservation is not None
        made, self._reservation = self._reservation, None
        return made

    def arrived(self, data: Any) -> Received | str | None:
        """Count a chunk; return the complete file, an error message, or None if more is to come."""
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
        """Show the outcome on the page."""
        if isinstance(outcome, Received):
            self._reservation = outcome.reservation
            self.value = {outcome.name: outcome.content}
        else:
            self._refused(outcome)

    def _stalled(self, sentence: str) -> None:
        if self._doc is not None and self._doc.session_context is not None:
            self._doc.add_next_tick_callback(lambda: self._refused(sentence))
