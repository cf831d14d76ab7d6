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
from scant_dashboard.translate import later, tr

HELP = later("Move the slider to add the first point of the curve.")
IDLE = later("Move the slider, and guess the next point.")


class OnDemandView(PlotView):
    """A figure that is empty until the visitor requests it, and whose answers take seconds.

    Its caption is the prompt while it is empty, and the current task while the study works.
    """

    help = ""
    _page: PageContext
    _task = ""

    @property
    def alt(self) -> str:
        message = "" if self.plot.alt == NOTHING else str(self.plot.alt)
        if self._task:
            working = tr("Working: {task}…", task=self._task)
            return f"{working} {message}".rstrip()
        return message or tr(self.help)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._task = ""
        self.plot.clear()

    def _work(
        self,
        task: str,
        question: str,
        then: Callable[[dict[str, np.ndarray]], None],
        **query: Any,
    ) -> None:
        """Query the study, and show `task` in the caption until it answers."""
        self._task = task
        self._page.ask(question, then, last=partial(self._finish, task), **query)
        self._page.read(at_once=True)

    def _finish(self, task: str) -> None:
        if self._task == task:  # otherwise the answer has started another query
            self._task = ""
            self._page.read(at_once=True)


class SliderCurve(OnDemandView):
    """A curve with a slider that adds points: each stop of the slider triggers a query for one.

    The plot is added to the page with its first point, because Bokeh cannot compute the range of a
    hidden plot. A subclass queries the study and draws.

    With *Guess first*, the user guesses the point, which is hidden until then.

    Attributes:
        span: Minimum, maximum and step of a guess.
        start: Initial guess.
        unit: Unit of numbers, shown after them.
        digits: Number of decimals of a guess.

    Args:
        page: The page of the view.
        plot: The curve.
        label: Label of the slider.
        aside: Cost of a point, as markup.
        between: Controls between slider and text.
        below: Shown below in place of the plot alone.
    """

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
        self.help = tr(HELP)
        self.figures = plot.figures
        self._points: dict[int, Any] = {}  # answers by position of the slider
        self.slider = pmui.DiscreteSlider(
            label=label, options=[1], disabled=True, sizing_mode="stretch_width", max_width=460,
            margin=(0, 12),
        )  # fmt: skip
        # `value_throttled` changes on release, as an index; `value` changes while dragging.
        self.slider.param.watch(lambda _: self._on_stop(), "value_throttled")
        self._below = plot.panel if below is None else below
        self.container = pn.Column(sizing_mode="stretch_width", margin=0)
        self._guessed: int | None = None  # position of the current question
        self.reveal = page.guess_first(idle=tr(IDLE), unit=self.unit, digits=self.digits)
        self.reveal.watch(self._show)
        self.panel = stacked(self.slider, *between, self.reveal.panel, text(aside), self.container)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        super().clear(run)
        self._points, self._guessed = {}, None
        self.reveal.ask("")
        self.slider.disabled = True
        self.container.objects = []

    def _offer(self, stops: list[int] | dict[str, int], value: int) -> None:
        """Enable the slider at these positions, starting at `value`, which is not computed yet."""
        with param.edit_constant(self.slider):
            self.slider.value_throttled = None  # so that the first stop triggers, too
        self.slider.param.update(options=stops, value=value, disabled=False)

    def _on_stop(self) -> None:
        if self.slider.disabled:
            return
        stop = int(self.slider.value)
        if stop != self._guessed:
            self._guessed = stop
            self.reveal.ask(self._question(stop), span=self.span, start=self.start)
            self._show()
        self._ask(stop)

    def _ask(self, stop: int) -> None:
        """Ask the study for the point at a position of the slider."""
        raise NotImplementedError

    def _question(self, stop: int) -> str:
        """Return the question to guess at a position."""
        raise NotImplementedError

    def _answer(self, result: Any) -> tuple[str, float, Sequence[float]]:
        """Return the answer as a sentence, the number asked for, and its band."""
        raise NotImplementedError

    def _draw(self, points: Mapping[int, Any]) -> None:
        """Draw the points, by position."""
        raise NotImplementedError

    def _show(self) -> None:
        """Draw all points except one that is still to be guessed."""
        if self._guessed in self._points:
            self.reveal.know(*self._answer(self._points[self._guessed]))
        hidden = self._guessed if self.reveal.hidden else None
        visible = {stop: point for stop, point in self._points.items() if stop != hidden}
        self.container.objects = [self._below] if visible else []
        if visible:
            self._draw(visible)
        else:
            self.plot.clear()
        self._page.read(at_once=True)
