"""A view on the page: its heading, the plot, and the reading that says in words what it shows."""

from __future__ import annotations

import html
import re
import time
from typing import Any

import panel as pn
from panel.viewable import Viewable

from dashboard.shell import text

READ_EVERY = 1.0  # seconds between changes of a reading, so that it can be read


class Figure:
    """Lays out one `views.View` and keeps its reading current."""

    def __init__(self, view: Any, wide: bool = False) -> None:
        self.view = view
        self._read_at = 0.0
        self._reading = text(_caption(view))
        heading = (
            f"<h3 id='{slug(view.title)}' data-step tabindex='-1'>{html.escape(view.title)}</h3>"
        )
        self.panel: Viewable = pn.Column(
            text(heading),
            view.panel,
            self._reading,
            sizing_mode="stretch_width",
            margin=0,
            css_classes=["figure", "wide"] if wide else ["figure"],
            stylesheets=[":host { gap: 6px; min-width: 0; }"],
        )

    def read(self, at_once: bool = False) -> None:
        """Say what the plot shows by now."""
        now = time.monotonic()
        if at_once or now - self._read_at >= READ_EVERY:
            self._read_at = now
            caption = _caption(self.view)
            if caption != self._reading.object:
                self._reading.object = caption


def slug(title: str) -> str:
    """A title as an id in the page."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _caption(view: Any) -> str:
    return f"<p class='reading'>{html.escape(getattr(view, 'alt', '') or '')}</p>"
