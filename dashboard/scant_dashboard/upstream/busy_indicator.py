"""A page of panel-material-ui follows Panel's global busy state, also without a busy indicator.

`panel_material_ui.template.Page` binds its `busy` to that of `panel.state`. So whatever anybody
does on any page changes every page twice, at a walk through all its models each (80 ms), and no
document ever goes, for the global state refers to all of them.

Private API of Param 2.4 and panel-material-ui 0.16, the latter pinned in pyproject.toml.
"""

from __future__ import annotations

import panel_material_ui as pmui


def detach(page: pmui.Page) -> None:
    """Take a page off Panel's global busy state."""
    private = page._param__private
    for _, watcher in private.ref_watchers:
        (watcher.inst or watcher.cls).param.unwatch(watcher)
    private.ref_watchers = []
