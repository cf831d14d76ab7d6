"""Banner below the run bar while nothing can be trained."""

from __future__ import annotations

import html
import time

from bokeh.document import Document

from scant_dashboard.engine_text import translated
from scant_dashboard.frame.site import Site
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

EVERY = 2000  # milliseconds between checks
PATIENCE = 6.0  # seconds to replace a lost worker, or to start the first ones
NO_WORKER = later(
    "No worker is running: training and predictions are not available. A run that you start now "
    "waits for a worker."
)
STILL = later("Finished and recorded runs can still be viewed and replayed.")


class HealthBanner:
    """Shows why nothing can be trained, while that is so."""

    def __init__(self, site: Site, doc: Document) -> None:
        self._site = site
        self._up = time.monotonic()  # when a worker was last available
        self.panel = text("", visible=False)
        self._check()
        doc.add_periodic_callback(self._check, EVERY)

    def _check(self) -> None:
        now = time.monotonic()
        if self._site.service.healthy():
            self._up = now
        if self._site.fault:
            self._say(translated(self._site.fault), "error", "alert")
        else:
            self._say(tr(NO_WORKER) if now - self._up > PATIENCE else "", "warning", "note")

    def _say(self, why: str, kind: str, role: str) -> None:
        message = f"<p class='message {kind}' role='{role}'>{html.escape(why)} {tr(STILL)}</p>"
        message = message if why else ""
        if self.panel.object != message:
            self.panel.object = message
            self.panel.visible = bool(message)
