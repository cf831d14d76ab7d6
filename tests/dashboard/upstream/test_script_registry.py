"""Panel's register of scripts keeps no part of a page that was released."""

from __future__ import annotations

import gc
import weakref

import panel as pn
import pytest
from panel.links import Callback

from scant_dashboard.upstream import script_registry


@pytest.mark.slow
@pytest.mark.parametrize("released", [True, False], ids=["patched", "needed still"])
def test_a_page_goes_only_with_the_patch(released: bool) -> None:
    button = pn.widgets.Button()
    page = pn.Column(button)
    button.js_on_click(args={"button": button}, code="1")
    if released:
        script_registry.release(page)
    left = weakref.ref(button)
    del button, page
    gc.collect()
    kept = left()
    assert (kept is None) is released
    if kept is not None:
        Callback.registry.pop(kept)
