"""Invented cells in gray: few that divide among many that do not, on slides of their own stain.

A patch has 30 x 30 pixels in [0, 1], dark on light as under the microscope, and one cell about its
center. Cells that divide are dark and ragged, without a membrane: a plate seen from its side, two
plates that part, a clump. Others are round nuclei with a membrane and grains; some are hard to tell
from dividing ones: small and black (lymphocytes, dying cells), or long and dark (fibroblasts).
Nuisance: any rotation, a place off the center, other nuclei at the edge, and each slide has stain,
light and focus of its own. After Yousefi (2021), Figs. 3.2, 3.3 and 3.6; nothing of them is copied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.fft import fftfreq, irfft2, rfft2, rfftfreq

from scant.studies.aggregation.thinning import Seeded, thinned
from scant.studies.mitosis.table import LabeledImages

SIDE = 30
CLASSES = ["mitosis", "other"]
HARMONICS = 5  # of an outline
_CHUNK = 1024  # patches that are drawn at once


@dataclass(frozen=True)
class Look:
    """How hard the cells are to tell apart.

    Attributes:
        black: Share of small black nuclei among the others.
        long: Share of long dark nuclei among them.
        stain: Deviation of a slide's darkness (of its logarithm).
        blur: Least and greatest deviation of a slide's focus, in pixels.
        noise: Deviation of a pixel.
        clump: Share of clumps among the dividing; they look most like black nuclei.
    """

    black: float = 0.08
    long: float = 0.08
    stain: float = 0.10
    blur: tuple[float, float] = (0.7, 1.3)
    noise: float = 0.025
    clump: float = 0.25


EASY = Look()
HARD = Look(black=0.16, long=0.16, stain=0.2, blur=(0.9, 1.7), noise=0.04, clump=0.4)


def demo(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """120 dividing cells and 1,200 others on 24 slides.

    Returns:
        `label` (mitosis, other), `group` (slide), `p0 … p899`.
    """
    return _table(cells(settings.data_seed, 24, (5, 50), EASY), rows)


def hard(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """The same numbers; more of the others resemble dividing cells, stain and focus vary more."""
    return _table(cells(settings.data_seed, 24, (5, 50), HARD), rows)


def large(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """550 dividing cells and 6,500 others on 50 slides: about as many as the publication's."""
    return _table(cells(settings.data_seed, 50, (11, 130), EASY), rows)


def phases(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Three classes: 1,000 others, 100 plates seen from the side and 40 pairs of plates."""
    made = cells(settings.data_seed, 20, (7, 50), Look(clump=0.0), apart=(2, 5))
    return _table(made, rows)


def cells(
    seed: int,
    slides: int,
    each: tuple[int, int],
    look: Look = EASY,
    apart: tuple[int, int] | None = None,
) -> LabeledImages:
    """Patches of some slides.

    Args:
        seed: Of slides and cells.
        slides: How many.
        each: Dividing cells and others of a slide.
        look: How hard they are to tell apart.
        apart: Make the phases classes of their own: pairs of plates and single plates of a slide,
            which add up to its dividing cells.
    """
    rng = np.random.default_rng([seed, 31])
    kinds, label = [], []
    for _ in range(slides):
        if apart is None:
            dividing = _mixed(rng, each[0], {2: look.clump, 1: 0.45 * (1 - look.clump)})
            own = np.zeros(each[0], dtype=int)
        else:
            dividing = np.repeat([1, 0], apart)
            own = np.repeat([1, 0], apart)
        kinds += [dividing, 3 + _mixed(rng, each[1], {1: look.black, 2: look.long})]
        label += [own, np.full(each[1], 1 if apart is None else 2)]
    kind, labels = np.concatenate(kinds), np.concatenate(label)
    group = np.repeat(np.arange(slides), sum(each))
    stain = np.exp(rng.normal(0, look.stain, slides))
    light, focus = rng.uniform(0.78, 0.92, slides), rng.uniform(*look.blur, slides)
    images = np.empty((len(kind), SIDE, SIDE))
    for begin in range(0, len(kind), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        own = group[part]
        drawn = _scene(rng, kind[part])
        drawn = light[own, None, None] - drawn * stain[own, None, None] * 0.62
        drawn = _blurred(drawn, focus[own] * rng.uniform(0.9, 1.2, len(own)))
        images[part] = np.clip(drawn + rng.normal(0, look.noise, drawn.shape), 0, 1)
    order = rng.permutation(len(kind))
    names = CLASSES if apart is None else ["plate", "pair of plates", "other"]
    return LabeledImages(
        classes=names,
        label=labels[order],
        groups=[f"slide {g + 1}" for g in range(slides)],
        group=group[order],
        x=images[order].reshape(len(kind), -1),
        features=[f"p{i}" for i in range(SIDE * SIDE)],
    )


def _table(made: LabeledImages, rows: int | None) -> pd.DataFrame:
    return thinned(made.frame().round(3), rows)


def _mixed(
    rng: np.random.Generator, count: int, shares: dict[int, float]
) -> Int[np.ndarray, " count"]:
    """Kinds at random: those of `shares`, and 0 for all else."""
    rest = 1 - sum(shares.values())
    return rng.choice([0, *shares], count, p=[rest, *shares.values()])


def _scene(rng: np.random.Generator, kind: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n h w"]:
    """Stain of whole patches: 0 none, about 1 what is black. Kinds: `_SHAPES`."""
    n = len(kind)
    fields = _grain(rng, n, 3.0)
    stain = 0.2 + 0.12 * _grain(rng, n, 4.0) + 0.05 * fields  # cytoplasm
    for _ in range(2):  # nuclei at the edge, cut off by it
        angle = rng.uniform(0, 2 * np.pi, n)
        away = rng.uniform(15, 22, n)
        at = np.stack([away * np.cos(angle), away * np.sin(angle)], 1)
        stain = np.maximum(stain, _nucleus(rng, np.full(n, 3), at))
    halo = np.isin(kind, (0, 1, 2))
    at = rng.normal(0, 0.8, (n, 2))
    clear = 1 - 0.55 * halo[:, None, None] * _inside(_radius(at, np.full((n, 2), 12.0)), 0.25)
    own = np.zeros((n, SIDE, SIDE))
    if halo.any():
        own[halo] = _chromosomes(rng, kind[halo], at[halo])
    if not halo.all():
        own[~halo] = _nucleus(rng, kind[~halo], at[~halo])
    return np.maximum(stain * clear, own)


def _nucleus(
    rng: np.random.Generator, kind: Int[np.ndarray, " n"], at: Float[np.ndarray, "n 2"]
) -> Float[np.ndarray, "n h w"]:
    """Cells at rest: 3 round with membrane and grains, 4 small and black, 5 long and dark."""
    n = len(kind)
    size = rng.uniform(6.5, 11.0, n)
    long = np.exp(rng.normal(0, 0.12, n))
    dark = rng.uniform(0.36, 0.56, n)
    black, slim = kind == 4, kind == 5
    size = np.where(black, rng.uniform(4.0, 6.5, n), np.where(slim, rng.uniform(5.0, 7.0, n), size))
    long = np.where(slim, rng.uniform(1.5, 2.2, n), long)
    dark = np.where(black, rng.uniform(0.8, 1.05, n), dark)
    dark = np.where(slim, rng.uniform(0.65, 1.0, n), dark)
    r = _radius(at, np.stack([size * long, size / long], 1), _outline(rng, n, 0.03))
    body = _inside(r, 0.09)
    rim = np.exp(-0.5 * ((r - 0.93) / 0.09) ** 2)
    soft = np.where(kind == 3, 1.0, 0.35)[:, None, None]
    grains = 0.22 * soft * _grain(rng, n, 1.6)
    return body * (dark[:, None, None] * (1 + grains)) + 0.14 * soft * rim


def _chromosomes(
    rng: np.random.Generator, kind: Int[np.ndarray, " n"], at: Float[np.ndarray, "n 2"]
) -> Float[np.ndarray, "n h w"]:
    """Dividing cells: 0 a plate from its side, 1 two plates that part, 2 a clump."""
    n = len(kind)
    angle = rng.uniform(0, 2 * np.pi, n)
    across = np.stack([-np.sin(angle), np.cos(angle)], 1)
    apart = np.where(kind == 1, rng.uniform(4.0, 7.0, n), 0.0)
    length = np.where(kind == 2, rng.uniform(5.0, 7.5, n), rng.uniform(6.5, 10.0, n))
    width = np.where(kind == 2, length * rng.uniform(0.7, 0.95, n), rng.uniform(2.6, 4.4, n))
    width = np.where(kind == 1, 0.8 * width, width)
    result = np.zeros((n, SIDE, SIDE))
    for side in (-1.0, 1.0):
        bent = angle + rng.normal(0, 0.12, n)
        place = at + side * apart[:, None] * across
        rough = np.where(kind == 2, 0.16, 0.10)
        r = _radius(place, np.stack([length, width], 1), _outline(rng, n, rough), bent)
        result = np.maximum(result, _inside(r, 0.14))
    dark = rng.uniform(0.85, 1.1, n)[:, None, None]
    return result * dark * (1 + 0.12 * _grain(rng, n, 1.3))


def _radius(
    at: Float[np.ndarray, "n 2"],
    axes: Float[np.ndarray, "n 2"],
    outline: Float[np.ndarray, "n k 2"] | None = None,
    angle: Float[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, "n h w"]:
    """Distance of every pixel from a place, over that of the outline in its direction.

    The outline is an ellipse with half axes in pixels, turned by the angle; without one, by the
    first harmonic's phase, which is as good as random.
    """
    steps = np.arange(SIDE) - (SIDE - 1) / 2
    x = steps[None, None, :] - at[:, 0, None, None]
    y = steps[None, :, None] - at[:, 1, None, None]
    if angle is None:
        angle = np.zeros(len(at)) if outline is None else outline[:, 0, 1]
    c, s = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    u = (c * x + s * y) / axes[:, 0, None, None]
    v = (c * y - s * x) / axes[:, 1, None, None]
    r = np.sqrt(u**2 + v**2)
    if outline is None:
        return np.asarray(r)
    turn = np.arctan2(v, u)
    wave = np.zeros_like(r)
    for k in range(outline.shape[1]):
        amplitude, phase = outline[:, k, 0, None, None], outline[:, k, 1, None, None]
        wave = wave + amplitude * np.cos((k + 2) * turn + phase)
    return np.asarray(r / (1 + wave))


def _outline(
    rng: np.random.Generator, n: int, rough: float | Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n k 2"]:
    """Amplitudes and phases of an outline's waves."""
    amplitude = rng.normal(0, 1, (n, HARMONICS)) * np.broadcast_to(rough, n)[:, None]
    return np.stack([amplitude, rng.uniform(0, 2 * np.pi, (n, HARMONICS))], 2)


def _inside(r: Float[np.ndarray, "n h w"], soft: float) -> Float[np.ndarray, "n h w"]:
    """1 within the outline, 0 outside, over a soft edge."""
    return np.asarray(1 / (1 + np.exp(np.clip((r - 1) / soft * 2, -40, 40))))


def _grain(rng: np.random.Generator, n: int, size: float) -> Float[np.ndarray, "n h w"]:
    """Smooth noise of unit deviation, with grains of about that size in pixels."""
    made = _blurred(rng.normal(0, 1, (n, SIDE, SIDE)), np.full(n, size))
    return np.asarray(made / np.maximum(made.std((1, 2), keepdims=True), 1e-9))


def _blurred(
    images: Float[np.ndarray, "n h w"], sigma: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n h w"]:
    """Images under a Gaussian of a deviation of their own, in pixels; edges are mirrored."""
    wide = np.pad(images, ((0, 0), (5, 5), (5, 5)), mode="reflect")
    n = wide.shape[1]
    square = fftfreq(n)[:, None] ** 2 + rfftfreq(n) ** 2
    kernel = np.exp(-2 * (np.pi * sigma[:, None, None]) ** 2 * square)
    return np.asarray(irfft2(rfft2(wide) * kernel, (n, n))[:, 5:-5, 5:-5])
