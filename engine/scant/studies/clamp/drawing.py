"""Drawing of trenches: soil, a pipe at any angle, a sleeve where two pipes join, clamps beside it.

A clamp is a ring about the pipe, a metal bar that pinches it with two bolts, or a plastic jaw.
Nuisance: light and its color, shadow, dirt on the pipe, stones, cables, rods in the soil, tape and
print on the pipe.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from PIL import Image

_PIPES = ((0.92, 0.78, 0.18), (0.20, 0.38, 0.68), (0.16, 0.17, 0.19))
_JAWS = ((0.95, 0.42, 0.08), (0.80, 0.12, 0.12), (0.08, 0.50, 0.35))

Plane = Float[np.ndarray, "h w"]
Color = Float[np.ndarray, "h w 3"]


# --- surroundings -------------------------------------------------------------------------------


def _noise(rng: np.random.Generator, h: int, w: int, grain: float) -> Plane:
    """Smooth noise of unit deviation whose lumps have about `grain` pixels."""
    small = rng.normal(size=(max(2, round(h / grain) + 2), max(2, round(w / grain) + 2)))
    made = Image.fromarray(small.astype(np.float32), mode="F")
    smooth = np.asarray(made.resize((w, h), Image.Resampling.BICUBIC))
    return np.asarray(smooth / np.float32(max(float(smooth.std()), 1e-9)))


def soil(rng: np.random.Generator, h: int, w: int) -> Color:
    base = np.array([0.44, 0.34, 0.24]) * rng.uniform(0.75, 1.3)
    base = base * np.array([1, rng.uniform(0.9, 1.08), rng.uniform(0.8, 1.15)])
    lumps = np.zeros((h, w))
    for grain, size in ((90, 0.10), (22, 0.10), (6, 0.10), (2.5, 0.06)):
        lumps += size * _noise(rng, h, w, grain)
    return np.asarray(base * (1 + lumps)[..., None])


def _grid(h: int, w: int) -> tuple[Plane, Plane]:
    y, x = np.mgrid[:h, :w].astype(np.float32)
    return x - w / 2, y - h / 2


def box(along: Plane, across: Plane, reach: float) -> tuple[slice, slice]:
    """Rows and columns near a point on the pipe; at least one of each."""
    close = (np.abs(along) < reach) & (np.abs(across) < reach)
    rows, columns = np.flatnonzero(close.any(1)), np.flatnonzero(close.any(0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _laid(rgb: Color, cover: Plane, color: np.ndarray) -> Color:
    """Paint over a picture; a cover of 1 is opaque."""
    rows, columns = np.flatnonzero(cover.any(1)), np.flatnonzero(cover.any(0))
    if not len(rows):
        return rgb
    box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    c = np.clip(cover[box], 0, 1)[..., None]
    paint = color[box] if np.ndim(color) == 3 else color
    result = rgb.copy()
    result[box] = rgb[box] + c * (paint - rgb[box])
    return result


def _edge(distance: Plane) -> Plane:
    """1 inside, 0 outside, over a pixel or two; distances are positive inside."""
    return np.asarray(np.clip(distance / 1.5 + 0.5, 0, 1))


def litter(rng: np.random.Generator, rgb: Color) -> Color:
    """Stones, cables and rods in the soil, which look like parts of clamps."""
    h, w = rgb.shape[:2]
    x, y = _grid(h, w)
    for _ in range(int(rng.integers(4, 11))):
        cx, cy = rng.uniform(-w / 2, w / 2), rng.uniform(-h / 2, h / 2)
        size, long, turn = rng.uniform(6, 26), rng.uniform(0.5, 1.0), rng.uniform(0, np.pi)
        close = (np.abs(y[:, 0] - cy) < size + 2), (np.abs(x[0] - cx) < size + 2)
        if not (close[0].any() and close[1].any()):
            continue
        box = np.ix_(*close)
        u = (x[box] - cx) * np.cos(turn) + (y[box] - cy) * np.sin(turn)
        v = ((y[box] - cy) * np.cos(turn) - (x[box] - cx) * np.sin(turn)) / long
        r = np.hypot(u, v) / size
        gray = rng.uniform(0.3, 0.75) * (1 - 0.35 * (u + v) / size)
        tint = np.array([1, 0.97, 0.92])
        rgb[box] = _laid(rgb[box], _edge((1 - r) * size), gray[..., None] * tint)
    for _ in range(int(rng.integers(0, 3))):  # cables and rods
        turn, away = rng.uniform(0, np.pi), rng.uniform(-h / 2, h / 2)
        u = x * np.cos(turn) + y * np.sin(turn)
        v = y * np.cos(turn) - x * np.sin(turn) - away + rng.uniform(0, 14) * np.sin(u / 60)
        thick, metal = rng.uniform(2.5, 6), rng.uniform() < 0.5
        end = rng.uniform(60, 200)
        shade = np.sqrt(np.clip(1 - (v / thick) ** 2, 0, 1))
        tone = 0.35 + 0.45 * shade if metal else 0.08 + 0.12 * shade
        cover = _edge(np.minimum(thick - np.abs(v), end - np.abs(u)))
        rgb = _laid(rgb, cover, tone[..., None] * np.ones(3))
    return rgb


def axis(rng: np.random.Generator, h: int, w: int) -> tuple[Plane, Plane, float]:
    """Coordinates along and across the pipe, and its radius, in pixels."""
    x, y = _grid(h, w)
    turn = rng.uniform(-0.5, 0.5)
    away = rng.uniform(-0.18, 0.18) * h
    along = x * np.cos(turn) + y * np.sin(turn)
    across = y * np.cos(turn) - x * np.sin(turn) - away
    bend = rng.normal(0, 2e-4)
    return along, across + bend * along**2 / 4, float(rng.uniform(26, 38))


def _round(across: Plane, radius: float, rng: np.random.Generator) -> Plane:
    """Light on a cylinder: bright where it faces up, dark at its rims."""
    s = across / radius
    body = np.sqrt(np.clip(1 - s**2, 0, 1))
    shine = rng.uniform(0.1, 0.4) * np.exp(-(((s + rng.uniform(0.2, 0.5)) / 0.16) ** 2))
    return np.asarray(0.45 + 0.55 * body + shine - 0.12 * s)


def pipe(rng: np.random.Generator, rgb: Color, along: Plane, across: Plane, radius: float) -> Color:
    h, w = rgb.shape[:2]
    shadow = np.exp(-(np.clip(across - radius, 0, None) ** 2) / (0.5 * radius) ** 2)
    rgb = rgb * (1 - 0.5 * shadow * (across > 0))[..., None]
    color = np.array(_PIPES[int(rng.integers(len(_PIPES)))]) * rng.uniform(0.8, 1.1)
    light = _round(across, radius, rng) * (1 + 0.04 * _noise(rng, h, w, 4))
    rgb = _laid(rgb, _edge(radius - np.abs(across)), light[..., None] * color)
    for _ in range(int(rng.integers(0, 3))):  # tape and print, which resemble rings
        center, half_width = rng.uniform(-w / 2, w / 2), rng.uniform(4, 18)
        tone = rng.uniform(0.1, 0.9, 3) if rng.uniform() < 0.5 else np.full(3, rng.uniform(0, 1))
        cover = _edge(np.minimum(radius - np.abs(across), half_width - np.abs(along - center)))
        rgb = _laid(rgb, 0.85 * cover, light[..., None] * tone)
    return rgb


def sleeve(
    rng: np.random.Generator, rgb: Color, along: Plane, across: Plane, radius: float
) -> tuple[Color, float]:
    """A joint: a thicker sleeve with two terminals, and half of its length."""
    reach, thick = rng.uniform(1.3, 2.1) * radius, rng.uniform(1.15, 1.3) * radius
    color = np.array(_PIPES[int(rng.integers(3))]) * rng.uniform(0.6, 1.0)
    light = _round(across, thick, rng)
    cover = _edge(np.minimum(reach - np.abs(along), thick - np.abs(across)))
    rgb = _laid(rgb, cover, light[..., None] * color)
    for side in (-1, 1):
        r = np.hypot(along - side * 0.6 * reach, across + 0.75 * thick)
        rgb = _laid(rgb, _edge(0.2 * radius - r), np.full(3, rng.uniform(0.2, 0.8)))
    return rgb, reach


# --- clamps -------------------------------------------------------------------------------------


def _metal(rng: np.random.Generator, along: Plane, across: Plane, grain: float) -> Color:
    """Bright and dark streaks, with rust here and there."""
    tone = 0.55 + 0.25 * np.sin(across / grain + rng.uniform(0, 6)) + 0.12 * np.cos(along / 3)
    rust = np.clip(
        _noise(rng, across.shape[0], across.shape[1], 12.0) - rng.uniform(0.6, 2.0), 0, 1
    )[..., None]
    gray = tone[..., None] * np.array([0.95, 0.98, 1.0]) * rng.uniform(0.75, 1.15)
    return np.asarray(gray * (1 - rust) + rust * np.array([0.45, 0.25, 0.12]))


def _ring(
    rng: np.random.Generator, rgb: Color, along: Plane, across: Plane, radius: float
) -> tuple[Color, Bool[np.ndarray, "h w"]]:
    """One broad metal ring about the pipe with a lug that is bolted together."""
    half_width, thick = rng.uniform(0.28, 0.45) * radius, rng.uniform(1.12, 1.25) * radius
    side = rng.choice([-1.0, 1.0])
    band = np.minimum(half_width - np.abs(along), thick - np.abs(across))
    lug = np.minimum(
        0.7 * half_width - np.abs(along), 0.3 * radius - np.abs(across - side * 1.4 * radius)
    )
    light = _round(across, thick, rng)[..., None]
    rgb = _laid(rgb, _edge(band), _metal(rng, along, across, 9.0) * light)
    rgb = _laid(rgb, _edge(lug), _metal(rng, along, across, 4.0))
    bolt = np.hypot(along, across - side * 1.45 * radius)
    rgb = _laid(rgb, _edge(0.16 * radius - bolt), np.full(3, 0.15))
    return rgb, np.maximum(band, lug) > 0


def _metal_pinch(
    rng: np.random.Generator, rgb: Color, along: Plane, across: Plane, radius: float
) -> tuple[Color, Bool[np.ndarray, "h w"]]:
    """Two bars across the pipe, held together by bolts at their ends."""
    turn = rng.normal(0, 0.12)
    u = along * np.cos(turn) + across * np.sin(turn)
    v = across * np.cos(turn) - along * np.sin(turn)
    half_length, half_width, half_distance = (
        rng.uniform(1.6, 2.0) * radius,
        0.17 * radius,
        0.3 * radius,
    )
    inside = np.zeros(along.shape, dtype=bool)
    for side in (-1, 1):
        bar = np.minimum(half_width - np.abs(u - side * half_distance), half_length - np.abs(v))
        rgb = _laid(rgb, _edge(bar), _metal(rng, u, v, 11.0))
        inside |= bar > 0
    for end in (-1, 1):
        head = np.hypot(u, v - end * 0.85 * half_length)
        rgb = _laid(rgb, _edge(0.34 * radius - head), _metal(rng, u, v, 3.0) * 0.8)
        rgb = _laid(rgb, _edge(0.14 * radius - head), np.full(3, 0.1))
        inside |= head < 0.34 * radius
    return rgb, inside


def _plastic_pinch(
    rng: np.random.Generator, rgb: Color, along: Plane, across: Plane, radius: float
) -> tuple[Color, Bool[np.ndarray, "h w"]]:
    """A jaw of colored plastic about the pipe, and its lever."""
    color = np.array(_JAWS[int(rng.integers(len(_JAWS)))]) * rng.uniform(0.8, 1.15)
    side = rng.choice([-1.0, 1.0])
    u2, v2 = np.square(along / (0.55 * radius)), np.square(across / (1.4 * radius))
    jaw = (1 - np.sqrt(np.sqrt(u2 * u2 + v2 * v2))) * 0.55 * radius
    lean = rng.uniform(-0.5, 0.5)
    lever = np.minimum(
        0.2 * radius - np.abs(along - lean * (across - side * radius)),
        0.55 * radius - np.abs(across - side * 1.7 * radius),
    )
    inside = np.maximum(jaw, lever)
    light = 0.7 + 0.3 * np.cos(across / radius) + 0.05 * np.sin(along / 2)
    rgb = _laid(rgb, _edge(inside), light[..., None] * color)
    slot = np.minimum(0.08 * radius - np.abs(along), 0.9 * radius - np.abs(across))
    return _laid(rgb, 0.8 * _edge(slot), color * 0.3), inside > 0


CLAMPS = {"ring": _ring, "metal pinch": _metal_pinch, "plastic pinch": _plastic_pinch}


# --- dirt and light -----------------------------------------------------------------------------


def dirt(rng: np.random.Generator, rgb: Color, across: Plane, radius: float) -> Color:
    """Soil on pipe and clamps, in lumps and as a veil."""
    h, w = rgb.shape[:2]
    lumps = _noise(rng, h, w, 26) + 0.5 * _noise(rng, h, w, 7)
    cover = np.clip(1.6 * (lumps - rng.uniform(1.6, 2.8)), 0, 0.95)
    close = np.abs(across) < 2.2 * radius
    veil = rng.uniform(0, 0.15) * np.clip(0.6 + 0.4 * lumps, 0, 1)
    soil = np.array([0.42, 0.32, 0.22]) * (1 + 0.15 * _noise(rng, h, w, 3))[..., None]
    return _laid(rgb, np.where(close, np.maximum(cover, veil), 0.0), soil)


def light(rng: np.random.Generator, rgb: Color) -> Color:
    """Exposure, color and slope of the light, and the shadow of an edge."""
    h, w = rgb.shape[:2]
    x, y = _grid(h, w)
    turn = rng.uniform(0, 2 * np.pi)
    slope = rng.uniform(0, 0.5) * (x * np.cos(turn) + y * np.sin(turn)) / w
    warm = np.array([1 + rng.normal(0, 0.08), 1.0, 1 + rng.normal(0, 0.1)])
    shade = np.ones((h, w))
    if rng.uniform() < 0.4:
        edge = x * np.sin(turn) - y * np.cos(turn) - rng.uniform(-0.3, 0.3) * w
        shade = 1 - rng.uniform(0.2, 0.55) / (1 + np.exp(-edge / 6))
    lit = rgb * (rng.uniform(0.6, 1.3) * (1 + slope) * shade)[..., None] * warm
    return np.asarray(np.clip(lit + rng.normal(0, 0.012, (h, w, 1)), 0, 1))
