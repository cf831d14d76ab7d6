"""Simulated gray images of cells: a few dividing cells among many others, on several slides.

A patch has 30 x 30 pixels in [0, 1], dark on light as under the microscope, and one cell near its
center. Dividing cells are dark and ragged, without a membrane: a plate seen from its side, two
separating plates, or a clump. Others are round nuclei with a membrane and grains; some resemble
dividing cells: small and black (lymphocytes, dying cells), or long and dark (fibroblasts). Nuisance
variables: rotation, distance from the center, other nuclei at the edge, and the stain, light and
focus of each slide. Designed after Yousefi (2021), Figs. 3.2, 3.3 and 3.6, without copying images.
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
HARMONICS = 5  # waves of an outline
_CHUNK = 1024  # patches per block


@dataclass(frozen=True)
class Look:
    """Difficulty of the classification of cells.

    Attributes:
        black: Share of small black nuclei among the others.
        long: Share of long dark nuclei among the others.
        stain: Standard deviation of a slide's log darkness.
        blur: Minimum and maximum width of a slide's blur, in pixels.
        noise: Standard deviation of pixel noise.
        clump: Share of clumps among dividing cells; they look most like black nuclei.
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
    """The cell numbers of `demo`, with more lookalikes and more varied stain and focus."""
    return _table(cells(settings.data_seed, 24, (5, 50), HARD), rows)


def large(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """550 dividing cells and 6,500 others on 50 slides: about as many as published."""
    return _table(cells(settings.data_seed, 50, (11, 130), EASY), rows)


def phases(settings: Seeded, rows: int | None = None) -> pd.DataFrame:
    """Three classes: 1,000 others, 100 plates seen from the side and 40 pairs of plates."""
    images = cells(settings.data_seed, 20, (7, 50), Look(clump=0.0), apart=(2, 5))
    return _table(images, rows)


def cells(
    seed: int,
    slides: int,
    cells_per_slide: tuple[int, int],
    difficulty: Look = EASY,
    apart: tuple[int, int] | None = None,
) -> LabeledImages:
    """Simulate patches of several slides.

    Args:
        seed: Seed of slides and cells.
        slides: Number of slides.
        cells_per_slide: Numbers of dividing cells and others per slide.
        difficulty: Difficulty of the classification.
        apart: Pairs of plates and single plates per slide as separate classes; their sum is the
            number of dividing cells.
    """
    rng = np.random.default_rng([seed, 31])
    kinds, label = [], []
    for _ in range(slides):
        if apart is None:
            dividing = _mixed(
                rng, cells_per_slide[0], {2: difficulty.clump, 1: 0.45 * (1 - difficulty.clump)}
            )
            ids = np.zeros(cells_per_slide[0], dtype=int)
        else:
            dividing = np.repeat([1, 0], apart)
            ids = np.repeat([1, 0], apart)
        kinds += [
            dividing,
            3 + _mixed(rng, cells_per_slide[1], {1: difficulty.black, 2: difficulty.long}),
        ]
        label += [ids, np.full(cells_per_slide[1], 1 if apart is None else 2)]
    kind, labels = np.concatenate(kinds), np.concatenate(label)
    group = np.repeat(np.arange(slides), sum(cells_per_slide))
    stain = np.exp(rng.normal(0, difficulty.stain, slides))
    light, focus = rng.uniform(0.78, 0.92, slides), rng.uniform(*difficulty.blur, slides)
    images = np.empty((len(kind), SIDE, SIDE))
    for start in range(0, len(kind), _CHUNK):
        block = slice(start, start + _CHUNK)
        ids = group[block]
        patches = _scene(rng, kind[block])
        patches = light[ids, None, None] - patches * stain[ids, None, None] * 0.62
        patches = _blurred(patches, focus[ids] * rng.uniform(0.9, 1.2, len(ids)))
        images[block] = np.clip(patches + rng.normal(0, difficulty.noise, patches.shape), 0, 1)
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


def _table(images: LabeledImages, rows: int | None) -> pd.DataFrame:
    return thinned(images.frame().round(3), rows)


def _mixed(
    rng: np.random.Generator, count: int, shares: dict[int, float]
) -> Int[np.ndarray, " count"]:
    """Draw kinds at random with probabilities `shares`; 0 has the rest."""
    remaining = 1 - sum(shares.values())
    return rng.choice([0, *shares], count, p=[remaining, *shares.values()])


def _scene(rng: np.random.Generator, kind: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n h w"]:
    """Stain of whole patches, from 0 (none) to about 1 (black)."""
    n = len(kind)
    fields = _grain(rng, n, 3.0)
    stain = 0.2 + 0.12 * _grain(rng, n, 4.0) + 0.05 * fields  # cytoplasm
    for _ in range(2):  # nuclei that are cut off at the edge
        angle = rng.uniform(0, 2 * np.pi, n)
        distance = rng.uniform(15, 22, n)
        center = np.stack([distance * np.cos(angle), distance * np.sin(angle)], 1)
        stain = np.maximum(stain, _nucleus(rng, np.full(n, 3), center))
    halo = np.isin(kind, (0, 1, 2))
    center = rng.normal(0, 0.8, (n, 2))
    cleared = 1 - 0.55 * halo[:, None, None] * _inside(_radius(center, np.full((n, 2), 12.0)), 0.25)
    cell = np.zeros((n, SIDE, SIDE))
    if halo.any():
        cell[halo] = _chromosomes(rng, kind[halo], center[halo])
    if not halo.all():
        cell[~halo] = _nucleus(rng, kind[~halo], center[~halo])
    return np.maximum(stain * cleared, cell)


def _nucleus(
    rng: np.random.Generator, kind: Int[np.ndarray, " n"], center: Float[np.ndarray, "n 2"]
) -> Float[np.ndarray, "n h w"]:
    """Resting cells: 3 round with membrane and grains, 4 small and black, 5 long and dark."""
    n = len(kind)
    size = rng.uniform(6.5, 11.0, n)
    elongation = np.exp(rng.normal(0, 0.12, n))
    darkness = rng.uniform(0.36, 0.56, n)
    is_black, is_long = kind == 4, kind == 5
    size = np.where(
        is_black, rng.uniform(4.0, 6.5, n), np.where(is_long, rng.uniform(5.0, 7.0, n), size)
    )
    elongation = np.where(is_long, rng.uniform(1.5, 2.2, n), elongation)
    darkness = np.where(is_black, rng.uniform(0.8, 1.05, n), darkness)
    darkness = np.where(is_long, rng.uniform(0.65, 1.0, n), darkness)
    r = _radius(center, np.stack([size * elongation, size / elongation], 1), _outline(rng, n, 0.03))
    body = _inside(r, 0.09)
    rim = np.exp(-0.5 * ((r - 0.93) / 0.09) ** 2)
    soft = np.where(kind == 3, 1.0, 0.35)[:, None, None]
    grains = 0.22 * soft * _grain(rng, n, 1.6)
    return body * (darkness[:, None, None] * (1 + grains)) + 0.14 * soft * rim


def _chromosomes(
    rng: np.random.Generator, kind: Int[np.ndarray, " n"], center: Float[np.ndarray, "n 2"]
) -> Float[np.ndarray, "n h w"]:
    """Dividing cells: 0 a plate from its side, 1 two separating plates, 2 a clump."""
    n = len(kind)
    angle = rng.uniform(0, 2 * np.pi, n)
    across = np.stack([-np.sin(angle), np.cos(angle)], 1)
    separation = np.where(kind == 1, rng.uniform(4.0, 7.0, n), 0.0)
    length = np.where(kind == 2, rng.uniform(5.0, 7.5, n), rng.uniform(6.5, 10.0, n))
    width = np.where(kind == 2, length * rng.uniform(0.7, 0.95, n), rng.uniform(2.6, 4.4, n))
    width = np.where(kind == 1, 0.8 * width, width)
    result = np.zeros((n, SIDE, SIDE))
    for side in (-1.0, 1.0):
        tilted = angle + rng.normal(0, 0.12, n)
        plate_center = center + side * separation[:, None] * across
        roughness = np.where(kind == 2, 0.16, 0.10)
        r = _radius(plate_center, np.stack([length, width], 1), _outline(rng, n, roughness), tilted)
        result = np.maximum(result, _inside(r, 0.14))
    darkness = rng.uniform(0.85, 1.1, n)[:, None, None]
    return result * darkness * (1 + 0.12 * _grain(rng, n, 1.3))


def _radius(
    center: Float[np.ndarray, "n 2"],
    axes: Float[np.ndarray, "n 2"],
    outline: Float[np.ndarray, "n k 2"] | None = None,
    angle: Float[np.ndarray, " n"] | None = None,
) -> Float[np.ndarray, "n h w"]:
    """Distance of each pixel from the center, relative to the outline in its direction.

    The outline is an ellipse with semi-axes `axes` in pixels, rotated by `angle`, by default the
    first harmonic's phase, which is random.
    """
    steps = np.arange(SIDE) - (SIDE - 1) / 2
    x = steps[None, None, :] - center[:, 0, None, None]
    y = steps[None, :, None] - center[:, 1, None, None]
    if angle is None:
        angle = np.zeros(len(center)) if outline is None else outline[:, 0, 1]
    c, s = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    u = (c * x + s * y) / axes[:, 0, None, None]
    v = (c * y - s * x) / axes[:, 1, None, None]
    r = np.sqrt(u**2 + v**2)
    if outline is None:
        return np.asarray(r)
    theta = np.arctan2(v, u)
    wave = np.zeros_like(r)
    for k in range(outline.shape[1]):
        amplitude, phase = outline[:, k, 0, None, None], outline[:, k, 1, None, None]
        wave = wave + amplitude * np.cos((k + 2) * theta + phase)
    return np.asarray(r / (1 + wave))


def _outline(
    rng: np.random.Generator, n: int, roughness: float | Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n k 2"]:
    """Amplitudes and phases of an outline's waves."""
    amplitude = rng.normal(0, 1, (n, HARMONICS)) * np.broadcast_to(roughness, n)[:, None]
    return np.stack([amplitude, rng.uniform(0, 2 * np.pi, (n, HARMONICS))], 2)


def _inside(r: Float[np.ndarray, "n h w"], soft: float) -> Float[np.ndarray, "n h w"]:
    """1 within the outline, 0 outside, with a soft edge."""
    return np.asarray(1 / (1 + np.exp(np.clip((r - 1) / soft * 2, -40, 40))))


def _grain(rng: np.random.Generator, n: int, size: float) -> Float[np.ndarray, "n h w"]:
    """Smooth noise of unit standard deviation, with grains of about `size` pixels."""
    noise = _blurred(rng.normal(0, 1, (n, SIDE, SIDE)), np.full(n, size))
    return np.asarray(noise / np.maximum(noise.std((1, 2), keepdims=True), 1e-9))


def _blurred(
    images: Float[np.ndarray, "n h w"], sigma: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "n h w"]:
    """Blur each image by a Gaussian of standard deviation `sigma` in pixels, mirrored at edges."""
    padded = np.pad(images, ((0, 0), (5, 5), (5, 5)), mode="reflect")
    n = padded.shape[1]
    square = fftfreq(n)[:, None] ** 2 + rfftfreq(n) ** 2
    kernel = np.exp(-2 * (np.pi * sigma[:, None, None]) ** 2 * square)
    return np.asarray(irfft2(rfft2(padded) * kernel, (n, n))[:, 5:-5, 5:-5])
