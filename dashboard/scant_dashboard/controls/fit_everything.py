"""Fit on everything: repeat the current run, then fit on all rows for prediction."""

from __future__ import annotations

import panel_material_ui as pmui

from scant.studies.split import EVERYTHING
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import ControlsContext
from scant_dashboard.page_parts.widgets import column
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

HELP = later(
    "This repeats the run and then fits the model again on all rows, including those held out. "
    "Predictions come from that last fit; the scores are those of the first, on held-out rows."
)


class FitEverything:
    """A button in Result for runs with held-out rows."""

    def __init__(self, page: ControlsContext) -> None:
        self._page = page
        self.button = pmui.Button(
            label=tr("Fit on everything"), variant="outlined", size="small", margin=0
        )
        self.button.on_click(lambda _: self._begin())
        self.panel = column(
            self.button,
            text(f"<p class='quiet'>{tr(HELP)}</p>"),
            css=":host { gap: 6px; }",
            visible=False,
        )

    def show(self, run: RunState) -> None:
        """Offer the button if the run succeeded and has held out rows."""
        has_split = "refit" in self._page.entry.settings.names()
        done = run.state.usable and run.record.settings.get("refit") != EVERYTHING
        self.panel.visible = has_split and done and not self._page.present

    def _begin(self) -> None:
        page = self._page
        if page.run is None:
            return
        record = page.run.record
        values = {**record.settings, "refit": EVERYTHING}
        page.background(page.submit(values, record.data), self._submitted)

    def _submitted(self, run: str) -> None:
        self._page.open(run)
        self._page.address()
