"""Patch: restore the current document if the body of `patch_curdoc` raises.

Bokeh's version has no `finally`, and its stack is global to the process. After a failed callback,
or an invalid websocket message, `curdoc()` returned that visitor's document to everybody else and,
once that visitor had left, raised "Patched curdoc has been previously destroyed"; see
holoviz/panel#3225, which holoviz/panel#3994 works around for `panel.state.curdoc` only.

Private API of Bokeh 3.9, pinned in pyproject.toml.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bokeh.application.handlers import code
from bokeh.document import Document
from bokeh.io import doc as current
from panel.io import handlers

original = current.patch_curdoc


def install() -> None:
    """Patch Bokeh, and Panel's imported names, in this process; idempotent."""
    for user in (current, code, handlers):
        patched: Any = user
        patched.patch_curdoc = patch_curdoc


@contextmanager
def patch_curdoc(doc: Document) -> Iterator[None]:
    """Like Bokeh's function, but always restores the previous document."""
    current._PATCHED_CURDOCS.append(weakref.ref(doc))
    del doc
    try:
        yield
    finally:
        current._PATCHED_CURDOCS.pop()
