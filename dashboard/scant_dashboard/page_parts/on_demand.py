"""Figures that are computed on demand, with their prompts and progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
import param

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import NOTHING, PlotView
from scant_dashboard.template import text

HELP = (
    "Move the slider to add the first point of the curve. On the demonstration a point takes "
    "about {} seconds."
)
IDLE = "Move the slider, and guess what comes."


class OnDemandView(PlotView):
    """A figure that is empty until the visitor asks for it, and whose answers take seconds.

    Its caption says what to do while it is empty, and what the study is at while it works.
    """

    help = ""
    _page: PageContext
    _doing = ""

    @property
    def alt(self) -> str:
        message = "" if self.plot.alt == NOTHING else str(self.plot.alt)
        if self._doing:
            return f"Working: {self._doing}… {message}".rstrip()
        return message or self.help

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        self._doing = ""
        self.plot.clear()

    def _work(
        self,
        doing: str,
        question: str,
        then: Callable[[dict[str, np.ndarray]], None],
        **query: Any,
    ) -> None:
        """Ask the study, and say what it is at for as long as it is."""
        self._doing = doing
        self._page.ask(question, then, last=partial(self._rest, doing), **query)
        self._page.read(at_once=True)

    def _rest(self, done: str) -> None:
        if self._doing == done:  # else its answer has asked for more
            self._doing = ""
            self._page.read(at_once=True)


class SliderCurve(OnDemandView):
    """A curve that a slider grows: wherever it stops, the study is asked and adds a point.

    The plot is off the page until it has a point, for an empty frame tells nothing; and Bokeh could
    not frame a plot that it has out of sight. A subclass asks at a stop, and keeps and shows what
    it is answered.

    With *Guess first* the point of a stop is asked about, and held back until it is revealed.

    Attributes:
        wait: Seconds that a point took with the demonstration, on one core.
        span: Least, most and step of a guess.
        start: Where the guess stands at first.
        unit: Stands behind numbers.
        digits: Of a guess, after the point.

    Args:
        page: The page that it stands on.
        plot: The curve.
        label: Of the slider.
        aside: What a point costs, as markup.
        between: Controls between slider and words.
        below: What stands below in place of the plot alone.
    """

    wait = 3
    span: tuple[float, float, float] = (0, 1, 0.01)
    start, unit, digits = 0.5, "", 2

    def __init__(
        self,
        page: PageContext,
        plot: Any,
        label: str,
        aside: str,
        between: tuple[Any, ...] = (),
        below: Any = None,
    ) -> None:
        self._page, self.plot = page, plot
        self.help = HELP.format(self.wait)
        self.figures = plot.figures
        self._found: dict[int, Any] = {}  # answers, by where the slider stood
        self.slider = pmui.DiscreteSlider(
            label=label, options=[1], disabled=True, sizing_mode="stretch_width", max_width=460,
            margin=(0, 12),
        )  # fmt: skip
        # What it says is released is an index; its value follows every place it is dragged over.
        self.slider.param.watch(lambda _: self._stopped(), "value_throttled")
        self._below = plot.panel if below is None else below
        self.place = pn.Column(sizing_mode="stretch_width", margin=0)
        self._guessed: int | None = None  # the stop that is asked about
        self.reveal = page.guess_first(idle=IDLE, unit=self.unit, digits=self.digits)
        self.reveal.watch(self._show)
        self.panel = stacked(self.slider, *between, self.reveal.panel, text(aside), self.place)

    def clear(self, run: RunState) -> None:
        """Forget the run shown before."""
        super().clear(run)
        self._found, self._guessed = {}, None
        self.reveal.ask("")
        self.slider.disabled = True
        self.place.objects = []

    def _offer(self, stops: list[int] | dict[str, int], value: int) -> None:
        """Let the slider stop at these places; it stands at `value`, which is not asked for yet."""
        with param.edit_constant(self.slider):
            self.slider.value_throttled = None  # so that the first stop, too, is news
        self.slider.param.update(options=stops, value=value, disabled=False)

    def _stopped(self) -> None:
        if self.slider.disabled:
            return
        stop = int(self.slider.value)
        if stop != self._guessed:
            self._guessed = stop
            self.reveal.ask(self._question(stop), span=self.span, start=self.start)
            self._show()
        self._ask(stop)

    def _ask(self, stop: int) -> None:
        """Ask the study for the point at a stop of the slider."""
        raise NotImplementedError

    def _question(self, stop: int) -> str:
        """What may be guessed of a stop."""
        raise NotImplementedError

    def _answer(self, found: Any) -> tuple[str, float, Sequence[float]]:
        """What was found at a stop: in a sentence, as the number asked for, and its band."""
        raise NotImplementedError

    def _draw(self, found: Mapping[int, Any]) -> None:
        """Draw what was found, by stop."""
        raise NotImplementedError

    def _show(self) -> None:
        """Show what was found, without a point that is still guessed."""
        if self._guessed in self._found:
            self.reveal.know(*self._answer(self._found[self._guessed]))
        held = self._guessed if self.reveal.hidden else None
        seen = {stop: found for stop, found in self._found.items() if stop != held}
        self.place.objects = [self._below] if seen else []
        if seen:
            self._draw(seen)
        else:
            self.plot.clear()
        self._page.read(at_once=True)
