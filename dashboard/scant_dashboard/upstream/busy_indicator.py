"""Patch: detach a page from Panel's global busy state.

`panel_material_ui.template.Page` binds its `busy` to that of `panel.state`, even without a busy
indicator. Any activity on any page therefore changes every page twice, each time with a traversal
of all its models (80 ms), and no document is ever freed, because the global state refers to all.

Private API of Param 2.4 and panel-material-ui 0.16, the latter pinned in pyproject.toml.
"""

from __future__ import annotations

import panel_material_ui as pmui


def detach(page: pmui.Page) -> None:
    """Stop a page from following Panel's global busy state."""
    private = page._param__private
    for _, watcher in private.ref_watchers:
        (watcher.inst or watcher.cls).param.unwatch(watcher)
    private.ref_watchers = []
