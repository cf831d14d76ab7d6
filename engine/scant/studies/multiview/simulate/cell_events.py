"""Simulated cell events: patches of a phase-contrast film in eight views.

A candidate is a patch of 52 x 52 pixels around a change, in three successive frames. In some a cell
divides (it rounds up, brightens and splits in two) or dies (it shrinks, brightens and falls to
pieces); in others a cell moves, rounds up without dividing, floating debris passes, or the focus
shifts. Sequences differ in light, contrast, noise and focus, like films, so that models train on
some of them and predict others.

The views are those of Kandemir & Hamprecht (2015), section 5.3: the histogram, local binary
patterns and gradients of the change from frame to frame, and the local binary patterns of the frame
itself; each for the last step and the step before. Gradients are histograms of oriented gradients
(4 x 4 cells of 8 directions, as in SIFT, which they replace).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.ndimage import gaussian_filter, rotate

from scant.data_dir import cached_table, generated_path
from scant.hardware import cores, on_all_cores
from scant.studies.aggregation.thinning import Seeded, thinned

VERSION = 1  # version of the films; raise it after changes, so that cached ones are not used
SIDE = 52
FRAMES = 3
SEQUENCES, CANDIDATES = 8, 60
BINS = 26  # bins of a histogram of changes
KINDS = {  # share of the candidates, and True for an event
    "divides": (0.20, True),
    "dies": (0.15, True),
    "moves": (0.16, False),
    "rounds up": (0.24, False),
    "debris": (0.13, False),
    "focus": (0.12, False),
}
MOST_PARTS = 10  # maximum number of discs in a patch
STEPS = {"": 2, "_before": 1}  # suffix of a view's name, and its frame
VIEWS = ("intensity", "texture", "change", "gradient")


@dataclass
class Film:
    """Shapes and positions of the discs of each patch in each frame.

    Attributes:
        at: Centers, in pixels from the middle of the patch.
        axes: Semi-axes of the ellipses, in pixels.
        turn: Directions of the ellipses, in radians.
        body: Brightness inside; below 0: darker than the background.
        halo: Brightness of the rim in phase contrast.
    """

    at: Float[np.ndarray, "n t k 2"]
    axes: Float[np.ndarray, "n t k 2"]
    turn: Float[np.ndarray, "n t k"]
    body: Float[np.ndarray, "n t k"]
    halo: Float[np.ndarray, "n t k"]


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """480 candidates of eight sequences.

    Returns:
        `label` ("event", "other"), `group` (the sequence), and 544 features `<view>.<feature>`.
    """
    path = generated_path(f"films-{VERSION}-{settings.data_seed}")
    return thinned(cached_table(path, lambda: candidates(settings.data_seed)), rows)


def candidates(seed: int = 0, sequences: int = SEQUENCES, each: int = CANDIDATES) -> pd.DataFrame:
    """Simulate `each` candidates in each of `sequences` sequences (see `demo`)."""
    rng = np.random.default_rng([seed, 21])
    kinds = np.array(list(KINDS))
    share = np.array([s for s, _ in KINDS.values()])
    kind = rng.choice(len(kinds), sequences * each, p=share / share.sum())
    sequence = np.repeat(np.arange(sequences), each)
    frames = patches(rng, kind, sequence)
    events = np.array([is_event for _, is_event in KINDS.values()])
    head = pd.DataFrame(
        {
            "label": np.where(events[kind], "event", "other").astype(object),
            "group": [f"sequence {s + 1}" for s in sequence],
        }
    )
    return pd.concat([head, views(frames)], axis=1)


def patches(
    rng: np.random.Generator, kind: Int[np.ndarray, " n"], sequence: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n t h w"]:
    """Gray frames of each candidate, from 0 (black) to 1 (white)."""
    film = _films(rng, kind)
    n, count = len(kind), int(sequence.max()) + 1
    light, contrast = rng.normal(0.45, 0.04, count), rng.uniform(0.75, 1.25, count)
    grain, blur = rng.uniform(0.006, 0.014, count), rng.uniform(0.8, 1.4, count)
    slope = rng.normal(0, 0.03, (n, 2))
    grid = np.linspace(-1, 1, SIDE)
    ground = slope[:, 0, None, None] * grid + slope[:, 1, None, None] * grid[:, None]
    # The focus is common to a frame; where it shifts, all rims change at once.
    focus = 1 + rng.normal(0, 0.06, (n, FRAMES))
    shifting = kind == list(KINDS).index("focus")
    focus[shifting, 2] += rng.choice([-1, 1], shifting.sum()) * rng.uniform(
        0.35, 0.7, shifting.sum()
    )
    cell_contrast = contrast[sequence] * np.exp(rng.normal(0, 0.3, n))  # cells differ in thickness
    patterns = draw(film, blur[sequence]) * (cell_contrast[:, None] * focus)[:, :, None, None]
    noise = rng.normal(0, 1, patterns.shape) * grain[sequence, None, None, None]
    images = (light[sequence, None, None] + ground)[:, None] + patterns + noise
    return np.asarray(np.clip(images, 0, 1))


def draw(film: Film, blur: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n t h w"]:
    """Brightness above the background: the body of each disc, and the halo along its rim."""
    n, t = film.turn.shape[:2]
    result = np.zeros((n, t, SIDE, SIDE))
    on_all_cores(
        lambda part: _draw(film, blur, part, result), np.array_split(np.arange(n), cores())
    )
    return result


def _draw(
    film: Film,
    blur: Float[np.ndarray, " n"],
    part: Int[np.ndarray, " m"],
    result: Float[np.ndarray, "n t h w"],
) -> None:
    grid = np.arange(SIDE) - (SIDE - 1) / 2
    for k in range(film.turn.shape[2]):
        present = (film.body[part, :, k] != 0) | (film.halo[part, :, k] != 0)
        visible = part[present.any(1)]
        if not len(visible):
            continue
        x = grid[None, None, None, :] - film.at[visible, :, k, 0, None, None]
        y = grid[None, None, :, None] - film.at[visible, :, k, 1, None, None]
        cos, sin = (f(film.turn[visible, :, k])[..., None, None] for f in (np.cos, np.sin))
        half_width, half_height = (film.axes[visible, :, k, i, None, None] for i in (0, 1))
        radius = np.sqrt(
            ((x * cos + y * sin) / half_width) ** 2 + ((y * cos - x * sin) / half_height) ** 2
        )
        # Approximate distance from the rim, in pixels.
        distance = (radius - 1) * np.sqrt(half_width * half_height)
        edge = blur[visible, None, None, None]
        inside = 1 / (1 + np.exp(np.clip(distance / (0.6 * edge), -50, 50)))
        rim = np.exp(-0.5 * ((distance - 0.8) / (1.1 * edge)) ** 2)
        result[visible] += film.body[visible, :, k, None, None] * inside
        result[visible] += film.halo[visible, :, k, None, None] * rim


def views(frames: Float[np.ndarray, "n t h w"]) -> pd.DataFrame:
    """Features of each candidate, `<view>.<feature>`."""
    from skimage.feature import hog, local_binary_pattern  # for workers: half a second to import

    def texture(image: Float[np.ndarray, "h w"]) -> Float[np.ndarray, " b"]:
        gray = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
        pattern = local_binary_pattern(gray, 8, 1, "nri_uniform").astype(int)
        return np.bincount(pattern.ravel(), minlength=59)[:58] / pattern.size

    def gradient(image: Float[np.ndarray, "h w"]) -> Float[np.ndarray, " b"]:
        cells = {"pixels_per_cell": (13, 13), "cells_per_block": (4, 4)}
        return np.asarray(hog(_upright(image), orientations=8, **cells))

    columns: dict[str, Float[np.ndarray, "n _"]] = {}
    edges = np.linspace(-0.5, 0.5, BINS + 1)
    for ending, t in STEPS.items():
        frame, change = frames[:, t], frames[:, t] - frames[:, t - 1]
        bins = np.clip(np.digitize(change, edges) - 1, 0, BINS - 1).reshape(len(frames), -1)
        count = np.stack([(bins == b).sum(1) for b in range(BINS)], axis=1)
        columns[f"intensity{ending}"] = np.log1p(count)
        columns[f"texture{ending}"] = np.stack(on_all_cores(texture, frame))
        columns[f"change{ending}"] = np.stack(on_all_cores(texture, 0.5 + change))
        columns[f"gradient{ending}"] = np.stack(on_all_cores(gradient, change))
    return pd.concat(
        [
            pd.DataFrame(values, columns=[f"{view}.f{i:03}" for i in range(values.shape[1])])
            for view, values in columns.items()
        ],
        axis=1,
    ).round(4)


def _upright(image: Float[np.ndarray, "h w"]) -> Float[np.ndarray, "h w"]:
    """Rotate a patch to a common direction of its edges, as SIFT does."""
    grid = np.linspace(-2, 2, SIDE)
    window = np.exp(-0.5 * (grid[:, None] ** 2 + grid**2))
    gradient_y, gradient_x = np.gradient(gaussian_filter(image, 1.0))
    xx, yy, xy = (
        (window * v).sum() for v in (gradient_x**2, gradient_y**2, gradient_x * gradient_y)
    )
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    return np.asarray(rotate(image, np.degrees(angle), reshape=False, order=1, mode="nearest"))


# --- simulated discs ------------------------------------------------------------------------------


def _films(rng: np.random.Generator, kind: Int[np.ndarray, " n"]) -> Film:
    n = len(kind)
    shape = (n, FRAMES, MOST_PARTS)
    film = Film(
        at=np.zeros((*shape, 2)),
        axes=np.full((*shape, 2), 5.0),
        turn=np.zeros(shape),
        body=np.zeros(shape),
        halo=np.zeros(shape),
    )
    _neighbors(rng, film)
    simulators = {
        "divides": _divides,
        "dies": _dies,
        "moves": _moves,
        "rounds up": _rounds_up,
        "debris": _debris,
        "focus": _moves,
    }
    for i, name in enumerate(KINDS):
        rows = np.flatnonzero(kind == i)
        if len(rows):
            simulators[name](rng, film, rows, 0.25 if name == "focus" else 1.0)
    return film


def _set(film: Film, rows: Int[np.ndarray, " m"], k: int | slice, **values: np.ndarray) -> None:
    for name, value in values.items():
        getattr(film, name)[rows, :, k] = value


def _neighbors(rng: np.random.Generator, film: Film) -> None:
    """Up to three slowly drifting flat cells around the middle."""
    n = len(film.turn)
    angle = rng.uniform(0, 2 * np.pi, (n, 3))
    distance = rng.uniform(16, 30, (n, 3))
    center = (distance * np.stack([np.cos(angle), np.sin(angle)])).transpose(1, 2, 0)
    drift = np.cumsum(rng.normal(0, 0.8, (n, FRAMES, 3, 2)), axis=1)
    present = rng.uniform(size=(n, 1, 3)) < 0.6
    all_rows = np.arange(n)
    _set(film, all_rows, slice(7, 10), at=center[:, None] + drift)
    _set(film, all_rows, slice(7, 10), axes=rng.uniform(5, 10, (n, 1, 3, 2)))
    _set(film, all_rows, slice(7, 10), turn=rng.uniform(0, np.pi, (n, 1, 3)))
    _set(film, all_rows, slice(7, 10), body=-1.0 * present * rng.uniform(0.04, 0.10, (n, 1, 3)))
    _set(film, all_rows, slice(7, 10), halo=present * rng.uniform(0.05, 0.12, (n, 1, 3)))


def _flat(rng: np.random.Generator, film: Film, rows: Int[np.ndarray, " m"], pace: float) -> None:
    """A drifting flat cell, dark within a faint rim."""
    m = len(rows)
    drift = np.cumsum(rng.normal(0, 1.0 * pace, (m, FRAMES, 2)), axis=1)
    _set(film, rows, 0, at=rng.normal(0, 2, (m, 1, 2)) + drift)
    axes = rng.uniform(6, 11, (m, 1, 2)) * (1 + rng.normal(0, 0.03, (m, FRAMES, 2)))
    _set(film, rows, 0, axes=axes, turn=rng.uniform(0, np.pi, (m, 1)))
    _set(film, rows, 0, body=-rng.uniform(0.05, 0.11, (m, 1)) * np.ones((m, FRAMES)))
    _set(film, rows, 0, halo=rng.uniform(0.06, 0.13, (m, 1)) * np.ones((m, FRAMES)))


def _moves(rng: np.random.Generator, film: Film, rows: Int[np.ndarray, " m"], pace: float) -> None:
    """A flat cell that moves or stretches."""
    _flat(rng, film, rows, 3.5 * pace)
    film.axes[rows, 2, 0] *= np.exp(rng.normal(0, 0.22 * pace, (len(rows), 2)))


def _round(
    rng: np.random.Generator,
    film: Film,
    rows: Int[np.ndarray, " m"],
    k: int,
    t: int,
    amount: np.ndarray,
) -> None:
    """Turn disc k into a bright ball if `amount` is 1, or leave it unchanged if it is 0."""
    size = rng.uniform(4.0, 6.0, (len(rows), 1))
    film.axes[rows, t, k] += amount[:, None] * (size - film.axes[rows, t, k])
    film.body[rows, t, k] += amount * (rng.uniform(0.05, 0.22, len(rows)) - film.body[rows, t, k])
    film.halo[rows, t, k] += amount * (rng.uniform(0.22, 0.40, len(rows)) - film.halo[rows, t, k])


def _divides(
    rng: np.random.Generator, film: Film, rows: Int[np.ndarray, " m"], pace: float
) -> None:
    """A cell rounds up, and in the last frame is a pair of balls, separate or touching."""
    _flat(rng, film, rows, pace)
    m = len(rows)
    _round(rng, film, rows, 0, 0, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.3))
    _round(rng, film, rows, 0, 1, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.5))
    _set(film, rows, 1, at=film.at[rows, :, 0], axes=film.axes[rows, :, 0])
    _round(rng, film, rows, 0, 2, np.ones(m))
    _round(rng, film, rows, 1, 2, np.ones(m))
    angle = rng.uniform(0, np.pi, m)
    offset = rng.uniform(2.8, 6.5, m)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    film.axes[rows, 2, :2] *= rng.uniform(0.65, 0.85, (m, 1, 1))
    film.at[rows, 2, 1] = film.at[rows, 2, 0] - offset
    film.at[rows, 2, 0] += offset


def _dies(rng: np.random.Generator, film: Film, rows: Int[np.ndarray, " m"], pace: float) -> None:
    """A cell shrinks to a bright ball, and in the last frame has fallen to bright pieces."""
    _flat(rng, film, rows, pace)
    m = len(rows)
    _round(rng, film, rows, 0, 1, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.5))
    _round(rng, film, rows, 0, 2, np.ones(m))
    film.axes[rows, 2, 0] *= rng.uniform(0.4, 0.75, (m, 1))
    pieces = rng.integers(2, 6, m)
    for k in range(1, 6):
        subset = rows[pieces >= k]
        angle, distance = rng.uniform(0, 2 * np.pi, len(subset)), rng.uniform(3.5, 8.0, len(subset))
        offset = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        film.at[subset, 2, k] = film.at[subset, 2, 0] + offset
        film.axes[subset, 2, k] = rng.uniform(1.2, 2.6, (len(subset), 1))
        film.body[subset, 2, k] = rng.uniform(0.05, 0.20, len(subset))
        film.halo[subset, 2, k] = rng.uniform(0.02, 0.15, len(subset))


def _rounds_up(
    rng: np.random.Generator, film: Film, rows: Int[np.ndarray, " m"], pace: float
) -> None:
    """A single bright ball in the last frame, or one that flattens again: no event."""
    _flat(rng, film, rows, pace)
    m = len(rows)
    stays_round = rng.uniform(size=m) < 0.75
    _round(rng, film, rows, 0, 0, np.where(stays_round, 0.0, rng.uniform(0.3, 1, m)))
    _round(rng, film, rows, 0, 1, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.6))
    _round(rng, film, rows, 0, 2, np.where(stays_round, 1.0, rng.uniform(0, 0.4, m)))
    # A ball that stays round is as large as two.
    film.axes[rows, 2, 0] *= np.where(stays_round, rng.uniform(1.0, 1.5, m), 1.0)[:, None]


def _debris(rng: np.random.Generator, film: Film, rows: Int[np.ndarray, " m"], pace: float) -> None:
    """One or two small bright specks that float past a flat cell."""
    _flat(rng, film, rows, pace)
    for k in (1, 2):
        subset = rows if k == 1 else rows[rng.uniform(size=len(rows)) < 0.5]
        m = len(subset)
        motion = rng.normal(0, 7.0, (m, 1, 2)) * np.arange(FRAMES)[:, None]
        _set(film, subset, k, at=rng.normal(0, 6, (m, 1, 2)) + motion)
        _set(film, subset, k, axes=rng.uniform(1.2, 3.5, (m, 1, 2)) * np.ones((m, FRAMES, 2)))
        _set(film, subset, k, body=rng.uniform(0.10, 0.35, (m, 1)) * np.ones((m, FRAMES)))
        _set(film, subset, k, halo=rng.uniform(0.05, 0.25, (m, 1)) * np.ones((m, FRAMES)))
