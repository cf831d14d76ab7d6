"""An event that Panel puts off is handled while the document is locked."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from bokeh.document import Document
from panel.io.state import set_curdoc, state
from panel.widgets import Button

from dashboard.locking import lock_events


def test_an_event_that_is_put_off_takes_the_lock() -> None:
    doc: Any = Document()
    doc._session_context = lambda: MagicMock(session=None)  # as on a server
    lock_events()
    with set_curdoc(doc):
        state.execute(partial(Button()._event_coroutine, doc, SimpleNamespace()), schedule=True)
    (waiting,) = doc.session_callbacks
    callback: Any = waiting.callback
    assert not getattr(callback, "nolock", False)
