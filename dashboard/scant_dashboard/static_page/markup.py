"""Conversion of a page's components to HTML: columns, texts, figures and controls.

Panel gives each component a shadow root with its own style sheets. Here each sheet becomes a nested
CSS rule for its components, so that the page looks like the live one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from html import escape
from itertools import count
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from panel.layout.base import ListLike

from scant_dashboard.page_parts.widgets import FOLD
from scant_dashboard.plots.theme import models
from scant_dashboard.static_page.figure_models import FigureModels, is_interactive
from scant_dashboard.static_page.pictures import key_of
from scant_dashboard.template import katex_folder

HOST = re.compile(r":host(?:\(([^)]*)\))?")
# Placeholder of a part within another; escaped text cannot contain one.
PLACEHOLDER = re.compile(r"<!--part (\d+)-->")
FIRST = re.compile(r"<\w+")
LIVE = " data-live"  # marks elements that become live when touched
JSON = "type='application/json'"


class Markup:
    """Converts components ("parts") to HTML, and collects their style sheets.

    Each element has its part's number as `data-part`, by which scripts find it.

    Args:
        live: Whether controls are to be operable; otherwise their values are shown as text.

    Attributes:
        shells: HTML of each part by number, with a `PLACEHOLDER` for each part within it.
    """

    def __init__(self, live: bool = True) -> None:
        self._live, self._models = live, FigureModels()
        self.shells: dict[str, str] = {}
        self._numbers: dict[Any, tuple[str, Any]] = {}  # by id, with the part to keep it alive
        self._next = count()
        self._sheets: dict[str, str] = {}  # class of each sheet

    def of(self, part: Any) -> str:
        """Return the HTML of a part with its contents; an empty element if it is hidden."""
        return filled(self.shells, self.placeholder(part))

    def placeholder(self, part: Any) -> str:
        """Convert a part with its contents, and return its placeholder."""
        made = self._convert(part) if getattr(part, "visible", True) else ""
        return self._part(id(part), part, made or "<template></template>")

    def _part(self, key: Any, part: Any, made: str) -> str:
        """Number an element that shows `part`, and return its placeholder."""
        if key not in self._numbers:
            self._numbers[key] = (str(next(self._next)), part)
        number, _ = self._numbers[key]
        mark = rf"\g<0> data-part='{number}'"
        self.shells[number] = FIRST.sub(mark, made, count=1)
        return f"<!--part {number}-->"

    def keep(self, numbers: Container[str]) -> None:
        """Forget all parts but these."""
        self.shells = {n: html for n, html in self.shells.items() if n in numbers}
        self._numbers = {i: (n, part) for i, (n, part) in self._numbers.items() if n in numbers}

    def _convert(self, part: Any) -> str:
        if hasattr(part, "still"):
            return self._box(part, part.still(), "text")
        for kind, make in _KINDS:
            if isinstance(part, kind):
                return make(self, part)
        if isinstance(part, ListLike):
            return self._box(part, "".join(self._in_order(part)), "parts")
        height = getattr(part, "height", None)
        return f"<div style='height:{height}px'></div>" if height else ""

    def _in_order(self, parts: Any) -> Iterator[str]:
        """Yield parts in order, with collapsible ones as elements that open without a script."""
        rest = iter(parts)
        for part in rest:
            if FOLD in getattr(part, "css_classes", ()) and self._live:
                folded = next(rest)  # see `collapsible`
                name = _named(part).removesuffix(" +")
                if not folded.objects:  # collapsed contents are added when first expanded
                    part.clicks += 1
                    part.clicks += 1
                with param.parameterized.discard_events(folded):
                    folded.visible = True
                    inner = self.placeholder(folded)
                    folded.visible = False
                yield f"<details class='fold'><summary>{name}</summary>{inner}</details>"
            else:
                yield self.placeholder(part)

    def styles(self) -> str:
        """Return the style sheets of all parts so far."""
        return "\n".join(
            f".{name} {{ {HOST.sub(_nested, sheet)} }}" for sheet, name in self._sheets.items()
        )

    def _box(self, part: Any, inner: str, kind: str) -> str:
        # Not the addresses of sheets: `assets/takeover.js` loads KaTeX's once it is unfolded.
        sheets = [s for s in getattr(part, "stylesheets", ()) if s and not s.endswith(".css")]
        names = [self._sheets.setdefault(s, f"s{len(self._sheets)}") for s in sheets]
        classes = " ".join([kind, *getattr(part, "css_classes", ()), *names])
        styles = ";".join(f"{k}:{v}" for k, v in (getattr(part, "styles", None) or {}).items())
        style = f" style='{escape(styles, quote=True)}'" if styles else ""
        return f"<div class='{classes}'{style}>{inner}</div>"

    def _flex(self, part: Any) -> str:
        made = "".join(map(self.placeholder, part))
        style = f"display:flex;flex-wrap:wrap;align-items:{part.align_items};gap:{part.gap}"
        return self._box(part, f"<div style='{style}'>{made}</div>", "parts")

    def _text(self, part: Any) -> str:
        return self._box(part, f"<div>{part.object or ''}</div>", "text")

    def _formulas(self, part: Any) -> str:
        return self._box(
            part, f"<div data-katex='{katex_folder()}'>{part.object or ''}</div>", "text"
        )

    def _markdown(self, part: Any) -> str:
        from markdown import markdown

        return self._box(part, f"<div>{markdown(part.object or '')}</div>", "text")

    def _figure(self, part: Any) -> str:
        return self._box(part, self._plot(part.object), "parts")

    def _linked(self, part: Any) -> str:
        """Convert a figure made by HoloViews."""
        plots = [m for m in part.get_root().references() if isinstance(m, models.Plot)]
        return self._box(part, "".join(map(self._plot, plots)), "parts")

    def _plot(self, figure: Any) -> str:
        """Convert a Bokeh figure to its models, which `assets/figures.js` draws."""
        if not figure.visible:
            return ""
        made = self._models(figure)
        label = (figure.html_attributes or {}).get("aria-label", "")
        alt = f" role='img' aria-label='{escape(label, quote=True)}'" if label else ""
        acts = " data-acts" if is_interactive(figure) else ""
        fixed = " data-fixed" if figure.sizing_mode == "fixed" else ""
        columns = "".join(
            self._part(
                (figure.id, source),
                figure,
                f"<script {JSON} data-source='{source}'>{data}</script>",
            )
            for source, data in made.sources.items()
        )
        return (
            f"<div class='plot' data-key='{key_of(made.figure)}'{_room(figure)}{alt}{acts}{fixed}>"
            f"<script {JSON}>{made.figure}</script>{columns}</div>"
        )

    def _button(self, part: Any) -> str:
        if not self._live:
            return ""
        state = " disabled" if part.disabled else ""
        file = " file" if isinstance(part, pmui.FileDownload | pmui.FileInput) else ""
        kind = " ".join([part.variant, part.size or "", *part.css_classes]) + file
        style = _size_style(part)
        return f"<button type='button' class='{kind}'{style}{state}{LIVE}>{_named(part)}</button>"

    def _checkbox(self, part: Any) -> str:
        if not self._live:
            return _value_text(part, "yes" if part.value else "no")
        return _check(_named(part), part.value, part.disabled)

    def _checks(self, part: Any) -> str:
        names = list(part.options)  # the keys of a dict
        values = list(part.options.values()) if isinstance(part.options, dict) else names
        if not self._live:
            pairs = zip(names, values, strict=True)
            return _value_text(part, ", ".join(str(n) for n, value in pairs if value in part.value))
        boxes = "".join(
            _check(escape(str(name)), value in part.value, part.disabled)
            for name, value in zip(names, values, strict=True)
        )
        legend = f"<legend>{_named(part)}</legend>"
        return f"<fieldset class='checks'{_size_style(part)}>{legend}{boxes}</fieldset>"

    def _slider(self, part: Any) -> str:
        if isinstance(part, pmui.DiscreteSlider):
            stops = part.options
            values = list(stops.values()) if isinstance(stops, dict) else list(stops)
            at = values.index(part.value) if part.value in values else 0
            label = str(list(stops)[at])
            low, high, step = 0, max(1, len(values) - 1), 1
        else:
            at, low, high, step = part.value, part.start, part.end, part.step
            label = f"{at:g}"
        if not self._live:
            return _value_text(part, label)
        state = " disabled" if part.disabled else ""
        return (
            f"<label class='slider'{_size_style(part)}{LIVE}><span>{_named(part)}: "
            f"<b>{escape(label)}</b></span><input type='range' min='{low}' max='{high}' "
            f"step='{step}' value='{at}'{state}></label>"
        )

    def _field(self, part: Any) -> str:
        value, choice = part.value, hasattr(part, "options")
        if isinstance(getattr(part, "options", None), dict) and not isinstance(value, list):
            value = {v: k for k, v in part.options.items()}.get(value, value)
        value = ", ".join(map(str, value)) if isinstance(value, list) else value
        if not self._live:
            return _value_text(part, "" if value is None else str(value))
        text = escape("" if value is None else str(value), quote=True)
        kind = f"field {getattr(part, 'size', '') or ''} {'choice' if choice else ''}".strip()
        kind += "" if text else " empty"
        state = " disabled" if part.disabled else ""
        state += " readonly role='combobox' aria-expanded='false'" if choice else ""
        return (
            f"<label class='{kind}'{_size_style(part)}{LIVE}><span>{_named(part)}</span>"
            f"<input value='{text}'{state}></label>"
        )


def filled(shells: Mapping[str, str], html: str) -> str:
    """Replace the placeholders in HTML by their parts."""
    return PLACEHOLDER.sub(lambda match: filled(shells, shells[match[1]]), html)


def _named(part: Any) -> str:
    return escape(part.label or part.name or "")


def _value_text(part: Any, value: str) -> str:
    """Show a control's value as text."""
    return f"<p class='set'>{_named(part)}: {escape(value)}</p>"


def _check(label: str, checked: bool, disabled: bool) -> str:
    state = (" checked" if checked else "") + (" disabled" if disabled else "")
    return f"<label class='check'{LIVE}><input type='checkbox'{state}>{label}</label>"


def _size_style(part: Any) -> str:
    """Return the style attribute of a control with its margins and width."""
    margin = part.margin if isinstance(part.margin, tuple) else (part.margin,)
    style = (
        f"margin:{' '.join(f'{m or 0}px' for m in margin)}" if any(m or 0 for m in margin) else ""
    )
    width = None if part.sizing_mode == "stretch_width" else part.width
    for name, value in (("width", width), ("max-width", part.max_width)):
        style += f";{name}:{value}px" if value else ""
    return f" style='{style.strip(';')}'" if style else ""


def _room(figure: Any) -> str:
    """Return the style attribute of a figure's element: the room that it takes once drawn."""
    least = f";--least:{figure.min_width}px" if figure.min_width else ""
    if figure.frame_height or figure.height:
        return f" style='min-height:{figure.frame_height or figure.height}px{least}'"
    return f" style='aspect-ratio:{figure.aspect_ratio:.4g};max-width:{figure.max_width or 2000}px'"


def _nested(host: re.Match[str]) -> str:
    return "&" + (host[1] or "")


_KINDS: list[tuple[Any, Callable[[Markup, Any], str]]] = [
    (pn.pane.Markdown, Markup._markdown),
    (pn.pane.LaTeX, Markup._formulas),
    (pn.pane.HTML, Markup._text),
    (pn.pane.Bokeh, Markup._figure),
    (pn.pane.HoloViews, Markup._linked),
    (pn.FlexBox, Markup._flex),
    (pmui.FileDownload, Markup._button),
    (pmui.Button, Markup._button),
    (pmui.FileInput, Markup._button),
    (pmui.Checkbox, Markup._checkbox),
    (pmui.CheckBoxGroup, Markup._checks),
    ((pmui.DiscreteSlider, pmui.IntSlider, pmui.FloatSlider), Markup._slider),
    (pn.widgets.WidgetBase, Markup._field),
]
