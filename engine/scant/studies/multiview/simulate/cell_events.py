"""Simulated cell events: patches of a phase-contrast film in eight views.

A candidate is a patch of 52 x 52 pixels about something that has changed, in three frames that
follow each other. In some a cell divides (it rounds up, brightens and parts in two) or dies (it
shrinks, brightens and falls to pieces); in others a cell only moves, rounds up and thinks better of
it, floating debris passes, or the focus shifts. Sequences differ in light, contrast, noise and
focus, as films do, so that one learns from some of them and is asked of others.

The views are those of Kandemir & Hamprecht (2015), section 5.3: of the change from frame to frame
its histogram, its local binary patterns and its gradients, and the local binary patterns of the
frame itself; each of the last step and of the step before. Gradients are histograms of oriented
gradients (4 x 4 cells of 8 directions, as in SIFT, which they stand in for).
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

VERSION = 1  # of the films: raise it when they change, and those kept are forgotten
SIDE = 52
FRAMES = 3
SEQUENCES, CANDIDATES = 8, 60
BINS = 26  # of a histogram of changes
KINDS = {  # share of the candidates, and whether it is an event
    "divides": (0.20, True),
    "dies": (0.15, True),
    "moves": (0.16, False),
    "rounds up": (0.24, False),
    "debris": (0.13, False),
    "focus": (0.12, False),
}
MOST_PARTS = 10  # discs that a patch is drawn of
STEPS = {"": 2, "_before": 1}  # ending of a view's name, and the frame that it is of
VIEWS = ("intensity", "texture", "change", "gradient")


@dataclass
class Film:
    """Discs of every patch in every frame: what is drawn, and where.

    Attributes:
        at: Centres, in pixels from the middle of the patch.
        axes: Half-axes of the ellipses, in pixels.
        turn: Their directions, in radians.
        body: Brightness inside: below 0 darker than the ground.
        halo: Brightness of the rim that phase contrast gives.
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
    """The table of so many candidates in each of so many sequences (see `demo`)."""
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
    """Gray frames of every candidate, 0 black and 1 white."""
    film = _films(rng, kind)
    n, count = len(kind), int(sequence.max()) + 1
    light, contrast = rng.normal(0.45, 0.04, count), rng.uniform(0.75, 1.25, count)
    grain, blur = rng.uniform(0.006, 0.014, count), rng.uniform(0.8, 1.4, count)
    slope = rng.normal(0, 0.03, (n, 2))
    grid = np.linspace(-1, 1, SIDE)
    ground = slope[:, 0, None, None] * grid + slope[:, 1, None, None] * grid[:, None]
    # The focus goes with the frame; where it shifts the rims change all at once.
    focus = 1 + rng.normal(0, 0.06, (n, FRAMES))
    shifting = kind == list(KINDS).index("focus")
    focus[shifting, 2] += rng.choice([-1, 1], shifting.sum()) * rng.uniform(
        0.35, 0.7, shifting.sum()
    )
    own = contrast[sequence] * np.exp(rng.normal(0, 0.3, n))  # cells differ in thickness
    drawn = draw(film, blur[sequence]) * (own[:, None] * focus)[:, :, None, None]
    noise = rng.normal(0, 1, drawn.shape) * grain[sequence, None, None, None]
    made = (light[sequence, None, None] + ground)[:, None] + drawn + noise
    return np.asarray(np.clip(made, 0, 1))


def draw(film: Film, blur: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n t h w"]:
    """Brightness above the ground: each disc's body inside its rim, and the halo along it."""
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
        observed = (film.body[part, :, k] != 0) | (film.halo[part, :, k] != 0)
        own = part[observed.any(1)]
        if not len(own):
            continue
        x = grid[None, None, None, :] - film.at[own, :, k, 0, None, None]
        y = grid[None, None, :, None] - film.at[own, :, k, 1, None, None]
        cos, sin = (f(film.turn[own, :, k])[..., None, None] for f in (np.cos, np.sin))
        wide, high = (film.axes[own, :, k, i, None, None] for i in (0, 1))
        radius = np.sqrt(((x * cos + y * sin) / wide) ** 2 + ((y * cos - x * sin) / high) ** 2)
        away = (radius - 1) * np.sqrt(wide * high)  # about the distance from the rim, in pixels
        edge = blur[own, None, None, None]
        inside = 1 / (1 + np.exp(np.clip(away / (0.6 * edge), -50, 50)))
        rim = np.exp(-0.5 * ((away - 0.8) / (1.1 * edge)) ** 2)
        result[own] += film.body[own, :, k, None, None] * inside
        result[own] += film.halo[own, :, k, None, None] * rim


def views(frames: Float[np.ndarray, "n t h w"]) -> pd.DataFrame:
    """The features of every candidate, `<view>.<feature>`."""
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
        now, change = frames[:, t], frames[:, t] - frames[:, t - 1]
        place = np.clip(np.digitize(change, edges) - 1, 0, BINS - 1).reshape(len(frames), -1)
        count = np.stack([(place == b).sum(1) for b in range(BINS)], axis=1)
        columns[f"intensity{ending}"] = np.log1p(count)
        columns[f"texture{ending}"] = np.stack(on_all_cores(texture, now))
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
    """A patch turned so that its edges run along the same way, as SIFT turns its patches."""
    grid = np.linspace(-2, 2, SIDE)
    near = np.exp(-0.5 * (grid[:, None] ** 2 + grid**2))
    down, across = np.gradient(gaussian_filter(image, 1.0))
    xx, yy, xy = ((near * v).sum() for v in (across**2, down**2, across * down))
    angle = 0.5 * np.arctan2(2 * xy, xx - yy)
    return np.asarray(rotate(image, np.degrees(angle), reshape=False, order=1, mode="nearest"))


# --- what is seen ---------------------------------------------------------------------------------


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
    stories = {
        "divides": _divides,
        "dies": _dies,
        "moves": _moves,
        "rounds up": _rounds_up,
        "debris": _debris,
        "focus": _moves,
    }
    for i, name in enumerate(KINDS):
        own = np.flatnonzero(kind == i)
        if len(own):
            stories[name](rng, film, own, 0.25 if name == "focus" else 1.0)
    return film


def _put(film: Film, own: Int[np.ndarray, " m"], k: int | slice, **values: np.ndarray) -> None:
    for name, value in values.items():
        getattr(film, name)[own, :, k] = value


def _neighbors(rng: np.random.Generator, film: Film) -> None:
    """Up to three flat cells about the middle, which drift a little."""
    n = len(film.turn)
    way = rng.uniform(0, 2 * np.pi, (n, 3))
    far = rng.uniform(16, 30, (n, 3))
    at = (far * np.stack([np.cos(way), np.sin(way)])).transpose(1, 2, 0)
    drift = np.cumsum(rng.normal(0, 0.8, (n, FRAMES, 3, 2)), axis=1)
    there = rng.uniform(size=(n, 1, 3)) < 0.6
    every = np.arange(n)
    _put(film, every, slice(7, 10), at=at[:, None] + drift)
    _put(film, every, slice(7, 10), axes=rng.uniform(5, 10, (n, 1, 3, 2)))
    _put(film, every, slice(7, 10), turn=rng.uniform(0, np.pi, (n, 1, 3)))
    _put(film, every, slice(7, 10), body=-1.0 * there * rng.uniform(0.04, 0.10, (n, 1, 3)))
    _put(film, every, slice(7, 10), halo=there * rng.uniform(0.05, 0.12, (n, 1, 3)))


def _flat(rng: np.random.Generator, film: Film, own: Int[np.ndarray, " m"], pace: float) -> None:
    """A cell that lies flat, dark within a faint rim, and drifts."""
    m = len(own)
    drift = np.cumsum(rng.normal(0, 1.0 * pace, (m, FRAMES, 2)), axis=1)
    _put(film, own, 0, at=rng.normal(0, 2, (m, 1, 2)) + drift)
    axes = rng.uniform(6, 11, (m, 1, 2)) * (1 + rng.normal(0, 0.03, (m, FRAMES, 2)))
    _put(film, own, 0, axes=axes, turn=rng.uniform(0, np.pi, (m, 1)))
    _put(film, own, 0, body=-rng.uniform(0.05, 0.11, (m, 1)) * np.ones((m, FRAMES)))
    _put(film, own, 0, halo=rng.uniform(0.06, 0.13, (m, 1)) * np.ones((m, FRAMES)))


def _moves(rng: np.random.Generator, film: Film, own: Int[np.ndarray, " m"], pace: float) -> None:
    """A flat cell that goes or stretches."""
    _flat(rng, film, own, 3.5 * pace)
    film.axes[own, 2, 0] *= np.exp(rng.normal(0, 0.22 * pace, (len(own), 2)))


def _round(
    rng: np.random.Generator,
    film: Film,
    own: Int[np.ndarray, " m"],
    k: int,
    t: int,
    much: np.ndarray,
) -> None:
    """A part as a bright ball, where `much` is 1, or as it was, where it is 0."""
    size = rng.uniform(4.0, 6.0, (len(own), 1))
    film.axes[own, t, k] += much[:, None] * (size - film.axes[own, t, k])
    film.body[own, t, k] += much * (rng.uniform(0.05, 0.22, len(own)) - film.body[own, t, k])
    film.halo[own, t, k] += much * (rng.uniform(0.22, 0.40, len(own)) - film.halo[own, t, k])


def _divides(rng: np.random.Generator, film: Film, own: Int[np.ndarray, " m"], pace: float) -> None:
    """It rounds up, and in the last frame is a pair of balls, apart or still touching."""
    _flat(rng, film, own, pace)
    m = len(own)
    _round(rng, film, own, 0, 0, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.3))
    _round(rng, film, own, 0, 1, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.5))
    _put(film, own, 1, at=film.at[own, :, 0], axes=film.axes[own, :, 0])
    _round(rng, film, own, 0, 2, np.ones(m))
    _round(rng, film, own, 1, 2, np.ones(m))
    way = rng.uniform(0, np.pi, m)
    apart = rng.uniform(2.8, 6.5, m)[:, None] * np.stack([np.cos(way), np.sin(way)], axis=1)
    film.axes[own, 2, :2] *= rng.uniform(0.65, 0.85, (m, 1, 1))
    film.at[own, 2, 1] = film.at[own, 2, 0] - apart
    film.at[own, 2, 0] += apart


def _dies(rng: np.random.Generator, film: Film, own: Int[np.ndarray, " m"], pace: float) -> None:
    """It shrinks to a bright ball, and in the last frame has fallen to small bright pieces."""
    _flat(rng, film, own, pace)
    m = len(own)
    _round(rng, film, own, 0, 1, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.5))
    _round(rng, film, own, 0, 2, np.ones(m))
    film.axes[own, 2, 0] *= rng.uniform(0.4, 0.75, (m, 1))
    pieces = rng.integers(2, 6, m)
    for k in range(1, 6):
        some = own[pieces >= k]
        way, far = rng.uniform(0, 2 * np.pi, len(some)), rng.uniform(3.5, 8.0, len(some))
        off = far[:, None] * np.stack([np.cos(way), np.sin(way)], axis=1)
        film.at[some, 2, k] = film.at[some, 2, 0] + off
        film.axes[some, 2, k] = rng.uniform(1.2, 2.6, (len(some), 1))
        film.body[some, 2, k] = rng.uniform(0.05, 0.20, len(some))
        film.halo[some, 2, k] = rng.uniform(0.02, 0.15, len(some))


def _rounds_up(
    rng: np.random.Generator, film: Film, own: Int[np.ndarray, " m"], pace: float
) -> None:
    """A single bright ball in the last frame, or one that lies down again: nothing has happened."""
    _flat(rng, film, own, pace)
    m = len(own)
    up = rng.uniform(size=m) < 0.75
    _round(rng, film, own, 0, 0, np.where(up, 0.0, rng.uniform(0.3, 1, m)))
    _round(rng, film, own, 0, 1, rng.uniform(0, 1, m) * (rng.uniform(size=m) < 0.6))
    _round(rng, film, own, 0, 2, np.where(up, 1.0, rng.uniform(0, 0.4, m)))
    film.axes[own, 2, 0] *= np.where(up, rng.uniform(1.0, 1.5, m), 1.0)[:, None]  # as large as two


def _debris(rng: np.random.Generator, film: Film, own: Int[np.ndarray, " m"], pace: float) -> None:
    """A small bright speck, or two, that floats past a flat cell."""
    _flat(rng, film, own, pace)
    for k in (1, 2):
        some = own if k == 1 else own[rng.uniform(size=len(own)) < 0.5]
        m = len(some)
        going = rng.normal(0, 7.0, (m, 1, 2)) * np.arange(FRAMES)[:, None]
        _put(film, some, k, at=rng.normal(0, 6, (m, 1, 2)) + going)
        _put(film, some, k, axes=rng.uniform(1.2, 3.5, (m, 1, 2)) * np.ones((m, FRAMES, 2)))
        _put(film, some, k, body=rng.uniform(0.10, 0.35, (m, 1)) * np.ones((m, FRAMES)))
        _put(film, some, k, halo=rng.uniform(0.05, 0.25, (m, 1)) * np.ones((m, FRAMES)))
