"""Survival of a single patient on the multiview page."""

from __future__ import annotations

from functools import partial

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import PlotView, header
from scant_dashboard.plots.patient import PatientPlot
from scant_dashboard.translate import later, tr

HELP = later("Choose a held-out subject.")
NOBODY = later("There are no held-out subjects; choose a smaller training share.")


class Patient(PlotView):
    """A held-out patient: survival function, prediction from each sample, and outcome."""

    title = later("How long until the event?")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._suspended = False
        self.plot = PatientPlot(self.title)
        self.figures = self.plot.figures
        self.container = pn.Column(
            self.plot.panel, visible=False, sizing_mode="stretch_width", margin=0
        )
        self._prompt = HELP
        self.who = pmui.Select(
            label=tr("Subject"), options=[], disabled=True, size="small", margin=0,
            sizing_mode="stretch_width", max_width=280,
        )  # fmt: skip
        self.who.param.watch(lambda _: self._ask(), "value")
        self.panel = stacked(self.who, self.container)

    @property
    def alt(self) -> str:
        return str(self.plot.alt) if self.container.visible else tr(self._prompt)

    def open(self, run: RunState) -> None:
        """Offer the held-out patients; only the run's owner sees one immediately."""
        names = [str(name) for name in run.metadata["patients"]]
        self.who.label = header(run.metadata, "patient") or tr("Subject")
        self._prompt = HELP if names else NOBODY
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        at_once = bool(names) and (run.recorded or self._page.owns_run)
        self._suspended = True
        options = {tr("none chosen"): "", **{name: name for name in names}}
        self.who.param.update(
            options=options, value=names[0] if at_once else "", disabled=not names
        )
        self._suspended = False
        self._ask()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.plot.clear()
        self.container.visible = False
        self.who.disabled = True

    def _ask(self) -> None:
        if not self._suspended and self.who.value:
            who = str(self.who.value)
            self._page.ask("patient", partial(self._answered, who), patient=who)

    def _answered(self, who: str, answer: dict[str, np.ndarray]) -> None:
        median = tuple(float(answer[name][0]) for name in ("predicted", "low", "high"))
        curve = (answer["curve_time"], answer["curve"])
        truth, died = float(answer["time"][0]), bool(answer["event"][0] > 0.5)
        self.container.visible = True
        self.plot.show(who, median, answer["rows"], curve, truth, died)
