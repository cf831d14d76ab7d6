"""Nearest neighbor classifier of images with the image distortion model.

Keysers, Deselaers, Gollan and Ney (2007), Deformation models for image recognition, IEEE TPAMI
29(8):1422-1435. Every pixel of an image is compared with the pixels within `REACH` of its position
in another image, by the gradients in a neighborhood of 3 x 3, and the minimum is taken. Pixels are
displaced independently, so the best distortion requires no global search; the context of the
gradients preserves strokes.

    classifier = DeformableNeighbor.of(images, label, classes)
    classifier.ask(new)        # class probabilities
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int
from scipy.ndimage import gaussian_filter, sobel
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

REACH = 2  # maximum displacement in pixels for `USUAL` pixels of a side, as published
USUAL = 20  # pixels of a side that `REACH` and `SMOOTH` refer to
SMOOTH = 0.5  # standard deviation of smoothing in pixels, for gradients of binary images
BLOCK = 2e7  # elements of a block of distances
SEARCHED = 100  # rows used to choose the sharpness
SHARPNESS = (0.1, 1000.0)  # bounds

Images = Float[np.ndarray, "n h w"]
Slopes = Float32[np.ndarray, "n h w 18"]
Query = Float32[np.ndarray, "m h w 18"]


def slopes(images: Images) -> Slopes:
    """Compute gradients in the 3 x 3 neighborhood of every pixel, normalized per image."""
    width = SMOOTH * max(images.shape[1:]) / USUAL
    soft = gaussian_filter(np.asarray(images, np.float64), (0, width, width))
    gradients = np.stack([sobel(soft, axis) for axis in (1, 2)], 3)
    norm = np.sqrt((gradients**2).sum((1, 2, 3), keepdims=True))
    gradients = np.pad(gradients / np.maximum(norm, 1e-9), ((0, 0), (1, 1), (1, 1), (0, 0)))
    h, w = images.shape[1:]
    shifted = [gradients[:, i : i + h, j : j + w] for i in range(3) for j in range(3)]
    return np.concatenate(shifted, 3).astype(np.float32)


def distances(query: Query, learned: Slopes) -> Float[np.ndarray, "m n"]:
    """Compute squared distances of images after deformation of queries to training images."""
    h, w = query.shape[1:3]
    reach = max(1, round(REACH * max(h, w) / USUAL))
    edge = ((0, 0), (reach, reach), (reach, reach), (0, 0))
    padded = np.pad(learned, edge)
    outside = np.pad(np.zeros(learned.shape[:3], np.float32), edge[:3], constant_values=np.inf)
    squared_norm = (padded**2).sum(3) + outside  # infinite beyond the edge
    squared_distances = np.empty((len(query), len(learned)))
    step = max(1, int(BLOCK / (len(learned) * h * w)))
    shifts = [(i, j) for i in range(2 * reach + 1) for j in range(2 * reach + 1)]
    for begin in range(0, len(query), step):
        query_block = (
            query[begin : begin + step].reshape(-1, h * w, query.shape[3]).transpose(1, 0, 2)
        )
        minimum = np.full((h * w, query_block.shape[1], len(learned)), np.inf, np.float32)
        for i, j in shifts:  # one matrix product for each pixel
            shifted = (
                padded[:, i : i + h, j : j + w].reshape(len(padded), h * w, -1).transpose(1, 2, 0)
            )
            squared_norm_part = squared_norm[:, i : i + h, j : j + w].reshape(len(padded), h * w).T
            np.minimum(
                minimum,
                squared_norm_part[:, None] - 2 * np.matmul(query_block, shifted),
                out=minimum,
            )
        query_norm = (query_block**2).sum((0, 2))
        squared_distances[begin : begin + step] = (
            minimum.sum(0, dtype=np.float64) + query_norm[:, None]
        )
    return np.maximum(squared_distances, 0.0)


@dataclass(frozen=True)
class DeformableNeighbor:
    """Classifier by the distance to the nearest image of each class.

    Attributes:
        seen: Gradients of the training images.
        label: Classes of the training images.
        classes: Number of classes.
        sharpness: Factor of the distances before the softmax, chosen by leave-one-out
            cross-validation.
    """

    seen: Slopes
    label: Int[np.ndarray, " n"]
    classes: int
    sharpness: float

    @classmethod
    def of(cls, images: Images, label: Int[np.ndarray, " n"], classes: int) -> DeformableNeighbor:
        """Fit to images of equal size in [0, 1] with 1 for ink, and class indices from 0."""
        gradients = slopes(images)
        subset = np.sort(np.random.default_rng(0).permutation(len(gradients))[:SEARCHED])
        distance = distances(gradients[subset], gradients)
        distance[np.arange(len(subset)), subset] = np.inf
        each, own = _by_class(distance, label, classes), label[subset]
        has_neighbor = np.isfinite(
            each[np.arange(len(subset)), own]
        )  # another row of the class exists

        def cost(log: float) -> float:
            p = _probabilities(each[has_neighbor], float(np.exp(log)), len(label))
            return -float(np.log(p[np.arange(len(p)), own[has_neighbor]]).sum())

        bounds = tuple(np.log(SHARPNESS).tolist())
        log_sharpness = (
            minimize_scalar(cost, bounds=bounds, method="bounded").x if has_neighbor.any() else 0.0
        )
        return cls(gradients, label, classes, float(np.exp(log_sharpness)))

    def ask(self, images: Images) -> Float[np.ndarray, "m c"]:
        """Return class probabilities of new images of the same size."""
        each = _by_class(distances(slopes(images), self.seen), self.label, self.classes)
        return _probabilities(each, self.sharpness, len(self.label))


def _by_class(
    distance: Float[np.ndarray, "m n"], label: Int[np.ndarray, " n"], classes: int
) -> Float[np.ndarray, "m c"]:
    """Return the distance to the nearest image of each class; infinite without images."""
    return np.stack([distance[:, label == c].min(1, initial=np.inf) for c in range(classes)], 1)


def _probabilities(
    each: Float[np.ndarray, "m c"], sharpness: float, rows: int
) -> Float[np.ndarray, "m c"]:
    """Return softmax probabilities, mixed with the uniform distribution by the number of rows."""
    with np.errstate(invalid="ignore"):
        p = np.exp(log_softmax(np.where(np.isfinite(each), -sharpness * each, -1e9), axis=1))
    uniform_weight = 1 / (rows + 1)
    return np.asarray((1 - uniform_weight) * p + uniform_weight / each.shape[1])
