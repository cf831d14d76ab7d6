"""What classifiers beside the model see in images of strokes, and in copies of them.

Who draws a character leans, slants and sizes it as they like: a classifier that has seen copies of
each drawing, turned, sheared, scaled and shifted a little, needs fewer drawings. Copies are made
where features are, before anything is learned; those of a new image are looked at as well, and
their scores averaged.
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

SIDE = 20  # pixels of a side at most, as classifiers see images: more tell little more
LEAST = 4  # pixels of a side, below which there are no strokes
COPIES, TURNED = 8, 4  # of an image that is learned from, and of one that is asked about
MOST_COPIED = 2000  # rows of an output, copies included
ANGLE, SHEAR, SCALE, SHIFT = 0.12, 0.15, 0.08, 0.7  # deviations: radians, 1, of logarithms, pixels
CELL, SMOOTH = 4, 0.5  # pixels of HOG's cells; deviation by which images are smoothed before
LEAST_NOISE = 0.1  # of copies, whose own noise cannot be told from rows left out
SEARCHED = 3  # outputs, of the most rows, that choose the kernel

Images = Float[np.ndarray, "n h w"]
Looks = list[Float[np.ndarray, "n d"]]  # of the images, and of copy after copy


def bent(images: Images, rng: np.random.Generator) -> Images:
    """A copy of each image, turned, sheared, scaled and shifted a little, each in its own way."""
    made, center = np.empty_like(images), (np.array(images.shape[1:]) - 1) / 2
    for k, image in enumerate(images):
        angle, shear = rng.normal(0, (ANGLE, SHEAR))
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        size = np.diag(np.exp(rng.normal(0, SCALE, 2)))
        way = turn @ np.array([[1.0, shear], [0.0, 1.0]]) @ size
        away = rng.normal(0, SHIFT, 2) * max(image.shape) / SIDE
        made[k] = affine_transform(image, way, center - way @ center + away, order=1)
    return made


def small(x: Float[np.ndarray, "n v"], image: tuple[int, int]) -> Images:
    """Rows of pixels as images of at most `SIDE` pixels a side."""
    return area(x.reshape(-1, *image), SIDE)


def of_gradients(images: Images, keep: bool = False) -> Float[np.ndarray, "n d"]:
    """HOG of each image (Dalal and Triggs 2005)."""
    from skimage.feature import hog

    soft = gaussian_filter(images, (0, SMOOTH, SMOOTH))
    cell = max(2, min(CELL, min(images.shape[1:]) // 2))
    return np.array([hog(image, 9, (cell, cell), (2, 2)) for image in soft])


def of_network(images: Images, keep: bool = False) -> Float[np.ndarray, "n d"]:
    """Early layers of a pretrained network, of black strokes on white paper."""
    return early_layers.strokes(1.0 - images, keep)


Sight = Callable[[Images, bool], Float[np.ndarray, "n d"]]


BENDING, HOG, LAYERS = "deformable nearest neighbor", "GP of HOG", "GP of early layers"
VIEWS: dict[str, Sight] = {HOG: of_gradients, LAYERS: of_network}


def looks(see: Sight, images: Images, copies: int, keep: bool = False) -> Looks:
    """What is seen in images, and in so many copies of each; kept, if what sees can do so."""
    rng = np.random.default_rng(7)  # the same copies each time, so that what is kept is found
    every = [images, *(bent(images, rng) for _ in range(copies))]
    return np.split(see(np.concatenate(every), keep), copies + 1)


@dataclass(frozen=True)
class CopiedGP:
    """Probabilities of classes by a GP that has learned images and copies of them.

    Attributes:
        gp: Of what is seen in both.
        sharpness: By which scores are multiplied before the softmax, chosen without copies.
    """

    gp: Indicators
    sharpness: float

    @classmethod
    def of(cls, form: Form, seen: Looks, label: Int[np.ndarray, " n"], classes: int) -> CopiedGP:
        """Of rows and their classes, numbered from 0."""
        plain = Indicators.from_labels(form, [seen[0]], label, classes)
        kept = seen[: max(1, min(len(seen), MOST_COPIED // max(len(label), 1)))]
        if len(kept) == 1:
            return cls(plain, plain.sharpness)
        noisy = form._replace(noise=max(form.noise, LEAST_NOISE))
        every, labels = np.concatenate(kept), np.tile(label, len(kept))
        return cls(Indicators.from_labels(noisy, [every], labels, classes), plain.sharpness)

    def ask(self, seen: Looks) -> Float[np.ndarray, "m c"]:
        """Probabilities of new images, by what is seen in them and in their copies."""
        scores = np.mean([self.gp.gp.predict([look])[0] for look in seen], axis=0)
        p = np.exp(log_softmax(self.sharpness * scores, axis=1))
        chance = 1 / (len(self.gp.label) + 1)  # as `Indicators` has it
        return np.asarray((1 - chance) * p + chance / scores.shape[1])


Outputs = Sequence[Int[np.ndarray, " _"]]  # rows of each output, as numbers of training rows


@dataclass(frozen=True)
class Drawings:
    """Training rows as images, and what is seen in them.

    Attributes:
        images: Small.
        label: Classes within the output of each.
        sizes: Classes of each output.
        seen: By the names of `VIEWS`.
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
        """Looked at by some of `VIEWS`."""
        most = int(np.bincount(output).max())
        copies = min(COPIES, max(0, MOST_COPIED // most - 1))
        seen = {name: looks(VIEWS[name], images, copies, keep=True) for name in views}
        return cls(images, label, sizes, seen)

    def learned(
        self, name: str, rows: Outputs, forms: dict[str, Form]
    ) -> list[Callable[[Images], Float[np.ndarray, "m c"]]]:
        """A classifier of each output, by its name.

        Args:
            name: `BENDING`, or one of `seen`.
            rows: To learn from, by output.
            forms: Kernels by names; where there is none, the one that is chosen is added.
        """
        if name == BENDING:
            parts = zip(rows, self.sizes)
            return [
                DeformableNeighbor.of(self.images[own], self.label[own], c).ask for own, c in parts
            ]
        see, seen = VIEWS[name], self.seen[name]
        if name not in forms:
            most = sorted(range(len(rows)), key=lambda d: -len(rows[d]))[:SEARCHED]
            forms[name] = select_kernel(
                [([seen[0][rows[d]]], np.eye(self.sizes[d])[self.label[rows[d]]]) for d in most]
            )
        each = [
            CopiedGP.of(forms[name], [look[own] for look in seen], self.label[own], size)
            for own, size in zip(rows, self.sizes)
        ]
        return [partial(_of_copies, gp, see) for gp in each]


def _of_copies(gp: CopiedGP, see: Sight, images: Images) -> Float[np.ndarray, "m c"]:
    return gp.ask(looks(see, images, TURNED))
