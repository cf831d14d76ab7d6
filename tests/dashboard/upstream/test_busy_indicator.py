"""A page that shows no busy indicator does not follow Panel's global busy state."""

from __future__ import annotations

import panel as pn
import panel_material_ui as pmui
import pytest

from scant_dashboard.upstream import busy_indicator


@pytest.mark.parametrize("detached", [True, False], ids=["patched", "needed still"])
def test_what_others_do_changes_a_page_only_without_the_patch(detached: bool) -> None:
    page = pmui.Page(busy_indicator=None)
    if detached:
        busy_indicator.detach(page)
    heard: list[object] = []
    page.param.watch(heard.append, "busy")
    pn.state._add_busy_event("a press on another page")
    pn.state._remove_busy_event("a press on another page")
    assert bool(heard) is not detached
    busy_indicator.detach(page)
