"""Alphabets of random strokes: characters by many people, some alphabets of one family.

A character is two or three strokes at random positions; a stroke is a natural cubic spline through
four knots. Each alphabet draws its strokes from a stock, and alphabets of one family share most of
it, like related scripts. A person writes all characters of an alphabet with the same pen width,
slant, stretch and smooth bending, but each drawing differs: knots and strokes move a little. Images
have 105 x 105 pixels as in Omniglot (Lake, Salakhutdinov & Tenenbaum 2015), anti-aliased, 1 ink and
0 paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.interpolate import CubicSpline

from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.omniglot.table import Characters, area

SIDE = 105
DRAWERS = 20
KNOTS = 4
POINTS = 72  # points along a stroke: closer than the width of the pen
DEMO = {"Anu": (0, 12), "Bel": (0, 12), "Cor": (1, 10)}  # family and number of characters
_CHUNK = 128  # drawings that are rendered at once


@dataclass(frozen=True)
class Variation:
    """Variation of drawings, as shares of the character's size except for the pen.

    Attributes:
        knots: Deviation of a knot between drawings.
        places: Deviation of a stroke's position between drawings.
        shift: Deviation of a drawing's position on the paper.
        slant: Deviation of a person's shear, and of the turn (radians).
        bend: Deviation of a person's smooth deformation.
        pen: Least and greatest radius of the pen, in pixels.
    """

    knots: float = 0.06
    places: float = 0.06
    shift: float = 0.15
    slant: float = 0.22
    bend: float = 0.05
    pen: tuple[float, float] = (1.4, 1.9)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Three alphabets at 20 x 20 pixels, two of them related; 34 characters by 20 people.

    Returns:
        `output` (alphabet), `label` (character), `p0 … p399`.
    """
    return _table(settings.data_seed, 20, rows)


def full(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """The demonstration's drawings at full resolution, 105 x 105 pixels."""
    return _table(settings.data_seed, SIDE, rows)


def alphabets(
    seed: int = 0,
    size: int = 20,
    *,
    sizes: dict[str, tuple[int, int]] | None = None,
    drawers: int = DRAWERS,
    variation: Variation | None = None,
) -> Characters:
    """Drawings of all characters by all drawers, in that order.

    Args:
        seed: Seed of characters, people and drawings.
        size: Pixels of a side, after averages of the 105 by area.
        sizes: Family and number of characters of each alphabet, by its name.
        drawers: Number of people.
        variation: Variation of drawings.
    """
    rng = np.random.default_rng([seed, 5])
    chosen = DEMO if sizes is None else sizes
    knots, strokes = _characters(rng, chosen)
    curves = _written(rng, knots, drawers, variation or Variation())
    pens = np.tile(rng.uniform(*(variation or Variation()).pen, drawers), len(knots))
    images = np.empty((len(pens), size, size))
    for begin in range(0, len(pens), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        n_strokes = np.repeat(strokes, drawers)[part]
        images[part] = area(ink(curves[part], n_strokes, pens[part]), size)
    counts = [count for _, count in chosen.values()]
    number = np.arange(len(knots)).repeat(drawers)
    output = np.arange(len(counts)).repeat(np.multiply(counts, drawers))
    first = np.cumsum([0, *counts])[:-1]
    return Characters(
        outputs=list(chosen),
        classes=[[f"{name} {i + 1}" for i in range(n)] for name, n in zip(chosen, counts)],
        output=output,
        label=number - first[output],
        x=images.reshape(len(images), -1),
        features=[f"p{i}" for i in range(size * size)],
    )


def ink(
    curves: Float[np.ndarray, "n s t 2"],
    strokes: Int[np.ndarray, " n"],
    pens: Float[np.ndarray, " n"],
) -> Float[np.ndarray, "n h w"]:
    """Curves drawn with round pens: each pixel's ink falls from 1 to 0 over the pen's edge.

    Args:
        curves: Points (x, y) along each stroke, in pixels.
        strokes: Number of strokes of each drawing; further ones are not drawn.
        pens: Radii, in pixels.
    """
    n, s, t, _ = curves.shape
    reach = int(np.ceil(pens.max() + 0.5))
    steps = np.arange(-reach, reach + 1)
    present = np.arange(s)[None, :] < strokes[:, None]
    drawing_of_stroke, stroke = np.nonzero(present)
    points = (
        np.clip(curves[drawing_of_stroke, stroke], reach, SIDE - 1 - reach)
        .reshape(-1, 2)
        .astype(np.float32)
    )
    drawing = drawing_of_stroke.repeat(t)
    pixel = np.round(points).astype(np.int64)
    across = (pixel[:, :1] + steps - points[:, :1]) ** 2
    down = (pixel[:, 1:] + steps - points[:, 1:]) ** 2
    distance = np.sqrt(down[:, :, None] + across[:, None, :])
    shade = np.clip(pens.astype(np.float32)[drawing, None, None] + np.float32(0.5) - distance, 0, 1)
    index = (
        (drawing * SIDE * SIDE)[:, None, None]
        + (pixel[:, 1:] + steps)[:, :, None] * SIDE
        + (pixel[:, :1] + steps)[:, None, :]
    )
    paper = np.zeros(n * SIDE * SIDE, dtype=np.float32)
    np.maximum.at(paper, index.ravel(), shade.ravel())
    return paper.reshape(n, SIDE, SIDE).astype(np.float64)


def _table(seed: int, size: int, rows: int | None) -> pd.DataFrame:
    return thinned(alphabets(seed, size).frame().round(3), rows)


def _characters(
    rng: np.random.Generator, chosen: dict[str, tuple[int, int]]
) -> tuple[Float[np.ndarray, "c s k 2"], Int[np.ndarray, " c"]]:
    """Knots of each character's strokes within [-1, 1], and its number of strokes."""
    stocks = {family: _stock(rng, 7) for family in {f: None for f, _ in chosen.values()}}
    knots, strokes = [], []
    for family, count in chosen.values():
        stock = np.concatenate([stocks[family], _stock(rng, 3)])
        for _ in range(count):
            choice = rng.choice(len(stock), 3, replace=False)
            positions = rng.uniform(-0.4, 0.4, (3, 1, 2))
            mirrored = rng.choice([-1.0, 1.0], (3, 1, 2))  # a stroke may be mirrored
            character = stock[choice] * mirrored + positions
            n_strokes = int(rng.integers(2, 4))
            knots.append(_fitted(character, n_strokes))
            strokes.append(n_strokes)
    return np.array(knots), np.array(strokes)


def _fitted(knots: Float[np.ndarray, "s k 2"], n_strokes: int) -> Float[np.ndarray, "s k 2"]:
    """Move and scale a character to fill the square."""
    points = knots[:n_strokes].reshape(-1, 2)
    low, high = points.min(0), points.max(0)
    return np.asarray((knots - (low + high) / 2) * (1.6 / (high - low).max()))


def _stock(rng: np.random.Generator, count: int) -> Float[np.ndarray, "count k 2"]:
    """Strokes about the origin: random walks with turning directions."""
    turn = np.cumsum(rng.normal(0, 1.1, (count, KNOTS - 1)), axis=1)
    heading = rng.uniform(0, 2 * np.pi, (count, 1)) + turn
    length = rng.uniform(0.35, 0.7, (count, KNOTS - 1, 1))
    steps = length * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    knots = np.concatenate([np.zeros((count, 1, 2)), np.cumsum(steps, axis=1)], axis=1)
    return np.asarray(knots - knots.mean(axis=1, keepdims=True))


def _written(
    rng: np.random.Generator, knots: Float[np.ndarray, "c s k 2"], drawers: int, v: Variation
) -> Float[np.ndarray, "n s t 2"]:
    """Points along the strokes of each drawing, in pixels; drawers change fastest."""
    c, s = knots.shape[:2]
    varied = knots[:, None] + rng.normal(0, v.knots, (c, drawers, s, KNOTS, 2))
    varied = varied + rng.normal(0, v.places, (c, drawers, s, 1, 2))
    t = np.linspace(0, KNOTS - 1, POINTS)
    basis = CubicSpline(np.arange(KNOTS), np.eye(KNOTS), bc_type="natural")(t)
    curves = basis @ varied  # [c, drawers, s, t, 2]
    bent = curves + _bending(rng, drawers, v.bend, curves)
    turn, shear = rng.normal(0, v.slant / 2, drawers), rng.normal(0, v.slant, drawers)
    stretch = np.exp(rng.normal(0, 0.1, (drawers, 2)))
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    slant = np.stack([np.ones(drawers), np.zeros(drawers), shear, np.ones(drawers)])
    matrix = np.moveaxis(rotation, 2, 0) @ slant.T.reshape(drawers, 2, 2) * stretch[:, None]
    turned = np.einsum("cdstx,dxy->cdsty", bent, matrix)
    moved = turned + rng.normal(0, v.shift, (c, drawers, 1, 1, 2))
    return np.asarray((moved * 0.42 + 0.5).reshape(c * drawers, s, POINTS, 2) * (SIDE - 1))


def _bending(
    rng: np.random.Generator, drawers: int, bend: float, points: Float[np.ndarray, "c d s t 2"]
) -> Float[np.ndarray, "c d s t 2"]:
    """Smooth displacements for each drawer: a few waves longer than half the paper."""
    waves = 4
    frequency = rng.normal(0, 1.5, (drawers, 2, waves))
    phase = rng.uniform(0, 2 * np.pi, (drawers, waves))
    amplitude = rng.normal(0, bend, (drawers, waves, 2))
    angle = np.einsum("cdstx,dxw->cdstw", points, frequency) + phase[None, :, None, None]
    return np.einsum("cdstw,dwx->cdstx", np.sin(angle), amplitude)
