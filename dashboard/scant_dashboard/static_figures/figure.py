"""A Bokeh figure as one HTML element: frame, ticks, axis labels, legend, color bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

import numpy as np
from bokeh.core.property.vectorization import Field

from scant_dashboard.plots.theme import models
from scant_dashboard.static_figures.marks import (
    STEADY,
    UNITS,
    Glyph,
    Label,
    colored,
    marks,
)
from scant_dashboard.static_figures.scales import Scale, tick_texts

ACROSS = ("x", "xs", "x0", "x1", "left", "right")  # coordinates considered by automatic ranges
UP = ("y", "ys", "y0", "y1", "y2", "top", "bottom")
BAR_STEPS = 24  # number of colors of a color bar
# Models drawn by other functions; a scale bar is omitted, as it needs the width in pixels.
HANDLED_ELSEWHERE = (models.GlyphRenderer, models.Grid, models.Legend, models.ScaleBar)
RAISED = {"top": "0", "middle": "-50%", "bottom": "-100%"}
ALIGNED = {"left": "0", "center": "-50%", "right": "-100%"}


def figure_html(figure: Any) -> str:
    """Return a Bokeh figure with its data and text alternative as HTML.

    Its styles are in `assets/static_figures.css`.

    Raises:
        NotImplementedError: The figure has an unsupported glyph or annotation.
    """
    if not figure.visible:
        return ""
    renderers = [r for r in figure.renderers if isinstance(r, models.GlyphRenderer) and r.visible]
    glyphs = [(renderer, Glyph(renderer)) for renderer in renderers]
    x = _scale(figure.x_range, figure.x_scale, glyphs, ACROSS)
    y = _scale(figure.y_range, figure.y_scale, glyphs, UP)
    shapes, labels = list(_annotations(figure, x, y, under=True)), list[Label]()
    for renderer in renderers:
        more = marks(renderer, x, y)
        shapes += more.shapes
        labels += more.labels
    shapes += _annotations(figure, x, y, under=False)
    label = (figure.html_attributes or {}).get("aria-label", "")
    alt = f" role='img' aria-label='{escape(label, quote=True)}'" if label else ""
    svg = (
        f"<svg viewBox='0 0 {UNITS} {UNITS}' preserveAspectRatio='none' aria-hidden='true'>"
        f"{''.join(_grid(figure, x, y))}{''.join(shapes)}</svg>{''.join(map(_label, labels))}"
    )
    if figure.match_aspect:  # equal scales, centered in the frame
        aspect = abs((x.high - x.low) / ((y.high - y.low) or 1.0))
        svg = f"<div class='even' style='--aspect:{aspect:.4g}'>{svg}</div>"
    whole, frame = _sizes_of(figure)
    acts = " data-acts" if _is_interactive(figure) else ""
    body = "body fixed" if figure.frame_width else "body"
    kind = "frame" if any(axis.visible for axis in figure.axis) else "frame bare"
    return (
        f"<div class='plot'{whole}{alt}{acts}>{''.join(_legends(figure))}<div class='{body}'>"
        f"{_axis(figure.yaxis, y, 'y')}<div class='{kind}'{frame}>{svg}</div>"
        f"{_bars(figure, 'right')}{_axis(figure.xaxis, x, 'x')}{_bars(figure, 'below')}</div></div>"
    )


def _is_interactive(figure: Any) -> bool:
    """Whether a click or drag in the figure triggers a query, which needs the live page."""
    acting = models.TapTool | models.BoxSelectTool | models.PolySelectTool
    asks = any(isinstance(tool, acting) for tool in figure.tools)
    return asks or "tap" in figure.js_event_callbacks


def _sizes_of(figure: Any) -> tuple[str, str]:
    """Return the style attributes of the figure and of its frame: pixels, or an aspect ratio."""
    width = f";width:{figure.frame_width}px;flex:none" if figure.frame_width else ""
    if figure.frame_height:
        return "", f" style='height:{figure.frame_height}px{width}'"
    if figure.aspect_ratio and figure.aspect_ratio != "auto":
        return f" style='aspect-ratio:{float(figure.aspect_ratio):.4g}'", ""
    return f" style='height:{figure.height or 300}px'", ""


def _scale(span: Any, scale: Any, glyphs: list[tuple[Any, Glyph]], names: tuple[str, ...]) -> Scale:
    """Return the scale of a range, with the coordinates that an automatic range considers."""
    values: list[Any] = []
    if isinstance(span, models.DataRange1d):
        for renderer, glyph in glyphs:
            if isinstance(span.renderers, list) and renderer not in (span.renderers or [renderer]):
                continue
            values += [_flat(glyph.column(n)) for n in names if glyph.has(n)]
            values += _sizes(glyph, names)
    return Scale(span, values, isinstance(scale, models.LogScale))


def _flat(values: Any) -> Any:
    if len(values) and isinstance(values[0], list | tuple | np.ndarray):  # polygons are nested
        return np.concatenate([np.asarray(_flat(v), float) for v in values])
    return values


def _sizes(glyph: Glyph, names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the edges of glyphs that are specified by position and size."""
    at, sizes = ("x", ("dw", "width")) if names is ACROSS else ("y", ("dh", "height"))
    for size in sizes:
        if glyph.has(size) and glyph.has(at) and type(glyph.glyph).__name__ not in ("VBar", "HBar"):
            position, length = (
                np.asarray(glyph.column(at), float),
                np.asarray(glyph.column(size), float),
            )
            half = 1.0 if size.startswith("d") else 0.5
            yield position + half * length
            if half < 1:
                yield position - half * length


def _grid(figure: Any, x: Scale, y: Scale) -> Iterator[str]:
    for grid, scale, axis, across in (
        (figure.xgrid, x, figure.xaxis, False),
        (figure.ygrid, y, figure.yaxis, True),
    ):
        if not grid or not grid[0].visible or not axis or grid[0].grid_line_color is None:
            continue
        for position in scale(scale.ticks(axis[0].ticker)):
            at = (1 - position if across else position) * UNITS
            d = f"M0 {at:.1f}H{UNITS}" if across else f"M{at:.1f} 0V{UNITS}"
            yield f"<path class='grid' d='{d}' {STEADY}/>"


def _annotations(figure: Any, x: Scale, y: Scale, under: bool) -> Iterator[str]:
    """Yield lines and boxes without data, either below the data or above them."""
    for one in figure.center + figure.renderers:
        if not getattr(one, "visible", False) or (getattr(one, "level", "") == "underlay") != under:
            continue
        if isinstance(one, models.Span):
            yield from _span(one, x, y)
        elif isinstance(one, models.Slope):
            edges = np.array([x.low, x.high])
            heights = y(float(one.gradient or 0) * edges + float(one.y_intercept or 0))
            d = f"M0 {(1 - heights[0]) * UNITS:.1f}L{UNITS} {(1 - heights[1]) * UNITS:.1f}"
            yield f"<path d='{d}' style='{_line(one)}' {STEADY}/>"
        elif isinstance(one, models.BoxAnnotation):
            left, right = _box_sides(one.left, one.right, x)
            bottom, top = _box_sides(one.bottom, one.top, y)
            yield (
                f"<rect x='{left * UNITS:.1f}' y='{(1 - top) * UNITS:.1f}' "
                f"width='{(right - left) * UNITS:.1f}' height='{(top - bottom) * UNITS:.1f}' "
                f"style='fill:{one.fill_color};fill-opacity:{one.fill_alpha}'/>"
            )
        elif not isinstance(one, HANDLED_ELSEWHERE):
            kind = type(one).__name__
            raise NotImplementedError(f"Pages without a session cannot draw the annotation {kind}.")


def _span(span: Any, x: Scale, y: Scale) -> Iterator[str]:
    if not isinstance(span.location, int | float | np.number) or not np.isfinite(span.location):
        return
    if span.dimension == "width":
        d = f"M0 {(1 - float(y([span.location])[0])) * UNITS:.1f}H{UNITS}"
    else:
        d = f"M{float(x([span.location])[0]) * UNITS:.1f} 0V{UNITS}"
    yield f"<path d='{d}' style='{_line(span)}' {STEADY}/>"


def _line(one: Any) -> str:
    dash = " ".join(map(str, one.line_dash or []))
    return (
        f"fill:none;stroke:{one.line_color};stroke-opacity:{one.line_alpha};"
        f"stroke-width:{one.line_width}px" + (f";stroke-dasharray:{dash}" if dash else "")
    )


def _box_sides(low: Any, high: Any, scale: Scale) -> tuple[float, float]:
    """Return the sides of a box; sides that are not numbers are the frame's."""
    sides = [
        float(scale([v])[0]) if isinstance(v, int | float) else default
        for v, default in ((low, 0.0), (high, 1.0))
    ]
    return min(sides), max(sides)


def _label(label: Label) -> str:
    color = f";color:{escape(label.color, quote=True)}" if label.color.startswith("#") else ""
    shift, lift = ALIGNED.get(label.align, "0"), RAISED.get(label.baseline, "-80%")
    return (
        f"<span class='mark' style='left:{100 * label.x:.2f}%;top:{100 * label.y:.2f}%;"
        f"margin:{label.down:g}px 0 0 {label.right:g}px;transform:translate({shift},{lift});"
        f"font-size:{escape(label.size, quote=True)}{color}'>"
        f"{escape(label.text)}</span>"
    )


def _axis(axes: Any, scale: Scale, direction: str) -> str:
    """Return the ticks with their labels, and the axis label."""
    axis = next((a for a in axes if a.visible), None) if axes else None
    if axis is None:
        return f"<div class='{direction} axis'></div>"
    ticks = scale.ticks(axis.ticker)
    side = "left" if direction == "x" else "bottom"
    texts = "".join(
        f"<span style='{side}:{100 * position:.2f}%'>{escape(text)}</span>"
        for position, text in zip(scale(ticks), tick_texts(ticks, axis), strict=True)
        if np.isfinite(position)
    )
    # Tick labels determine the width of a vertical axis, as on a live figure.
    longest = max(map(len, tick_texts(ticks, axis)), default=0)
    width = f" style='width:{max(56, 7 * longest + 34)}px'" if direction == "y" else ""
    name = f"<em>{escape(axis.axis_label)}</em>" if axis.axis_label else ""
    return f"<div class='{direction} axis'{width}>{name}<div class='ticks'>{texts}</div></div>"


def _legends(figure: Any) -> Iterator[str]:
    for legend in figure.legend:
        if not legend.visible:
            continue
        entries = "".join(
            f"<span><i style='{_swatch(item.renderers[-1])}'></i>{escape(_named(item))}</span>"
            for item in legend.items
            if item.visible and item.renderers and _named(item)
        )
        if entries:
            yield f"<div class='legend {legend.orientation}'>{entries}</div>"


def _named(item: Any) -> str:
    label = item.label
    value = getattr(label, "value", label)
    return "" if isinstance(value, Field) else str(value or "")


def _swatch(renderer: Any) -> str:
    """Return the style of a legend entry: its color and shape."""
    glyph = Glyph(renderer)
    kind = type(renderer.glyph).__name__

    def first(name: str, other: Any) -> Any:
        if not glyph.has(name):
            return other
        value = glyph.column(name)[0] if len(glyph.indices) else glyph.constant(name)
        return other if value is None else value

    fill, line = first("fill_color", None), first("line_color", None)
    if kind in ("Line", "Step", "Segment", "MultiLine"):
        dash = first("line_dash", [])
        form = "dashed" if dash and dash != "solid" else "solid"
        return f"height:0;border-top:2px {form} {line or 'currentColor'}"
    alpha = first("fill_alpha", 1)
    shape = ";border-radius:50%;width:9px;height:9px" if kind in ("Scatter", "Circle") else ""
    return f"background:{fill or line or 'currentColor'};opacity:{max(0.25, alpha)}{shape}"


def _bars(figure: Any, side: str) -> str:
    """Return color bars next to or below the frame."""
    return "".join(
        _bar(one, side) for one in getattr(figure, side) if isinstance(one, models.ColorBar)
    )


def _bar(bar: Any, side: str) -> str:
    mapper = bar.color_mapper
    if not bar.visible or mapper is None or not isinstance(mapper, models.LinearColorMapper):
        return ""
    low, high = mapper.low, mapper.high
    if low is None or high is None:
        return ""
    steps = colored(mapper, np.linspace(low, high, BAR_STEPS))
    gradient = f"background:linear-gradient(var(--to),{','.join(map(str, steps))})"
    texts = f"<b>{_short(low)}</b><i style='{gradient}'></i><b>{_short(high)}</b>"
    return f"<div class='{side} colors'><em>{escape(bar.title or '')}</em>{texts}</div>"


def _short(value: float) -> str:
    return f"{float(value):.3g}"


def figures_html(figures: Iterable[Any]) -> str:
    """Return the figures of one plot, side by side if there is room."""
    made = [html for html in map(figure_html, figures) if html]
    return made[0] if len(made) == 1 else f"<div class='plots'>{''.join(made)}</div>"
