"""Button that fetches a data set, with the progress of the download."""

from __future__ import annotations

import html
from typing import Any

import panel_material_ui as pmui

from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text
from scant_dashboard.translate import tr

EVERY = 500  # milliseconds between updates of the progress


class FetchButton:
    """Button below a source that must be fetched first, with the progress of its download."""

    def __init__(self, page: ControlsContext) -> None:
        self._page, self._fetches = page, page.visit.site.fetches
        self._name = ""
        self._timer: Any = None
        self._button = pmui.Button(
            label=tr("Fetch"),
            on_click=lambda _: self._start(),
            variant="outlined",
            size="small",
            margin=0,
        )
        self._message = text("")
        self.panel = column(self._button, self._message, css=":host { gap: 6px; }", visible=False)

    def show(self, name: str) -> None:
        """Offer to fetch this source; "" hides the button."""
        self._name = name
        self.panel.visible = bool(name)
        if not name:
            return
        if self._fetches.here(name):
            self._update(False, tr("Fetched; stored in this server's data folder."))
        elif name in self._fetches.underway:
            self._start()
        else:
            self._update(True, tr("The server downloads it once before a run can use it."))

    @property
    def missing_data(self) -> str:
        """Step required before a run can use the chosen source, as a sentence; "" if none."""
        name = self._name
        if not name or self._fetches.here(name):
            return ""
        sources = self._page.entry.sources
        title = tr(next((s.title for s in sources if s.name == name), name))
        if name in self._fetches.underway:
            return tr("“{title}” is still being fetched; press Train once it is here.", title=title)
        return tr("“{title}” is not on this server yet; press Fetch below it first.", title=title)

    def _start(self) -> None:
        name = self._name
        self._update(False, tr("Fetching: the download begins…"))
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
        done, total = underway.done / 1e6, (underway.total or 0) / 1e6
        self._update(
            False,
            tr("Fetching: {done:.1f} of {total:.1f} MB so far.", done=done, total=total)
            if total
            else tr("Fetching: {done:.1f} MB so far.", done=done),
        )

    def _ended(self, name: str, refused: str) -> None:
        if self._timer is not None and not self._fetches.underway:
            self._page.visit.doc.remove_periodic_callback(self._timer)
            self._timer = None
        if name != self._name:
            return  # another source has been chosen meanwhile
        if refused:
            self._update(True, refused, "error", "alert")
        else:
            self.show(name)
            self._page.data.changed()

    def _update(
        self, offered: bool, sentence: str, kind: str = "quiet", role: str = "note"
    ) -> None:
        self._button.visible = offered
        self._message.object = f"<p class='{kind}' role='{role}'>{html.escape(sentence)}</p>"
