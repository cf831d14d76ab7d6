"""Views that are built when the visitor comes near: opening a page need not pay for all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.base import View


class ViewportSentinel(JSComponent):
    """A mark that says once when the visitor is within a screen of it, and meanwhile what comes."""

    near = param.Boolean(default=False)

    _esm = """
    export function render({model, el}) {
      const ahead = {rootMargin: '600px', scrollMargin: '600px'}
      const watch = new IntersectionObserver((seen) => {
        if (seen.some((one) => one.isIntersecting)) { watch.disconnect(); model.near = true }
      }, ahead)
      watch.observe(el)
      const words = document.createElement('p')
      words.className = 'building'
      words.textContent = 'This figure is being built…'
      words.style = 'margin: 0; font-size: 0.875rem; opacity: 0.75'
      el.replaceChildren(words)
    }
    """


class LazyView(View):
    """Stands for a view until the visitor comes near, then builds it and brings it up to date.

    A Bokeh figure is some forty models, and a session pays for each when it opens and, a little, at
    every update; those who only watch a run train never come to its results.

    Args:
        title: The view's title.
        make: Builds the view.
        height: Pixels that the view will take, about, so that the page does not jump.
    """

    def __init__(self, title: str, make: Callable[[], Any], height: int = 320) -> None:
        self.title = title
        self._make = make
        self._view: Any = None
        self._placed = False
        self._last: Callable[[Any], None] | None = None
        self.built: Callable[[], None] = lambda: None  # called once there is something to read
        mark = ViewportSentinel(height=height, sizing_mode="stretch_width", margin=0)
        mark.param.watch(lambda _: self._come(), "near")
        self.panel = pn.Column(mark, sizing_mode="stretch_width", margin=0)

    def _come(self) -> None:
        """Build on the document's next turn: only there may figures that it holds be written to."""
        doc = pn.state.curdoc
        if doc is None:
            self.build()
            return

        def turn() -> None:
            with pn.io.hold(doc):
                self.build()

        doc.add_next_tick_callback(turn)

    def view(self) -> Any:
        """The view itself, built by now, though perhaps not on the page."""
        if self._view is None:
            self._view = self._make()
            if self._last is not None:
                self._last(self._view)
        return self._view

    def build(self) -> None:
        """Put the view on the page."""
        if not self._placed:
            self._placed = True
            self.panel.objects = [self.view().panel]
            self.built()

    @property
    def alt(self) -> str:
        """The view's reading, once there is one."""
        return str(self._view.alt) if self._view is not None else ""

    @property
    def figures(self) -> tuple[Any, ...]:
        """The view's figures; whoever asks for them (an export) needs them built, not placed."""
        return tuple(getattr(self.view(), "figures", ()))

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        self._tell(lambda view: view.update(data, metadata))

    def open(self, run: RunState) -> None:
        self._tell(lambda view: view.open(run))

    def clear(self, run: RunState) -> None:
        self._last = None
        if self._view is not None:
            self._view.clear(run)

    def say(self) -> None:
        if self._view is not None and hasattr(self._view, "say"):
            self._view.say()

    def _tell(self, last: Callable[[Any], None]) -> None:
        self._last = last
        if self._view is not None:
            last(self._view)
