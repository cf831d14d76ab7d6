"""A figure of the page: its heading, the plot, and the caption."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import param
from panel.custom import JSComponent
from panel.viewable import Viewable

from scant_dashboard.page_parts.guess_first import HIDDEN_TEXT
from scant_dashboard.page_parts.widgets import column, slug
from scant_dashboard.template import style, text
from scant_dashboard.translate import tr


class Caption(JSComponent):
    """The caption of a figure, in plain text.

    It changes with the figure, for every viewer. Panel's own text panes would send their style
    sheets each time, upon which Bokeh traverses all models of the page.
    """

    text = param.String("")

    def still(self) -> str:
        """Return the static markup for a page without scripts."""
        return f"<p class='reading'>{html.escape(self.text)}</p>"

    _esm = """
    export function render({model, el}) {
      const caption = document.createElement('p')
      caption.className = 'reading'
      const show = () => { caption.textContent = model.text }
      model.on('text', show)
      show()
      el.replaceChildren(caption)
    }
    """


class Figure:
    """Lays out one `views.View` and keeps its caption current.

    Args:
        view: The view.
        full_width: Whether it takes a whole row.
        step: Its index among the steps of present mode, if any.
        say: Text above it in present mode.
        moves: Whether it changes during training, and in a replay.
        withheld: Whether the caption would answer an open question.
    """

    def __init__(
        self,
        view: Any,
        full_width: bool = False,
        step: int | None = None,
        say: str = "",
        moves: bool = False,
        withheld: Callable[[], bool] = lambda: False,
    ) -> None:
        self.view, self._withheld = view, withheld
        if hasattr(view, "built"):  # a `LazyView`
            view.built = self.read
        self._reading = Caption(
            text=self._caption(),
            stylesheets=[style("text")],
            sizing_mode="stretch_width",
            margin=0,
        )
        mark = "" if step is None else f" data-step='{step}' tabindex='-1'"
        mark += " data-moves" * moves
        message = f"<p class='lede'>{html.escape(tr(say))}</p>" if say else ""
        heading = f"<h3 id='{slug(view.title)}'{mark}>{html.escape(tr(view.title))}</h3>{message}"
        self.panel: Viewable = column(
            text(heading),
            view.panel,
            self._reading,
            name="figure wide" if full_width else "figure",
            css=":host { gap: 6px; }",
        )

    def read(self) -> None:
        """Update the caption."""
        caption = self._caption()
        if caption != self._reading.text:
            self._reading.text = caption
            if hasattr(self.view, "say") and not self._withheld():
                self.view.say()

    def _caption(self) -> str:
        return tr(HIDDEN_TEXT if self._withheld() else getattr(self.view, "alt", "") or "")
