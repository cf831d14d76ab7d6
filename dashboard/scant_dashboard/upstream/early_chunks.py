"""A file dropper whose chunks are checked when they arrive.

Panel keeps any number of chunks of any size, each as a callback of the document, while the document
is busy, and the server checks neither `max_file_size` nor `multiple`. Here each chunk is checked
when it arrives, and only the result waits for the document.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.document import Document
from bokeh.events import Event


class EarlyDropper(pn.widgets.FileDropper):
    """File dropper that passes each chunk to `arrived`, and its result to `handle`."""

    _doc: Document | None = None

    def arrived(self, data: Any) -> Any:
        """Check a chunk, possibly while the document is busy; return None to ignore it."""
        raise NotImplementedError

    def handle(self, outcome: Any) -> None:
        """Handle the result of `arrived`; called on the document."""
        raise NotImplementedError

    def _server_event(self, doc: Document, event: Event) -> None:
        if event.event_name == "upload_event":
            given: Any = event
            data, given.data = given.data, None
            outcome = self.arrived(data)
            if outcome is None:
                return
            given.data = outcome
        self._doc = doc
        super()._server_event(doc, event)

    def _process_event(self, event: Any) -> None:
        outcome, event.data = event.data, None  # a log record may keep the event
        if event.event_name == "upload_event":
            self.handle(outcome)
