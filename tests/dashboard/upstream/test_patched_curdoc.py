"""The current document is what it was after a callback or a message that fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from bokeh.application.handlers import code
from bokeh.document import Document
from bokeh.io import doc as current
from panel.io import handlers

from scant_dashboard.upstream import patched_curdoc


def left_behind(patch: Callable[[Any], Any], doc: Document) -> bool:
    """Whether `doc` is current still after a fault under it."""
    before = list(current._PATCHED_CURDOCS)
    with suppress(RuntimeError), patch(doc):
        raise RuntimeError
    left = len(current._PATCHED_CURDOCS) > len(before)
    current._PATCHED_CURDOCS[:] = before
    return left


@pytest.mark.parametrize("user", [current, code, handlers])
def test_nothing_is_left_wherever_it_is_used(user: Any) -> None:
    patched_curdoc.install()
    doc = Document()
    assert not left_behind(user.patch_curdoc, doc)
    with user.patch_curdoc(doc):
        assert current.curdoc() is doc


def test_nobody_else_has_taken_it_by_name() -> None:
    """Another module that imports it needs the patch, too."""
    patched_curdoc.install()
    users = [
        name
        for name, module in list(sys.modules.items())
        if getattr(module, "__dict__", {}).get("patch_curdoc") is patched_curdoc.original
    ]
    assert users == []


def test_bokeh_needs_it_still() -> None:
    assert left_behind(patched_curdoc.original, Document())
