"""Fetching a data set from the page, and how its download is doing."""

from __future__ import annotations

import html
from typing import Any

import panel_material_ui as pmui

from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text

EVERY = 500  # milliseconds between readings of the progress


class FetchButton:
    """The button under a source that must be fetched first, and how its download is doing."""

    def __init__(self, page: ControlsContext) -> None:
        self._page, self._fetches = page, page.visit.site.fetches
        self._name = ""
        self._timer: Any = None
        self._button = pmui.Button(
            label="Fetch", on_click=lambda _: self._go(), variant="outlined", size="small", margin=0
        )
        self._said = text("")
        self.panel = column(self._button, self._said, css=":host { gap: 6px; }", visible=False)

    def show(self, name: str) -> None:
        """Offer to fetch this source; "" offers nothing."""
        self._name = name
        self.panel.visible = bool(name)
        if not name:
            return
        if self._fetches.here(name):
            self._offer(False, "Fetched; stored in this server's data folder.")
        elif name in self._fetches.underway:
            self._go()
        else:
            self._offer(True, "The server downloads it once before a run can use it.")

    @property
    def wanting(self) -> str:
        """What must come before a run can use the chosen source, as a sentence; "" if nothing."""
        name = self._name
        if not name or self._fetches.here(name):
            return ""
        title = next((s.title for s in self._page.entry.sources if s.name == name), name)
        if name in self._fetches.underway:
            return f"“{title}” is still being fetched; press Train once it is here."
        return f"“{title}” is not on this server yet; press Fetch below it first."

    def _go(self) -> None:
        name = self._name
        self._offer(False, "Fetching: asking the server…")
        if self._timer is None:
            self._timer = self._page.visit.doc.add_periodic_callback(self._tick, EVERY)
        self._page.background(
            self._fetches.fetch(name),
            lambda _: self._ended(name, ""),
            refused=lambda sentence: self._ended(name, sentence),
        )

    def _tick(self) -> None:
        underway = self._fetches.underway.get(self._name)
        if underway is None or not underway.done:
            return
        of = f" of {underway.total / 1e6:.1f}" if underway.total else ""
        self._offer(False, f"Fetching: {underway.done / 1e6:.1f}{of} MB so far.")

    def _ended(self, name: str, refused: str) -> None:
        if self._timer is not None and not self._fetches.underway:
            self._page.visit.doc.remove_periodic_callback(self._timer)
            self._timer = None
        if name != self._name:
            return  # another source is chosen by now
        if refused:
            self._offer(True, refused, "error", "alert")
        else:
            self.show(name)
            self._page.data.changed()

    def _offer(self, offered: bool, sentence: str, kind: str = "quiet", role: str = "note") -> None:
        self._button.visible = offered
        self._said.object = f"<p class='{kind}' role='{role}'>{html.escape(sentence)}</p>"
