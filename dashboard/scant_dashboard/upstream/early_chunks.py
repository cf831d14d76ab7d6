"""Panel's file dropper keeps chunks of any number and size, each as a callback of the document.

They wait as long as the document is busy, and neither `max_file_size` nor `multiple` is looked at
on the server. Here a chunk is looked at when it arrives, and only what comes of it waits.

Private API of Panel 1.9, pinned in pyproject.toml.
"""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.document import Document
from bokeh.events import Event


class EarlyDropper(pn.widgets.FileDropper):
    """A file dropper that gives each chunk to `arrived`, and what that returns to `handle`."""

    _doc: Document | None = None

    def arrived(self, data: Any) -> Any:
        """Look at a chunk, perhaps while the document is busy; None: there is nothing to handle."""
        raise NotImplementedError

    def handle(self, outcome: Any) -> None:
        """Handle what came of chunks, on the document."""
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
