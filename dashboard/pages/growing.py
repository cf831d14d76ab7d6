"""A curve that a slider grows: wherever it stops, the study is asked and adds a point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import panel as pn
import panel_material_ui as pmui

from dashboard.pages.place import STACKED
from dashboard.plots.base import NOTHING, Shown
from dashboard.shell import text

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage

HELP = "Move the slider: where you let it go, the curve gets its first point."


class Growing(Shown):
    """What such views share; a subclass asks at a stop, and keeps and shows what it is answered.

    Attributes:
        unseen: Whether the plot is off the page until it has a point. Bokeh cannot frame a plot
            that follows its data out of sight, so that this is for those with ranges of their own.

    Args:
        page: The page that it stands on.
        plot: The curve.
        label: Of the slider.
        aside: What a point costs, as markup.
        between: Controls between slider and words.
        below: What stands below in place of the plot alone.
    """

    unseen = False

    def __init__(
        self,
        page: StudyPage,
        plot: Any,
        label: str,
        aside: str,
        between: tuple[Any, ...] = (),
        below: Any = None,
    ) -> None:
        self._page, self.plot = page, plot
        self.figures = plot.figures
        self._found: dict[int, Any] = {}  # answers, by where the slider stood
        self.slider = pmui.DiscreteSlider(
            label=label, options=[1], disabled=True, sizing_mode="stretch_width", max_width=460,
            margin=(0, 12),
        )  # fmt: skip
        # What it says is released is an index; its value follows every place it is dragged over.
        self.slider.param.watch(lambda _: self._stopped(), "value_throttled")
        plot.panel.visible = not self.unseen
        self.panel = pn.Column(
            self.slider, *between, text(aside), plot.panel if below is None else below,
            stylesheets=[STACKED], sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    @property
    def alt(self) -> str:
        return HELP if self.plot.alt == NOTHING else str(self.plot.alt)

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._found = {}
        self.slider.disabled = True
        self.plot.panel.visible = not self.unseen
        self.plot.clear()

    def _offer(self, stops: list[int] | dict[str, int], value: int) -> None:
        """Let the slider stop at these places; it stands at `value`, which is not asked for yet."""
        self.slider.param.update(options=stops, value=value, disabled=False)

    def _stopped(self) -> None:
        if not self.slider.disabled:
            self._ask(int(self.slider.value))

    def _ask(self, stop: int) -> None:
        """Ask the study for the point at a stop of the slider."""
        raise NotImplementedError

    def _grown(self) -> None:
        """There is a point to see."""
        self.plot.panel.visible = True
