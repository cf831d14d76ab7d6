"""Classifiers of images of strokes and of transformed copies of them, beside the model.

People slant and size characters differently: a classifier that is trained on copies of each
drawing, turned, sheared, scaled and shifted a little, needs fewer drawings. Copies are made with
the features, before training; scores of a new image are averaged over the image and its copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import affine_transform, gaussian_filter
from scipy.special import log_softmax

from scant.learners.deformable import DeformableNeighbor
from scant.models.left_out import Form, Indicators, select_kernel
from scant.studies import early_layers
from scant.studies.omniglot.table import area

SIDE = 20  # maximum pixels of a side for classifiers: more add little
LEAST = 4  # least pixels of a side for strokes
COPIES, TURNED = 8, 4  # of a training image, and of an image to predict
MOST_COPIED = 2000  # maximum rows of an output, copies included
ANGLE, SHEAR, SCALE, SHIFT = 0.12, 0.15, 0.08, 0.7  # deviations: radians, 1, of logarithms, pixels
CELL, SMOOTH = 4, 0.5  # pixels of HOG's cells; deviation of the smoothing before it
LEAST_NOISE = 0.1  # least noise with copies; left-out rows cannot estimate theirs
SEARCHED = 3  # outputs with the most rows, which select the kernel

Images = Float[np.ndarray, "n h w"]
Looks = list[Float[np.ndarray, "n d"]]  # features of the images, then of each set of copies


def bent(images: Images, rng: np.random.Generator) -> Images:
    """Copy each image, turned, sheared, scaled and shifted a little at random."""
    copies, center = np.empty_like(images), (np.array(images.shape[1:]) - 1) / 2
    for k, image in enumerate(images):
        angle, shear = rng.normal(0, (ANGLE, SHEAR))
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        size = np.diag(np.exp(rng.normal(0, SCALE, 2)))
        matrix = turn @ np.array([[1.0, shear], [0.0, 1.0]]) @ size
        shift = rng.normal(0, SHIFT, 2) * max(image.shape) / SIDE
        copies[k] = affine_transform(image, matrix, center - matrix @ center + shift, order=1)
    return copies


def small(x: Float[np.ndarray, "n v"], image: tuple[int, int]) -> Images:
    """Reduce rows of pixels to images of at most `SIDE` pixels a side."""
    return area(x.reshape(-1, *image), SIDE)


def of_gradients(images: Images, keep: bool = False) -> Float[np.ndarray, "n d"]:
    """HOG of each image (Dalal and Triggs 2005)."""
    from skimage.feature import hog

    smooth = gaussian_filter(images, (0, SMOOTH, SMOOTH))
    cell = max(2, min(CELL, min(images.shape[1:]) // 2))
    return np.array([hog(image, 9, (cell, cell), (2, 2)) for image in smooth])


def of_network(images: Images, keep: bool = False) -> Float[np.ndarray, "n d"]:
    """Early layers of a pretrained network, of black strokes on white paper."""
    return early_layers.strokes(1.0 - images, keep)


Sight = Callable[[Images, bool], Float[np.ndarray, "n d"]]


BENDING, HOG, LAYERS = "deformable nearest neighbor", "GP of HOG", "GP of early layers"
VIEWS: dict[str, Sight] = {HOG: of_gradients, LAYERS: of_network}


def looks(see: Sight, images: Images, copies: int, keep: bool = False) -> Looks:
    """Features of images and of `copies` copies of each, cached if `see` can."""
    rng = np.random.default_rng(7)  # the same copies each time, for the cache
    all_images = [images, *(bent(images, rng) for _ in range(copies))]
    return np.split(see(np.concatenate(all_images), keep), copies + 1)


@dataclass(frozen=True)
class CopiedGP:
    """Class probabilities of a GP that is trained on images and copies of them.

    Attributes:
        gp: GP of the features of both.
        sharpness: Factor of scores before the softmax, chosen without copies.
    """

    gp: Indicators
    sharpness: float

    @classmethod
    def of(
        cls, form: Form, features: Looks, label: Int[np.ndarray, " n"], classes: int
    ) -> CopiedGP:
        """Fit to features of rows and their classes, numbered from 0."""
        plain = Indicators.from_labels(form, [features[0]], label, classes)
        used = features[: max(1, min(len(features), MOST_COPIED // max(len(label), 1)))]
        if len(used) == 1:
            return cls(plain, plain.sharpness)
        noisy_form = form._replace(noise=max(form.noise, LEAST_NOISE))
        inputs, labels = np.concatenate(used), np.tile(label, len(used))
        return cls(Indicators.from_labels(noisy_form, [inputs], labels, classes), plain.sharpness)

    def ask(self, features: Looks) -> Float[np.ndarray, "m c"]:
        """Class probabilities of new images, from features of them and of their copies."""
        scores = np.mean([self.gp.gp.predict([inputs])[0] for inputs in features], axis=0)
        p = np.exp(log_softmax(self.sharpness * scores, axis=1))
        floor = 1 / (len(self.gp.label) + 1)  # as in `Indicators`
        return np.asarray((1 - floor) * p + floor / scores.shape[1])


Outputs = Sequence[Int[np.ndarray, " _"]]  # rows of each output, as indices into training rows


@dataclass(frozen=True)
class Drawings:
    """Training rows as images, with their features.

    Attributes:
        images: Small images.
        label: Class of each within its output.
        sizes: Number of classes of each output.
        seen: Features by the names of `VIEWS`.
    """

    images: Images
    label: Int[np.ndarray, " n"]
    sizes: list[int]
    seen: dict[str, Looks]

    @classmethod
    def of(
        cls,
        images: Images,
        label: Int[np.ndarray, " n"],
        output: Int[np.ndarray, " n"],
        sizes: list[int],
        views: Sequence[str],
    ) -> Drawings:
        """Compute features by some of `VIEWS`."""
        max_rows = int(np.bincount(output).max())
        copies = min(COPIES, max(0, MOST_COPIED // max_rows - 1))
        features = {name: looks(VIEWS[name], images, copies, keep=True) for name in views}
        return cls(images, label, sizes, features)

    def learned(
        self, name: str, rows: Outputs, forms: dict[str, Form]
    ) -> list[Callable[[Images], Float[np.ndarray, "m c"]]]:
        """Train classifiers of one name, one for each output.

        Args:
            name: `BENDING`, or one of `seen`.
            rows: Training rows by output.
            forms: Kernels by name; a missing one is selected and added.
        """
        if name == BENDING:
            parts = zip(rows, self.sizes)
            return [
                DeformableNeighbor.of(
                    self.images[output_rows], self.label[output_rows], n_classes
                ).ask
                for output_rows, n_classes in parts
            ]
        see, features = VIEWS[name], self.seen[name]
        if name not in forms:
            largest = sorted(range(len(rows)), key=lambda d: -len(rows[d]))[:SEARCHED]
            forms[name] = select_kernel(
                [
                    ([features[0][rows[d]]], np.eye(self.sizes[d])[self.label[rows[d]]])
                    for d in largest
                ]
            )
        gps = [
            CopiedGP.of(
                forms[name],
                [inputs[output_rows] for inputs in features],
                self.label[output_rows],
                size,
            )
            for output_rows, size in zip(rows, self.sizes)
        ]
        return [partial(_predict_copies, gp, see) for gp in gps]


def _predict_copies(gp: CopiedGP, see: Sight, images: Images) -> Float[np.ndarray, "m c"]:
    return gp.ask(looks(see, images, TURNED))
