"""What a page is built from, as HTML: columns, texts, figures and controls.

Panel gives each part a shadow root with its own style sheets. Here each sheet becomes a rule for
the parts that have it (CSS nesting), so that a page looks and measures as the live one does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from html import escape
from itertools import count
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.layout.base import ListLike
from scant.dashboard.static_figures.figure import drawn

HOST = re.compile(r":host(?:\(([^)]*)\))?")
# Where a part stands in the part that holds it; words from outside are escaped and hold no such.
PLACE = re.compile(r"<!--part (\d+)-->")
FIRST = re.compile(r"<\w+")
LIVE = " data-live"  # what is marked so becomes live when it is touched


class Markup:
    """HTML of parts, and the style sheets that they need.

    Each element has the number of its part as `data-part`, by which a page finds it again.

    Args:
        live: Whether controls are to be touched; else what they are set to is text.
        draw: Draws a figure with what a screen reader says of it.

    Attributes:
        shells: The HTML of each part by its number, with a `PLACE` for each part in it.
    """

    def __init__(self, live: bool = True, draw: Callable[[Any, str], str] = drawn) -> None:
        self._live, self._draw = live, draw
        self.shells: dict[str, str] = {}
        self._numbers: dict[int, tuple[str, Any]] = {}  # with the part, whose id stays its own
        self._next = count()
        self._sheets: dict[str, str] = {}  # of a sheet, its class

    def of(self, part: Any) -> str:
        """A part with all that is in it; an empty element where it is hidden."""
        return filled(self.shells, self.place(part))

    def place(self, part: Any) -> str:
        """The place of a part, which is written down with all that is in it."""
        if id(part) not in self._numbers:
            self._numbers[id(part)] = (str(next(self._next)), part)
        number, _ = self._numbers[id(part)]
        made = self._made(part) if getattr(part, "visible", True) else ""
        mark = rf"\g<0> data-part='{number}'"
        self.shells[number] = FIRST.sub(mark, made or "<template></template>", count=1)
        return f"<!--part {number}-->"

    def keep(self, numbers: Container[str]) -> None:
        """Forget all parts but these."""
        self.shells = {n: html for n, html in self.shells.items() if n in numbers}
        self._numbers = {i: (n, part) for i, (n, part) in self._numbers.items() if n in numbers}

    def _made(self, part: Any) -> str:
        if hasattr(part, "still"):
            return self._box(part, part.still(), "text")
        for kind, make in _KINDS:
            if isinstance(part, kind):
                return make(self, part)
        if isinstance(part, ListLike):
            return self._box(part, "".join(map(self.place, part)), "parts")
        height = getattr(part, "height", None)
        return f"<div style='height:{height}px'></div>" if height else ""

    def styles(self) -> str:
        """The sheets of all parts so far."""
        return "\n".join(
            f".{name} {{ {HOST.sub(_nested, sheet)} }}" for sheet, name in self._sheets.items()
        )

    def _box(self, part: Any, inner: str, kind: str) -> str:
        sheets = [s for s in getattr(part, "stylesheets", ()) if isinstance(s, str) and s]
        names = [self._sheets.setdefault(s, f"s{len(self._sheets)}") for s in sheets]
        classes = " ".join([kind, *getattr(part, "css_classes", ()), *names])
        styles = ";".join(f"{k}:{v}" for k, v in (getattr(part, "styles", None) or {}).items())
        style = f" style='{escape(styles, quote=True)}'" if styles else ""
        return f"<div class='{classes}'{style}>{inner}</div>"

    def _flex(self, part: Any) -> str:
        made = "".join(map(self.place, part))
        style = f"display:flex;flex-wrap:wrap;align-items:{part.align_items};gap:{part.gap}"
        return self._box(part, f"<div style='{style}'>{made}</div>", "parts")

    def _text(self, part: Any) -> str:
        return self._box(part, f"<div>{part.object or ''}</div>", "text")

    def _markdown(self, part: Any) -> str:
        from markdown import markdown

        return self._box(part, f"<div>{markdown(part.object or '')}</div>", "text")

    def _figure(self, part: Any) -> str:
        label = (part.object.html_attributes or {}).get("aria-label", "")
        return self._box(part, self._draw(part.object, label), "parts")

    def _button(self, part: Any) -> str:
        if not self._live:
            return ""
        state = " disabled" if part.disabled else ""
        label = escape(part.label or part.name or "")
        kind = f"{part.variant} {getattr(part, 'size', '')}"
        return f"<button type='button' class='{kind}'{state}{LIVE}>{label}</button>"

    def _checkbox(self, part: Any) -> str:
        label = escape(part.label or part.name or "")
        if not self._live:
            return f"<p class='set'>{label}: {'yes' if part.value else 'no'}</p>"
        checked = " checked" if part.value else ""
        return f"<label class='check'{LIVE}><input type='checkbox'{checked}>{label}</label>"

    def _field(self, part: Any) -> str:
        label, value = escape(part.label or part.name or ""), part.value
        named = {v: k for k, v in getattr(part, "options", {}).items()} if isinstance(
            getattr(part, "options", None), dict) else {}  # fmt: skip
        try:
            shown = named.get(value, value)
        except TypeError:  # several values
            shown = ", ".join(map(str, value))
        text = escape("" if shown is None else str(shown), quote=True)
        if not self._live:
            return f"<p class='set'>{label}: {text}</p>"
        margin = part.margin if isinstance(part.margin, tuple) else (part.margin,)
        style = f" style='margin:{' '.join(f'{m or 0}px' for m in margin)}'"
        return (
            f"<label class='field'{style}{LIVE}><span>{label}</span><input value='{text}'></label>"
        )


def filled(shells: Mapping[str, str], html: str) -> str:
    """HTML with its parts in their places."""
    return PLACE.sub(lambda place: filled(shells, shells[place[1]]), html)


def _nested(host: re.Match[str]) -> str:
    return "&" + (host[1] or "")


_KINDS: list[tuple[Any, Callable[[Markup, Any], str]]] = [
    (pn.pane.Markdown, Markup._markdown),
    (pn.pane.LaTeX, Markup._text),
    (pn.pane.HTML, Markup._text),
    (pn.pane.Bokeh, Markup._figure),
    (pn.FlexBox, Markup._flex),
    (pmui.FileDownload, Markup._button),
    (pmui.Button, Markup._button),
    (pmui.Checkbox, Markup._checkbox),
    (pn.widgets.Widget, Markup._field),
]
