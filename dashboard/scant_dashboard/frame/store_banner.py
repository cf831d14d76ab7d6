"""Banner on every page while the server cannot store anything."""

from __future__ import annotations

import html
from typing import Any

import panel as pn
from bokeh.document import Document

from scant_dashboard.frame.site import Site
from scant_dashboard.translate import later, tr

EVERY = 2000  # milliseconds between checks
MEANWHILE = later(
    "Training continues; its results wait in memory and appear here once they are stored. Until "
    "then nothing can be started or changed."
)


class StoreBanner:
    """Shows that nothing can be stored, while that is so.

    Args:
        site: The site, whose run service is checked.
        doc: The session's document, on which the check runs every two seconds.
        panel: Pane for the message.
    """

    def __init__(self, site: Site, doc: Document, panel: pn.pane.HTML) -> None:
        self._site = site
        self.panel: Any = panel
        self._check()
        doc.add_periodic_callback(self._check, EVERY)

    def _check(self) -> None:
        why = self._site.service.storing()
        message = f"<p class='message error' role='alert'>{html.escape(why)} {tr(MEANWHILE)}</p>"
        message = message if why else ""
        if self.panel.object != message:
            self.panel.param.update(object=message, visible=bool(message))
