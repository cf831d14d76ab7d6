"""Glyphs of Bokeh figures as SVG in a square of 1,000 units, which the page stretches."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from html import escape
from typing import Any, NamedTuple

import numpy as np
from bokeh.core.property.vectorization import Field, Value
from jaxtyping import Float
from numpy import ndarray

from scant_dashboard.plots.theme import models
from scant_dashboard.static_figures.scales import Scale

UNITS = 1000  # side of the square
DASHES = {"dashed": "6", "dotted": "2 4", "dotdash": "2 4 6 4", "dashdot": "6 4 2 4", "solid": ""}
# Lines and markers keep their widths when the square is stretched.
STEADY = "vector-effect='non-scaling-stroke'"
STRIPES = ("right_diagonal_line", "left_diagonal_line")  # Bokeh's names
STYLED = ("fill_color", "fill_alpha", "line_color", "line_alpha", "line_width", "line_dash")


Points = list[tuple[float, float]]


class Label(NamedTuple):
    """A text in the figure: position (fractions of the frame from left and top) and style."""

    x: float
    y: float
    text: str
    align: str
    color: str
    size: str
    baseline: str
    right: float  # offset in pixels
    down: float


class Marks(NamedTuple):
    """SVG elements of a figure, and texts above them."""

    shapes: list[str]
    labels: list[Label]


class Glyph:
    """The glyph of a renderer, with its properties by row."""

    def __init__(self, renderer: Any) -> None:
        self.glyph = renderer.glyph
        self.data = renderer.data_source.data
        self.rows = len(next(iter(self.data.values()), ()))
        view = getattr(renderer, "view", None)
        self.indices = _filtered_indices(view, self.data, self.rows)

    def column(self, name: str) -> Any:
        """Return a property of each row, with transforms applied."""
        spec = self._spec(name)
        if isinstance(spec, Field):
            values = [self.data[spec.field][i] for i in self.indices]
        else:
            values = [self.constant(name)] * len(self.indices)
        transform = getattr(spec, "transform", None)
        if isinstance(transform, models.ColorMapper):
            return colored(transform, values)
        return values

    def constant(self, name: str) -> Any:
        """Return a property that is the same for all rows; None if it varies."""
        spec = self._spec(name)
        return None if isinstance(spec, Field) else spec.value if isinstance(spec, Value) else spec

    def _spec(self, name: str) -> Any:
        return type(self.glyph).lookup(name).get_value(self.glyph)

    def has(self, name: str) -> bool:
        """Whether the glyph has this property."""
        return type(self.glyph).lookup(name, raises=False) is not None

    def styles(self) -> list[str]:
        """Return the SVG style of each row."""
        names = [name for name in STYLED if self.has(name)]
        if not any(isinstance(self._spec(name), Field) for name in names):
            return [_style({name: self.constant(name) for name in names})] * len(self.indices)
        rows = zip(*map(self.column, names), strict=True)
        return [_style(dict(zip(names, row, strict=True))) for row in rows]


def marks(renderer: Any, x: Scale, y: Scale) -> Marks:
    """Return the marks of a renderer.

    Raises:
        NotImplementedError: The kind of glyph is not in `GLYPHS`.
    """
    glyph = Glyph(renderer)
    kind = type(renderer.glyph).__name__
    if kind not in GLYPHS:
        raise NotImplementedError(f"Pages without a session cannot draw the glyph {kind}.")
    if not len(glyph.indices):
        return Marks([], [])
    if kind == "Text":
        return Marks([], list(_texts(glyph, x, y)))
    return Marks(list(GLYPHS[kind](glyph, x, y)), [])


def colored(mapper: Any, values: Any) -> list[Any]:
    """Map values to colors, by a linear or categorical mapper."""
    palette = list(mapper.palette)
    if isinstance(mapper, models.CategoricalColorMapper):
        position = {factor: i for i, factor in enumerate(mapper.factors)}
        return [palette[position[v]] if v in position else mapper.nan_color for v in values]
    numbers = np.asarray(values, float)
    finite = numbers[np.isfinite(numbers)]
    low = mapper.low if mapper.low is not None else (finite.min() if len(finite) else 0.0)
    high = mapper.high if mapper.high is not None else (finite.max() if len(finite) else 1.0)
    with np.errstate(invalid="ignore"):
        parts = (numbers - low) / ((high - low) or 1.0) * len(palette)
        at = np.clip(np.nan_to_num(parts), 0, len(palette) - 1).astype(int)
    return [
        palette[i] if np.isfinite(v) else mapper.nan_color for i, v in zip(at, numbers, strict=True)
    ]


def _filtered_indices(view: Any, data: Any, rows: int) -> ndarray:
    """Return the rows that pass the renderer's filter."""
    every = np.arange(rows)
    chosen = getattr(view, "filter", None)
    if isinstance(chosen, models.BooleanFilter) and chosen.booleans is not None:
        return every[np.asarray(chosen.booleans, bool)[:rows]]
    if isinstance(chosen, models.IndexFilter) and chosen.indices is not None:
        return np.asarray(chosen.indices, int)
    if isinstance(chosen, models.GroupFilter):
        return every[np.asarray(data[chosen.column_name]) == chosen.group]
    return every


def _style(of: Mapping[str, Any]) -> str:
    filled = "fill_color" in of
    parts = [_paint("fill", of["fill_color"], of["fill_alpha"])] if filled else []
    if "line_color" in of:
        dash = of.get("line_dash", [])
        parts.append(_stroke(of["line_color"], of["line_alpha"], of["line_width"], dash))
    return ";".join(filter(None, parts if filled else [*parts, "fill:none"]))


def _paint(what: str, color: Any, alpha: Any) -> str:
    if color is None or alpha == 0:
        return f"{what}:none"
    opacity = "" if alpha == 1 else f";{what}-opacity:{float(alpha):.3g}"
    return f"{what}:{escape(str(color), quote=True)}{opacity}"


def _stroke(color: Any, alpha: Any, width: Any, dash: Any) -> str:
    made = _paint("stroke", color, alpha)
    if made.endswith("none"):
        return made
    if width != 1:
        made += f";stroke-width:{float(width):.3g}px"
    pattern = DASHES.get(dash, dash) if isinstance(dash, str) else " ".join(map(str, dash))
    return made + (f";stroke-dasharray:{pattern}" if pattern else "")


def _at(x: float, y: float) -> str:
    return f"{x * UNITS:.1f} {(1 - y) * UNITS:.1f}"


def _runs(
    px: Float[ndarray, " n"], py: Float[ndarray, " n"]
) -> Iterator[list[tuple[float, float]]]:
    """Yield runs of consecutive finite points."""
    fine = np.isfinite(px) & np.isfinite(py)
    bounds = np.flatnonzero(np.diff(fine, prepend=False, append=False))
    for first, last in zip(bounds[::2], bounds[1::2], strict=True):
        yield list(zip(px[first:last].tolist(), py[first:last].tolist(), strict=True))


def _path(points: Points, closed: bool = False) -> str:
    return "M" + "L".join(_at(*p) for p in points) + ("Z" if closed else "")


def _shape(d: str, style: str) -> str:
    return f"<path d='{d}' style='{style}' {STEADY}/>"


def _line(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    px, py = x(glyph.column("x")), y(glyph.column("y"))
    if type(glyph.glyph).__name__ == "Step":
        px, py = _steps(px, py, glyph.glyph.mode)
    yield _shape("".join(_path(run) for run in _runs(px, py)), glyph.styles()[0])


def _steps(px: ndarray, py: ndarray, mode: str) -> tuple[ndarray, ndarray]:
    """Return the corners of a step line."""
    if mode == "before":
        return np.repeat(px, 2)[:-1], np.repeat(py, 2)[1:]
    return np.repeat(px, 2)[1:], np.repeat(py, 2)[:-1]


def _multi_line(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    rows = zip(glyph.column("xs"), glyph.column("ys"), glyph.styles(), strict=True)
    for xs, ys, style in rows:
        yield _shape("".join(_path(run) for run in _runs(x(xs), y(ys))), style)


def _area(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    px = x(glyph.column("x"))
    low, high = y(glyph.column("y1")), y(glyph.column("y2"))
    fine = np.isfinite(px) & np.isfinite(low) & np.isfinite(high)
    for run in _runs(np.where(fine, px, np.nan), np.arange(len(px), dtype=float)):
        rows = [int(i) for _, i in run]
        there = [(float(px[i]), float(high[i])) for i in rows]
        back = [(float(px[i]), float(low[i])) for i in reversed(rows)]
        yield _shape(_path(there + back, closed=True), glyph.styles()[0])


def _patch(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    px, py = x(glyph.column("x")), y(glyph.column("y"))
    d = "".join(_path(run, closed=True) for run in _runs(px, py))
    yield _shape(d, glyph.styles()[0])


def _patches(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    rows = zip(glyph.column("xs"), glyph.column("ys"), glyph.styles(), strict=True)
    for xs, ys, style in rows:
        yield _shape("".join(_path(run, closed=True) for run in _runs(x(xs), y(ys))), style)


def _multi_polygons(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    """Yield one path per row; the even-odd rule preserves holes."""
    paths = []
    for xs, ys, style in zip(glyph.column("xs"), glyph.column("ys"), glyph.styles(), strict=True):
        rings = [
            _path(list(zip(x(a).tolist(), y(b).tolist(), strict=True)), closed=True)
            for across, up in zip(xs, ys, strict=True)
            for a, b in zip(across, up, strict=True)
        ]
        yield _shape("".join(rings), f"{style};fill-rule:evenodd")
        paths.append("".join(rings))
    patterns = glyph.column("hatch_pattern")
    if striped := [d for d, pattern in zip(paths, patterns, strict=True) if pattern in STRIPES]:
        color, alpha = glyph.constant("hatch_color"), glyph.constant("hatch_alpha")
        yield (
            "<defs><pattern id='stripes' width='14' height='14' patternUnits='userSpaceOnUse' "
            f"patternTransform='rotate(45)'><rect width='4' height='14' fill='{color}' "
            f"fill-opacity='{alpha}'/></pattern></defs>"
        )
        yield _shape("".join(striped), "fill:url(#stripes);fill-rule:evenodd;stroke:none")


def _boxes(left: Any, right: Any, bottom: Any, top: Any, styles: list[str]) -> Iterator[str]:
    """Yield boxes, with those of equal style in one path."""
    paths: dict[str, list[str]] = {}
    for a, b, c, d, style in zip(left, right, bottom, top, styles, strict=True):
        if all(map(np.isfinite, (a, b, c, d))):
            corner = _at(min(a, b), max(c, d))
            width, height = abs(b - a) * UNITS, abs(d - c) * UNITS
            box = f"M{corner}h{width:.1f}v{height:.1f}h{-width:.1f}Z"
            paths.setdefault(style, []).append(box)
    for style, boxes in paths.items():
        yield _shape("".join(boxes), style)


def _quad(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    sides = (x(glyph.column("left")), x(glyph.column("right")))
    yield from _boxes(*sides, y(glyph.column("bottom")), y(glyph.column("top")), glyph.styles())


def _hbar(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    middle, half = y(glyph.column("y")), y.extent(glyph.column("height")) / 2
    sides = (x(glyph.column("left")), x(glyph.column("right")))
    yield from _boxes(*sides, middle - half, middle + half, glyph.styles())


def _vbar(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    middle, half = x(glyph.column("x")), x.extent(glyph.column("width")) / 2
    sides = (y(glyph.column("bottom")), y(glyph.column("top")))
    yield from _boxes(middle - half, middle + half, *sides, glyph.styles())


def _rect(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    px, py = x(glyph.column("x")), y(glyph.column("y"))
    half_width = x.extent(glyph.column("width")) / 2
    half_height = y.extent(glyph.column("height")) / 2
    yield from _boxes(
        px - half_width, px + half_width, py - half_height, py + half_height, glyph.styles()
    )


def _segment(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    points = (
        x(glyph.column("x0")),
        y(glyph.column("y0")),
        x(glyph.column("x1")),
        y(glyph.column("y1")),
    )
    paths: dict[str, list[str]] = {}
    for a, b, c, d, style in zip(*points, glyph.styles(), strict=True):
        if all(map(np.isfinite, (a, b, c, d))):
            paths.setdefault(style, []).append(f"M{_at(a, b)}L{_at(c, d)}")
    for style, lines in paths.items():
        yield _shape("".join(lines), style)


def _ellipse(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    turn = np.linspace(0, 2 * np.pi, 33)
    columns = (glyph.column(n) for n in ("x", "y", "width", "height", "angle"))
    for cx, cy, width, height, angle, style in zip(*columns, glyph.styles(), strict=True):
        a, b = width / 2 * np.cos(turn), height / 2 * np.sin(turn)
        across = cx + a * np.cos(angle) - b * np.sin(angle)
        up = cy + a * np.sin(angle) + b * np.cos(angle)
        points = list(zip(x(across).tolist(), y(up).tolist(), strict=True))
        if np.isfinite(points).all():
            yield _shape(_path(points, closed=True), style)


def _scatter(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    """Yield markers as strokes of zero length, which keep size and shape when stretched."""
    px, py = x(glyph.column("x")), y(glyph.column("y"))
    fills = zip(glyph.column("fill_color"), glyph.column("fill_alpha"), strict=True)
    lines = zip(glyph.column("line_color"), glyph.column("line_alpha"), strict=True)
    forms = glyph.column("marker") if glyph.has("marker") else ["circle"] * len(px)
    paths: dict[str, list[str]] = {}
    stroke = cache(_stroke)
    rows = zip(px, py, fills, lines, glyph.column("size"), forms, strict=True)
    for a, b, (fill, alpha), (line, line_alpha), size, form in rows:
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(float(size))):
            continue
        color, opacity = (fill, alpha) if fill is not None and alpha else (line, line_alpha)
        if color is None or not opacity:
            continue
        cap = "round" if form in ("circle", "dot", None) else "square"
        style = f"{stroke(color, opacity, size, ())};stroke-linecap:{cap}"
        paths.setdefault(style, []).append(f"M{_at(a, b)}h0")
    for style, points in paths.items():
        yield _shape("".join(points), style)


def _image(glyph: Glyph, x: Scale, y: Scale) -> Iterator[str]:
    columns = (glyph.column(n) for n in ("image", "x", "y", "dw", "dh"))
    mapper = getattr(glyph.glyph, "color_mapper", None)
    for pixels, left, bottom, width, height in zip(*columns, strict=True):
        if np.size(pixels) == 0:
            continue
        rgba = _rgba(np.asarray(pixels), mapper)
        a, b = float(x([left])[0]), float(y([bottom])[0])
        c, d = float(x([left + width])[0]), float(y([bottom + height])[0])
        yield (
            f"<image x='{min(a, c) * UNITS:.1f}' y='{(1 - max(b, d)) * UNITS:.1f}' "
            f"width='{abs(c - a) * UNITS:.1f}' height='{abs(d - b) * UNITS:.1f}' "
            "preserveAspectRatio='none' style='image-rendering:pixelated' "
            f"href='{_png(rgba[::-1] if d > b else rgba)}'/>"
        )


def _rgba(pixels: ndarray, mapper: Any) -> ndarray:
    """Return pixels as RGBA bytes of shape (h, w, 4); the first row is at the bottom."""
    if mapper is None:
        return np.ascontiguousarray(pixels).view(np.uint8).reshape(*pixels.shape[:2], 4)
    names = colored(mapper, pixels.ravel())
    table = {name: _channels(name) for name in set(map(str, names))}
    made = np.array([table[str(name)] for name in names], np.uint8)
    return made.reshape(*pixels.shape, 4)


def _channels(color: str) -> tuple[int, ...]:
    digits = color.lstrip("#")
    if not color.startswith("#") or len(digits) not in (6, 8):
        return (128, 128, 128, 0)  # e.g. the transparent color of missing values
    return tuple(int(digits[i : i + 2], 16) for i in range(0, len(digits), 2)) + (255,) * (
        len(digits) == 6
    )


def _png(rgba: ndarray) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rgba).save(file, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _texts(glyph: Glyph, x: Scale, y: Scale) -> Iterator[Label]:
    names = ("text", "text_align", "text_color", "text_font_size", "text_baseline",
             "x_offset", "y_offset")  # fmt: skip
    rows = zip(x(glyph.column("x")), y(glyph.column("y")), *map(glyph.column, names), strict=True)
    for a, b, text, align, color, size, baseline, right, down in rows:
        if np.isfinite(a) and np.isfinite(b) and text:
            yield Label(
                float(a), float(1 - b), str(text), str(align), str(color or ""), str(size),
                str(baseline), float(right), float(down),
            )  # fmt: skip


GLYPHS: dict[str, Callable[[Glyph, Scale, Scale], Iterator[str]]] = {
    "Line": _line,
    "Step": _line,
    "MultiLine": _multi_line,
    "VArea": _area,
    "Patch": _patch,
    "Patches": _patches,
    "MultiPolygons": _multi_polygons,
    "Quad": _quad,
    "HBar": _hbar,
    "VBar": _vbar,
    "Rect": _rect,
    "Segment": _segment,
    "Ellipse": _ellipse,
    "Scatter": _scatter,
    "Circle": _scatter,
    "Image": _image,
    "ImageRGBA": _image,
    "Text": lambda glyph, x, y: iter(()),
}
