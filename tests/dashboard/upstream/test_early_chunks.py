"""Chunks of a file are looked at as they arrive; Panel's dropper keeps whatever comes."""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.document import Document
from panel.models.file_dropper import DeleteEvent, UploadEvent

from scant_dashboard.upstream.early_chunks import EarlyDropper

OVER = {"name": "t.csv", "chunk": 1, "total_chunks": 2, "data": b"x" * 2000, "type": "text/csv"}


class Refusing(EarlyDropper):
    """Takes note of what comes, and refuses every second chunk."""

    def arrived(self, data: Any) -> str | None:
        return None if data["chunk"] == 1 else "too large"

    def handle(self, outcome: str) -> None:
        self.said = [*getattr(self, "said", []), outcome]


def test_what_a_chunk_comes_to_is_handled_and_nothing_is_kept() -> None:
    pn.extension("filedropper")
    dropper = Refusing(max_file_size="1KB")
    for chunk in (1, 2):
        dropper._server_event(Document(), UploadEvent(None, OVER | {"chunk": chunk}))
    dropper._server_event(Document(), DeleteEvent(None, {"name": "t.csv"}))
    assert dropper.said == ["too large"]
    assert dropper._file_buffer == {}


def test_panel_needs_it_still() -> None:
    pn.extension("filedropper")
    dropper = pn.widgets.FileDropper(max_file_size="1KB", multiple=False)
    for name in ("t.csv", "u.csv"):
        dropper._server_event(Document(), UploadEvent(None, OVER | {"name": name}))
    assert sum(len(chunk) for kept in dropper._file_buffer.values() for chunk in kept) == 4000
