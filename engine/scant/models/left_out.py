"""Exact GP regression, or classification by regression, with leave-one-out kernel selection.

One eigendecomposition of a kernel matrix gives the leave-one-out predictions for every noise level
(Rasmussen and Williams 2006, 5.4.2), so a grid of kernels takes a second where gradients take
minutes. Classes are predicted by regression on their indicators (ibid., 6.5) and a softmax whose
temperature maximizes the leave-one-out likelihood.

Inputs are views, matrices with the same rows. The kernel is isotropic over all columns, scaled so
that each view contributes equally to the distance, or the mean of one kernel per view.

    gp = ExactGP(select_kernel([(views, y)]), views, y)
    mean, variance = gp.predict(new_views)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

Views = Sequence[Float[np.ndarray, "n _"]]
Others = Sequence[Float[np.ndarray, "m _"]]
WIDTHS = (0.15, 0.3, 0.6, 1.2)  # lengthscales, in typical distances between rows
LINEAR = (0.0, 0.3)  # weights of an added linear kernel
NOISES = tuple(10.0 ** np.arange(-4.0, 2.6, 0.5))  # noise variances, in kernel variances
SEARCH_ROWS = 500  # rows used to select the kernel
MIN_SHARPNESS, MAX_SHARPNESS = 1.0, 400.0  # factor of the scores in the softmax
FLOOR = 1e-9


class Form(NamedTuple):
    """Kernel and noise variance.

    Attributes:
        shape: "linear", "rbf" or "matern" (5/2).
        width: Lengthscale, in typical distances between rows.
        line: Weight of an added linear kernel.
        per_view: True to average one kernel per view instead of one over all columns.
        noise: Noise variance, in units of the kernel's variance.
    """

    shape: str
    width: float
    line: float
    per_view: bool
    noise: float


@dataclass(frozen=True)
class Similarity:
    """Kernel matrices of rows in views, scaled by the training rows."""

    centres: list[Float[np.ndarray, " _"]]
    units: list[float]  # half the mean squared distance between rows, per view

    @classmethod
    def from_views(cls, views: Views) -> Similarity:
        """Center and scale by these rows."""
        units = [max(float(v.var(0).sum()), FLOOR) for v in views]
        return cls([v.mean(0) for v in views], units)

    def parts(self, a: Views, b: Others) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances and inner products between rows of a and b, `"v n m"` each."""
        distances, products = [], []
        for left, right, centre, unit in zip(a, b, self.centres, self.units):
            left, right = (left - centre) / unit**0.5, (right - centre) / unit**0.5
            inner = left @ right.T
            square = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * inner
            distances.append(np.maximum(square, 0.0) / 2)
            products.append(inner)
        return np.array(distances), np.array(products)

    @staticmethod
    def matrix(form: Form, parts: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, "n m"]:
        """Kernel matrix from the output of `parts`."""
        squares, products = parts
        linear = products.mean(0)
        if form.shape == "linear":
            return np.asarray(linear)
        squares = (squares if form.per_view else squares.mean(0, keepdims=True)) / form.width**2
        if form.shape == "rbf":
            kernels = np.exp(-squares / 2)
        else:
            r = np.sqrt(5 * squares)
            kernels = (1 + r + 5 * squares / 3) * np.exp(-r)
        return np.asarray(kernels.mean(0) + form.line * linear)


def select_kernel(
    problems: Sequence[tuple[Sequence[np.ndarray], np.ndarray]], linear: bool = False
) -> Form:
    """Kernel with the smallest leave-one-out error, summed over all problems.

    Args:
        problems: Pairs of views and targets `"n c"`; n and c may differ between problems.
        linear: Consider only the linear kernel.
    """
    multiview = len(problems[0][0]) > 1
    forms = [Form("linear", 1.0, 0.0, False, 0.0)]
    if not linear:
        shapes = product(
            ("rbf", "matern"), WIDTHS, LINEAR, (False, True) if multiview else (False,)
        )
        forms = [Form(*choice, 0.0) for choice in shapes]
    errors = np.zeros((len(forms), len(NOISES)))
    for views, y in problems:
        subset = _some(len(y))
        views, y = [v[subset] for v in views], y[subset]
        parts = Similarity.from_views(views).parts(views, views)
        scale = max(float(y.var(0).sum()), FLOOR) / len(y)
        for i, form in enumerate(forms):
            values, vectors = np.linalg.eigh(Similarity.matrix(form, parts))
            rotated = vectors.T @ (y - y.mean(0))
            for j, noise in enumerate(NOISES):
                shrinkage = 1 / (np.maximum(values, 0.0) + noise)
                weights = vectors @ (shrinkage[:, None] * rotated)
                error = weights / (vectors**2 @ shrinkage)[:, None]
                errors[i, j] += (error**2).mean() / scale
    best, noise_index = divmod(int(errors.argmin()), len(NOISES))
    return forms[best]._replace(noise=float(NOISES[noise_index]))


def _some(n: int) -> Int[np.ndarray, " m"]:
    """A fixed random subset of at most `SEARCH_ROWS` of n rows."""
    return np.sort(np.random.default_rng(0).permutation(n)[:SEARCH_ROWS])


@dataclass(frozen=True)
class ExactGP:
    """Exact GP regression of c targets with one kernel.

    Attributes:
        form: Kernel and noise.
        views: Training rows.
        y: Training targets.
    """

    form: Form
    views: Views
    y: Float[np.ndarray, "n c"]

    @cached_property
    def similarity(self) -> Similarity:
        return Similarity.from_views(self.views)

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        K = Similarity.matrix(self.form, self.similarity.parts(self.views, self.views))
        np.fill_diagonal(K, K.diagonal() + self.form.noise)
        factor, lower = cho_factor(K, lower=True, overwrite_a=True)
        return factor, bool(lower)  # some versions of SciPy give a NumPy bool

    @cached_property
    def weights(self) -> Float[np.ndarray, "n c"]:
        """(K + noise)^-1 (y - mean)."""
        return np.asarray(cho_solve(self._factor, self.y - self.y.mean(0)))

    @cached_property
    def left_out(self) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " n"]]:
        """Leave-one-out means and variances, in units of `height`."""
        diagonal = cho_solve(self._factor, np.eye(len(self.y))).diagonal()
        return self.y - self.weights / diagonal[:, None], 1 / diagonal

    @cached_property
    def height(self) -> float:
        """Factor of the variances that calibrates them to the leave-one-out errors."""
        mean, variance = self.left_out
        return max(float(((self.y - mean) ** 2 / variance[:, None]).mean()), FLOOR**2)

    def predict(self, views: Views) -> tuple[Float[np.ndarray, "t c"], Float[np.ndarray, " t"]]:
        """Means, and variances with noise, of the targets at other rows."""
        means, variances = [self.y[:0]], [np.empty(0)]
        for begin in range(0, len(views[0]), SEARCH_ROWS):  # bounds the memory
            block = [v[begin : begin + SEARCH_ROWS] for v in views]
            cross = Similarity.matrix(self.form, self.similarity.parts(block, self.views))
            means.append(cross @ self.weights + self.y.mean(0))
            solved = cho_solve(self._factor, cross.T)
            variances.append(self._prior_variance(block) - (cross * solved.T).sum(1))
        variance = np.maximum(np.concatenate(variances), 0.0) + self.form.noise
        return np.concatenate(means), self.height * variance

    def _prior_variance(self, views: Views) -> Float[np.ndarray, " t"]:
        """Prior variances, in units of `height`."""
        pieces = zip(views, self.similarity.centres, self.similarity.units)
        linear = np.mean([((v - centre) ** 2).sum(1) / unit for v, centre, unit in pieces], axis=0)
        return np.asarray(linear if self.form.shape == "linear" else 1 + self.form.line * linear)


@dataclass(frozen=True)
class Indicators:
    """Class probabilities from GP regression on class indicators."""

    gp: ExactGP
    label: Int[np.ndarray, " n"]

    @classmethod
    def from_labels(
        cls, form: Form, views: Views, label: Int[np.ndarray, " n"], classes: int
    ) -> Indicators:
        """Regress on the indicators of labels 0 ... classes - 1."""
        return cls(ExactGP(form, views, np.eye(classes)[label]), label)

    @cached_property
    def sharpness(self) -> float:
        """Factor of the scores in the softmax that maximizes the leave-one-out likelihood."""
        scores, _ = self.gp.left_out

        def cost(log: float) -> float:
            return -float(np.log(self._softmax(scores, np.exp(log))[self._observed]).mean())

        bounds = (np.log(MIN_SHARPNESS), np.log(MAX_SHARPNESS))
        return float(np.exp(minimize_scalar(cost, bounds=bounds, method="bounded").x))

    @property
    def _observed(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self.label)), self.label

    def _softmax(
        self, scores: Float[np.ndarray, "t c"], sharpness: float
    ) -> Float[np.ndarray, "t c"]:
        # n rows give no evidence for probabilities below 1 / (n + 1).
        floor = 1 / (len(self.label) + 1)
        p = np.exp(log_softmax(sharpness * scores, axis=1))
        return np.asarray((1 - floor) * p + floor / scores.shape[1])

    def predict(self, views: Views) -> Float[np.ndarray, "t c"]:
        """Class probabilities of other rows."""
        return self._softmax(self.gp.predict(views)[0], self.sharpness)
