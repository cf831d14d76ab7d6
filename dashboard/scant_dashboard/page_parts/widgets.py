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

from scant_dashboard.template import style, text

# Panel bounds every column by its parent's height, which makes tall ones overlap in a grid.
# Its scroll button, which no page of ours uses, would take a gap of its own.
_COLUMN = """
:host, :host > * { min-width: 0; max-height: none !important; }
.scroll-button { display: none !important; }
"""
# A view's parts below each other, none wider than the view.
STACKED = """
:host { gap: 10px; max-height: none !important; }
:host, :host > * { min-width: 0; max-width: 100%; }
"""


FOLD = "fold"  # of a button: what comes after it is what it unfolds


class DeferredRenderer:
    """Fills places once the page is up, one at a time, so that its first paint need not wait.

    A place is filled at one blow: each change of a column makes the browser lay out the whole page.
    """

    def __init__(self, doc: Document) -> None:
        self._doc = doc
        self._waiting: list[tuple[pn.Column, Callable[[], Sequence[Viewable]]]] = []
        self._up = self._busy = False
        pn.state.onload(self._begin)

    def fill(self, place: pn.Column, parts: Callable[[], Sequence[Viewable]]) -> None:
        """Have `place` hold what `parts()` makes, after all that already waits."""
        self._waiting.append((place, parts))
        self._go_on()

    def finish(self) -> None:
        """Fill all places that wait."""
        while self._waiting:
            place, parts = self._waiting.pop(0)
            place.objects = list(parts())

    def _begin(self) -> None:
        self._up = True
        self._go_on()

    def _go_on(self) -> None:
        if self._up and self._waiting and not self._busy:
            self._busy = True
            self._doc.add_timeout_callback(self._next, 100)

    def _next(self) -> None:
        self._busy = False
        place, parts = self._waiting.pop(0)
        place.objects = list(parts())
        self._go_on()


def column(*parts: Any, name: str = "", css: str = "", **params: Any) -> pn.Column:
    """Parts below each other (or as `css` for `:host` has it), without margins of their own."""
    return pn.Column(
        *parts,
        css_classes=name.split(),
        stylesheets=[_COLUMN, css],
        sizing_mode="stretch_width",
        margin=0,
        **params,
    )


def stacked(*parts: Any) -> pn.Column:
    """A view's parts below each other, none wider than the view."""
    return pn.Column(*parts, stylesheets=[STACKED], sizing_mode="stretch_width", margin=0)


def controls_row(*controls: Any, gap: int = 20) -> pn.FlexBox:
    """Controls side by side, `gap` pixels apart, as many as the page is wide enough for."""
    return pn.FlexBox(*controls, align_items="center", gap=f"10px {gap}px", margin=(6, 0, 0, 0),
                      sizing_mode="stretch_width")  # fmt: skip


def section(title: str, *parts: Any, visible: bool = True) -> Viewable:
    """Parts under a heading of the second level."""
    heading = text(f"<h2 id='{slug(title)}'>{html.escape(title)}</h2>")
    return column(heading, *parts, css=":host { gap: 14px; }", visible=visible)


def markdown(source: str, css: str = "") -> list[Viewable]:
    """Words of ours in the page's typography; a paragraph that holds $ is set by KaTeX."""
    parts: list[Viewable] = []
    for mathematical, lines in groupby(source.strip().split("\n\n"), lambda p: "$" in p):
        pane = pn.pane.LaTeX if mathematical else pn.pane.Markdown
        parts += [
            pane(lines_of, stylesheets=[style("text"), css], sizing_mode="stretch_width", margin=0)
            for lines_of in (map(_inline, lines) if mathematical else ["\n\n".join(lines)])
        ]
    return parts


def _inline(paragraph: str) -> str:
    """A paragraph with formulas, its emphasized letters as formulas: KaTeX reads no Markdown."""
    return paragraph if paragraph.startswith("$$") else re.sub(r"\*(\w+)\*", r"$\1$", paragraph)


def collapsible(label: str, content: pn.Column) -> list[Viewable]:
    """A button that unfolds `content`, whose parts come to the page when that is first done."""
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


def folded(content: pn.Column, label: str = "Read on") -> list[Viewable]:
    """`content`, of which the class `folded` shows the beginning, and a button for the rest."""
    content.css_classes = [*content.css_classes, "folded"]
    button = pmui.Button(label=label, variant="text", size="small", margin=0,
                         css_classes=["unfold"], sx={"ml": "-5px", "width": "auto"})  # fmt: skip

    def unfold(_: Any) -> None:
        content.css_classes = [name for name in content.css_classes if name != "folded"]
        button.visible = False

    button.on_click(unfold)
    return [content, button]


def slug(title: str) -> str:
    """A title as an id in the page."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
