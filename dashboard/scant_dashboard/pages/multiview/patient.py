"""The multiview page's question: how long will this patient live?"""

from __future__ import annotations

from functools import partial

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.patient import PatientPlot

HELP = "Choose a held-out patient."
CHOOSE = "none chosen"
NOBODY = "There are no held-out patients; choose a smaller training share."


class Patient(PlotView):
    """A held-out patient: his survival function, what each sample says, and what happened."""

    title = "How long will this patient live?"

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._quiet = False
        self.plot = PatientPlot(self.title)
        self.figures = self.plot.figures
        self.drawn = pn.Column(
            self.plot.panel, visible=False, sizing_mode="stretch_width", margin=0
        )
        self._said = HELP
        self.who = pmui.Select(
            label="Patient", options=[], disabled=True, size="small", margin=0,
            sizing_mode="stretch_width", max_width=280,
        )  # fmt: skip
        self.who.param.watch(lambda _: self._ask(), "value")
        self.panel = stacked(self.who, self.drawn)

    @property
    def alt(self) -> str:
        return str(self.plot.alt) if self.drawn.visible else self._said

    def open(self, run: RunState) -> None:
        """Take the run's held-out patients; a visitor who trained it sees one at once."""
        names = [str(name) for name in run.metadata["patients"]]
        self._said = HELP if names else NOBODY
        # A crowd that watches one run should not ask all at once when it ends.
        at_once = bool(names) and (run.recorded or self._page.mine)
        self._quiet = True
        options = {CHOOSE: "", **{name: name for name in names}}
        self.who.param.update(
            options=options, value=names[0] if at_once else "", disabled=not names
        )
        self._quiet = False
        self._ask()

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self.plot.clear()
        self.drawn.visible = False
        self.who.disabled = True

    def _ask(self) -> None:
        if not self._quiet and self.who.value:
            who = str(self.who.value)
            self._page.ask("patient", partial(self._answered, who), patient=who)

    def _answered(self, who: str, answer: dict[str, np.ndarray]) -> None:
        median = tuple(float(answer[name][0]) for name in ("predicted", "low", "high"))
        curve = (answer["curve_time"], answer["curve"])
        truth, died = float(answer["time"][0]), bool(answer["event"][0] > 0.5)
        self.drawn.visible = True
        self.plot.show(who, median, answer["rows"], curve, truth, died)
