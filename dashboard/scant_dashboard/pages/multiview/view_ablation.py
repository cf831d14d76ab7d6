"""Scores of a multiview model trained on a subset of the views."""

from __future__ import annotations

from functools import partial

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.on_demand import OnDemandView
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.view_ablation import AblationResult, ViewAblationPlot
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

ASIDE = later(
    "The model is retrained on the selected views. For comparison, a support vector machine "
    "(kernel regression for values) takes the average of their kernels on the same rows, 600 at "
    "most. Each combination adds a row."
)
HELP = later("Clear a view or two, then press the button.")


class ViewAblation(OnDemandView):
    """Scores by combination of views, of the network and of averaged kernels."""

    title = later("What is each view worth?")
    help = HELP

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._results: list[AblationResult] = []
        self._metric = "score"
        self.plot = ViewAblationPlot(self.title)
        self.figures = self.plot.figures
        self.container = pn.Column(
            self.plot.panel, visible=False, sizing_mode="stretch_width", margin=0
        )
        self.views = pmui.CheckBoxGroup(label=tr("Views in use"), inline=True,
                                        disabled=True, margin=0)  # fmt: skip
        self.button = pmui.Button(label=tr("Train with these"), variant="outlined",
                                  disabled=True, margin=0)  # fmt: skip
        self.button.on_click(lambda _: self._train())
        self.panel = stacked(
            self.views, self.button, text(f"<p class='quiet'>{tr(ASIDE)}</p>"), self.container
        )

    def open(self, run: RunState) -> None:
        """Offer the run's views."""
        names = [str(name) for name in run.metadata["views"]]
        on = [str(name) for name in run.metadata["looked"]]
        self._metric = str(run.metadata["score"])
        self.views.param.update(options=names, value=on, disabled=False)
        self.button.disabled = False

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        super().clear(run)
        self._results = []
        self.container.visible = False
        self.views.disabled = self.button.disabled = True

    def _train(self) -> None:
        on = [name for name in self.views.options if name in (self.views.value or ())]
        if not on:
            self._page.say(tr("Select at least one view."))
            return
        self._page.say("")
        if tuple(on) not in [result.views for result in self._results]:
            doing = tr(
                "training with {views}, then the average of their kernels", views=", ".join(on)
            )
            self._work(doing, "views", partial(self._trained, tuple(on)), views=on)

    def _trained(self, on: tuple[str, ...], answer: dict[str, np.ndarray]) -> None:
        model, averaged = (float(answer[name][0]) for name in ("score", "averaged"))
        self._results.append(AblationResult(on, model, averaged))
        self.container.visible = True
        self.plot.show(self._results, list(self.views.options), tr(self._metric))
