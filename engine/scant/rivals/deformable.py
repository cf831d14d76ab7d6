"""The nearest of some images that may bend: the image distortion model.

Keysers, Deselaers, Gollan and Ney (2007), Deformation models for image recognition, IEEE TPAMI
29(8):1422-1435. Every pixel of an image is compared with those within `REACH` of its place in
another one, by the slopes of brightness in a neighborhood of 3 x 3, and the best of them counts.
Places are free of one another, so that the best distortion needs no search over whole images; what
the slopes around a pixel are keeps strokes together.

    classifier = DeformableNeighbor.of(images, label, classes)
    classifier.ask(new)        # probabilities of the classes
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.ndimage import gaussian_filter, sobel
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

REACH = 2  # pixels of 20, in either direction: about a tenth of a side, as published
USUAL = 20  # pixels of a side that reach is for
SMOOTH = 0.5  # deviation in pixels of 20: pixels that are ink or paper alone get slopes
AT_ONCE = 2e7  # numbers of a block of distances
SEARCHED = 100  # rows, by which the sharpness of probabilities is chosen
SHARPNESS = (0.1, 1000.0)

Images = Float[np.ndarray, "n h w"]
Slopes = Float32[np.ndarray, "n h w 18"]
Asked = Float32[np.ndarray, "m h w 18"]


def slopes(images: Images) -> Slopes:
    """Slopes down and across in the neighborhood of every pixel, of images of one contrast."""
    width = SMOOTH * max(images.shape[1:]) / USUAL
    soft = gaussian_filter(np.asarray(images, np.float64), (0, width, width))
    both = np.stack([sobel(soft, axis) for axis in (1, 2)], 3)
    norm = np.sqrt((both**2).sum((1, 2, 3), keepdims=True))
    both = np.pad(both / np.maximum(norm, 1e-9), ((0, 0), (1, 1), (1, 1), (0, 0)))
    h, w = images.shape[1:]
    near = [both[:, i : i + h, j : j + w] for i in range(3) for j in range(3)]
    return np.concatenate(near, 3).astype(np.float32)


def distances(query: Asked, learned: Slopes) -> Float[np.ndarray, "m n"]:
    """Squared distances of images, each of the first bent to fit each of the second."""
    h, w = query.shape[1:3]
    reach = max(1, round(REACH * max(h, w) / USUAL))
    edge = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    wide = np.pad(learned, edge)
    outside = np.pad(np.zeros(learned.shape[:3], np.float32), edge[:3], constant_values=np.inf)
    height = (wide**2).sum(3) + outside  # what lies beyond the edge fits nothing
    found = np.empty((len(query), len(learned)))
    step = max(1, int(AT_ONCE / (len(learned) * h * w)))
    shifts = [(i, j) for i in range(2 * reach + 1) for j in range(2 * reach + 1)]
    for begin in range(0, len(query), step):
        own = query[begin : begin + step].reshape(-1, h * w, query.shape[3]).transpose(1, 0, 2)
        least = np.full((h * w, own.shape[1], len(learned)), np.inf, np.float32)
        for i, j in shifts:  # one product of matrices for each pixel
            part = wide[:, i : i + h, j : j + w].reshape(len(wide), h * w, -1).transpose(1, 2, 0)
            near = height[:, i : i + h, j : j + w].reshape(len(wide), h * w).T
            np.minimum(least, near[:, None] - 2 * np.matmul(own, part), out=least)
        length = (own**2).sum((0, 2))
        found[begin : begin + step] = least.sum(0, dtype=np.float64) + length[:, None]
    return np.maximum(found, 0.0)


@dataclass(frozen=True)
class DeformableNeighbor:
    """Probabilities of classes by the distance of the nearest image of each.

    Attributes:
        seen: Slopes of the images learned from.
        label: Their classes.
        classes: How many.
        sharpness: By which distances are multiplied before the softmax, chosen by rows learned
            from, each left out.
    """

    seen: Slopes
    label: Int[np.ndarray, " n"]
    classes: int
    sharpness: float

    @classmethod
    def of(cls, images: Images, label: Int[np.ndarray, " n"], classes: int) -> DeformableNeighbor:
        """Of images of one size, in [0, 1] with ink 1, and their classes, numbered from 0."""
        seen = slopes(images)
        some = np.sort(np.random.default_rng(0).permutation(len(seen))[:SEARCHED])
        far = distances(seen[some], seen)
        far[np.arange(len(some)), some] = np.inf
        each, own = _by_class(far, label, classes), label[some]
        known = np.isfinite(each[np.arange(len(some)), own])  # of classes with another row

        def cost(log: float) -> float:
            p = _probabilities(each[known], float(np.exp(log)), len(label))
            return -float(np.log(p[np.arange(len(p)), own[known]]).sum())

        ends = tuple(np.log(SHARPNESS).tolist())
        found = minimize_scalar(cost, bounds=ends, method="bounded").x if known.any() else 0.0
        return cls(seen, label, classes, float(np.exp(found)))

    def ask(self, images: Images) -> Float[np.ndarray, "m c"]:
        """Probabilities of the classes of new images of the same size."""
        each = _by_class(distances(slopes(images), self.seen), self.label, self.classes)
        return _probabilities(each, self.sharpness, len(self.label))


def _by_class(
    far: Float[np.ndarray, "m n"], label: Int[np.ndarray, " n"], classes: int
) -> Float[np.ndarray, "m c"]:
    """The distance of the nearest image of each class; infinite of a class without one."""
    return np.stack([far[:, label == c].min(1, initial=np.inf) for c in range(classes)], 1)


def _probabilities(
    each: Float[np.ndarray, "m c"], sharpness: float, rows: int
) -> Float[np.ndarray, "m c"]:
    """Never surer than the number of rows allows."""
    with np.errstate(invalid="ignore"):
        p = np.exp(log_softmax(np.where(np.isfinite(each), -sharpness * each, -1e9), axis=1))
    chance = 1 / (rows + 1)
    return np.asarray((1 - chance) * p + chance / each.shape[1])
