"""A figure of the page: its heading, the plot, and a sentence that reads it."""

from __future__ import annotations

import html
from typing import Any

import param
from panel.custom import JSComponent
from panel.viewable import Viewable

from scant_dashboard.page_parts.widgets import column, slug
from scant_dashboard.template import style, text


class Caption(JSComponent):
    """The caption of a figure, in plain text.

    It changes with the figure, for every watcher; Panel's own panes of text would bring their
    style sheets anew each time, upon which Bokeh looks through all models of the page.
    """

    text = param.String("")

    def still(self) -> str:
        """As markup, for a page without scripts."""
        return f"<p class='reading'>{html.escape(self.text)}</p>"

    _esm = """
    export function render({model, el}) {
      const words = document.createElement('p')
      words.className = 'reading'
      const show = () => { words.textContent = model.text }
      model.on('text', show)
      show()
      el.replaceChildren(words)
    }
    """


class Figure:
    """Lays out one `views.View` and keeps its reading current.

    Args:
        view: What is shown.
        wide: Whether it takes a whole row.
        step: Its place among the steps of present mode, if it is one.
        say: What present mode says above it.
    """

    def __init__(
        self, view: Any, wide: bool = False, step: int | None = None, say: str = ""
    ) -> None:
        self.view = view
        if hasattr(view, "built"):  # it is built when the visitor comes near
            view.built = self.read
        self._reading = Caption(
            text=_caption(view),
            stylesheets=[style("text")],
            sizing_mode="stretch_width",
            margin=0,
        )
        mark = "" if step is None else f" data-step='{step}' tabindex='-1'"
        message = f"<p class='lede'>{html.escape(say)}</p>" if say else ""
        heading = f"<h3 id='{slug(view.title)}'{mark}>{html.escape(view.title)}</h3>{message}"
        self.panel: Viewable = column(
            text(heading),
            view.panel,
            self._reading,
            name="figure wide" if wide else "figure",
            css=":host { gap: 6px; }",
        )

    def read(self) -> None:
        """Say what the plot shows by now."""
        caption = _caption(self.view)
        if caption != self._reading.text:
            self._reading.text = caption
            if hasattr(self.view, "say"):
                self.view.say()


def _caption(view: Any) -> str:
    return getattr(view, "alt", "") or ""
