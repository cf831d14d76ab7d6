"""Views that are built when the visitor scrolls near them, so that pages open faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.plots.base import View
from scant_dashboard.translate import tr


class ViewportSentinel(JSComponent):
    """A placeholder that reports once when it is within 600 pixels of the viewport."""

    near = param.Boolean(default=False)
    notice = param.String("")  # shown until then

    _esm = """
    export function render({model, el}) {
      const ahead = {rootMargin: '600px', scrollMargin: '600px'}
      const watch = new IntersectionObserver((entries) => {
        if (entries.some((entry) => entry.isIntersecting)) { watch.disconnect(); model.near = true }
      }, ahead)
      watch.observe(el)
      const notice = document.createElement('p')
      notice.className = 'building'
      notice.textContent = model.notice
      notice.style = 'margin: 0; font-size: 0.875rem; opacity: 0.75'
      el.replaceChildren(notice)
    }
    """


class LazyView(View):
    """Builds a view, and brings it up to date, once the visitor scrolls near it.

    A Bokeh figure consists of some forty models, which cost time when a session opens and at every
    update; visitors who only watch a run train never reach its results.

    Args:
        title: The view's title.
        make: Builds the view.
        height: Approximate height of the view in pixels, reserved so that the page does not jump.
    """

    def __init__(self, title: str, make: Callable[[], Any], height: int = 320) -> None:
        self.title = title
        self._make = make
        self._view: Any = None
        self._placed = False
        self._last_action: Callable[[Any], None] | None = None
        self.built: Callable[[], None] = lambda: None  # called once the view is on the page
        mark = ViewportSentinel(
            notice=tr("This figure is being built…"),
            height=height,
            sizing_mode="stretch_width",
            margin=0,
        )
        mark.param.watch(lambda _: self._on_near(), "near")
        self.panel = pn.Column(mark, sizing_mode="stretch_width", margin=0)

    def _on_near(self) -> None:
        """Build on the document's next tick, where its figures may be written to."""
        doc = pn.state.curdoc
        if doc is None:
            self.build()
            return

        def turn() -> None:
            with pn.io.hold(doc):
                self.build()

        doc.add_next_tick_callback(turn)

    def view(self) -> Any:
        """Return the view, building it if necessary; it may not be on the page yet."""
        if self._view is None:
            self._view = self._make()
            if self._last_action is not None:
                self._last_action(self._view)
        return self._view

    def build(self) -> None:
        """Put the view on the page."""
        if not self._placed:
            self._placed = True
            self.panel.objects = [self.view().panel]
            self.built()

    @property
    def alt(self) -> str:
        """The view's text alternative, once it is built."""
        return str(self._view.alt) if self._view is not None else ""

    @property
    def figures(self) -> tuple[Any, ...]:
        """The view's figures, built if necessary (for exports) but not placed."""
        return tuple(getattr(self.view(), "figures", ()))

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        self._forward(lambda view: view.update(data, metadata))

    def open(self, run: RunState) -> None:
        self._forward(lambda view: view.open(run))

    def clear(self, run: RunState) -> None:
        self._last_action = None
        if self._view is not None:
            self._view.clear(run)

    def say(self) -> None:
        if self._view is not None and hasattr(self._view, "say"):
            self._view.say()

    def _forward(self, action: Callable[[Any], None]) -> None:
        self._last_action = action
        if self._view is not None:
            action(self._view)
