"""Events that Panel puts off take the document's lock; Panel's own way does not."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc, state
from panel.reactive import Syncable
from panel.widgets import Button

from scant_dashboard.upstream import event_lock


def without_lock() -> bool:
    """Whether an event that is put off is handled without the lock."""
    doc: Any = Document()
    doc._session_context = lambda: MagicMock(session=None)  # as on a server
    with set_curdoc(doc):
        state.execute(partial(Button()._event_coroutine, doc, SimpleNamespace()), schedule=True)
    (waiting,) = doc.session_callbacks
    return bool(getattr(waiting.callback, "nolock", False))


def test_an_event_that_is_put_off_takes_the_lock() -> None:
    event_lock.install()
    assert not without_lock()


def test_panel_needs_it_still(monkeypatch: pytest.MonkeyPatch) -> None:
    event_lock.install()
    monkeypatch.delattr(Syncable._event_coroutine, "lock")
    assert without_lock()
