"""Layout helpers of pages: columns, sections, texts, collapsible parts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.document import Document
from panel.viewable import Viewable

from scant_dashboard.template import katex_folder, style, text
from scant_dashboard.translate import tr

# Panel bounds every column by its parent's height, which makes tall ones overlap in a grid.
# Its scroll button is not used here but would add a gap.
_COLUMN = """
:host, :host > * { min-width: 0; max-height: none !important; }
.scroll-button { display: none !important; }
"""
# A view's parts in a column, none wider than the view.
STACKED = """
:host { gap: 10px; max-height: none !important; }
:host, :host > * { min-width: 0; max-width: 100%; }
"""

# Panel leaves formulas to the browser's own MathML, which has no good font on many machines.
_KATEX = ".katex > .katex-html { display: inline; }"

FOLD = "fold"  # CSS class of a button that expands the next element


class DeferredRenderer:
    """Fills columns after the page's first paint, one at a time.

    Each column is filled in one step, because every change of a column makes the browser lay out
    the whole page.
    """

    def __init__(self, doc: Document) -> None:
        self._doc = doc
        self._queue: list[tuple[pn.Column, Callable[[], Sequence[Viewable]]]] = []
        self._up = self._busy = False
        pn.state.onload(self._begin)

    def fill(self, target: pn.Column, parts: Callable[[], Sequence[Viewable]]) -> None:
        """Queue `target` to be filled with the result of `parts()`."""
        self._queue.append((target, parts))
        self._schedule_next()

    def finish(self) -> None:
        """Fill all queued columns."""
        while self._queue:
            target, parts = self._queue.pop(0)
            target.objects = list(parts())

    def _begin(self) -> None:
        self._up = True
        self._schedule_next()

    def _schedule_next(self) -> None:
        if self._up and self._queue and not self._busy:
            self._busy = True
            self._doc.add_timeout_callback(self._next, 100)

    def _next(self) -> None:
        self._busy = False
        target, parts = self._queue.pop(0)
        target.objects = list(parts())
        self._schedule_next()


def column(*parts: Any, name: str = "", css: str = "", **params: Any) -> pn.Column:
    """Lay out parts in a column without margins (`css` may restyle `:host`)."""
    return pn.Column(
        *parts,
        css_classes=name.split(),
        stylesheets=[_COLUMN, css],
        sizing_mode="stretch_width",
        margin=0,
        **params,
    )


def stacked(*parts: Any) -> pn.Column:
    """Lay out the parts of a view in a column, none wider than the view."""
    return pn.Column(*parts, stylesheets=[STACKED], sizing_mode="stretch_width", margin=0)


def controls_row(*controls: Any, gap: int = 20) -> pn.FlexBox:
    """Lay out controls in wrapping rows, `gap` pixels apart."""
    return pn.FlexBox(*controls, align_items="center", gap=f"10px {gap}px", margin=(6, 0, 0, 0),
                      sizing_mode="stretch_width")  # fmt: skip


def section(title: str, *parts: Any, visible: bool = True, heading: str = "") -> Viewable:
    """Lay out parts under a heading of the second level, translated, of CSS class `heading`."""
    kind = f" class='{heading}'" if heading else ""
    head = text(f"<h2 id='{slug(title)}'{kind}>{html.escape(tr(title))}</h2>")
    return column(head, *parts, css=":host { gap: 14px; }", visible=visible)


def markdown(source: str, css: str = "") -> list[Viewable]:
    """Render trusted Markdown in the page's typography; paragraphs with $ are set by KaTeX."""
    parts: list[Viewable] = []
    for mathematical, lines in groupby(source.strip().split("\n\n"), lambda p: "$" in p):
        pane = pn.pane.LaTeX if mathematical else pn.pane.Markdown
        sheets = [style("text"), css]
        if mathematical:
            sheets += [f"{katex_folder()}/katex.min.css", _KATEX]
        parts += [
            pane(lines_of, stylesheets=sheets, sizing_mode="stretch_width", margin=0)
            for lines_of in (map(_inline, lines) if mathematical else ["\n\n".join(lines)])
        ]
    return parts


def _inline(paragraph: str) -> str:
    """Turn emphasized letters into formulas in a paragraph with $: KaTeX reads no Markdown."""
    return paragraph if paragraph.startswith("$$") else re.sub(r"\*(\w+)\*", r"$\1$", paragraph)


def collapsible(label: str, content: pn.Column) -> list[Viewable]:
    """Return a button and `content`, whose parts are sent when it is first expanded."""
    content.visible = False
    parts = list(content.objects)
    content.objects = []
    button = pmui.Button(
        label=f"{label} +",
        variant="text",
        size="small",
        margin=0,
        css_classes=[FOLD],
        sx={"ml": "-5px", "whiteSpace": "nowrap", "width": "auto"},
    )

    def toggle(_: Any) -> None:
        nonlocal parts
        if parts:
            content.objects, parts = parts, []
        content.visible = not content.visible
        button.label = f"{label} {'−' if content.visible else '+'}"

    button.on_click(toggle)
    return [button, content]


def slug(title: str) -> str:
    """Return a title as an id in the page."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
