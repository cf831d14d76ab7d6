"""Bokeh's `patch_curdoc` leaves its document current where what it encloses raises.

It has no `finally`, and what it keeps is the process's. So after a callback that failed, or a
message of a websocket that could not be applied, `curdoc()` is that visitor's document to everybody
else, and once the visitor has gone it raises "Patched curdoc has been previously destroyed"; see
holoviz/panel#3225, which holoviz/panel#3994 covers up for `panel.state.curdoc` alone.

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
    """Patch Bokeh, and Panel which took it by name, in this process; twice is as once."""
    for user in (current, code, handlers):
        patched: Any = user
        patched.patch_curdoc = patch_curdoc


@contextmanager
def patch_curdoc(doc: Document) -> Iterator[None]:
    """As Bokeh's, and taken back whatever happens inside."""
    current._PATCHED_CURDOCS.append(weakref.ref(doc))
    del doc
    try:
        yield
    finally:
        current._PATCHED_CURDOCS.pop()
