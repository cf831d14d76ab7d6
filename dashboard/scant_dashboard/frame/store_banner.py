"""The line at the top of every page while the server cannot store anything."""

from __future__ import annotations

import html
from typing import Any

import panel as pn
from bokeh.document import Document

from scant_dashboard.frame.site import Site

EVERY = 2000  # milliseconds between looks
MEANWHILE = (
    "Training continues; its results wait in memory and appear here once they are stored. Until "
    "then nothing can be started or changed."
)


class StoreBanner:
    """Says that nothing can be stored, for as long as it is so.

    Args:
        site: Whose run service is asked.
        doc: The session's document, on which it looks every two seconds.
        panel: Where it says so.
    """

    def __init__(self, site: Site, doc: Document, panel: pn.pane.HTML) -> None:
        self._site = site
        self.panel: Any = panel
        self._look()
        doc.add_periodic_callback(self._look, EVERY)

    def _look(self) -> None:
        why = self._site.service.storing()
        message = f"<p class='message error' role='alert'>{html.escape(why)} {MEANWHILE}</p>"
        message = message if why else ""
        if self.panel.object != message:
            self.panel.param.update(object=message, visible=bool(message))
