"""Exact GP regression of values, or of indicators of classes, its kernel chosen by leaving one out.

One eigendecomposition of a kernel matrix gives what every row left out would be predicted as, for
each noise (Rasmussen and Williams 2006, 5.4.2), so that a list of kernels takes a second where
gradients take minutes. Of classes the indicators are regressed on (ibid., 6.5); a softmax, at the
temperature under which the left-out rows are most probable, makes probabilities of them.

Inputs come in views, each a matrix of as many rows: an isotropic kernel of all columns, in which
each view has the same share of the distance, or the mean of a kernel of each view.
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
WIDTHS = (0.15, 0.3, 0.6, 1.2)  # lengthscales, in typical distances of two rows
LINEAR = (0.0, 0.3)  # share of straight lines beside the functions of distance
NOISES = tuple(10.0 ** np.arange(-4.0, 2.6, 0.5))  # variance, of the kernel's as a unit
SEARCH_ROWS = 500  # that choose the kernel
COLDEST, HOTTEST = 1.0, 400.0  # by what scores are multiplied before the softmax
FLOOR = 1e-9


class Form(NamedTuple):
    """A kernel and its noise.

    Attributes:
        shape: "linear", "rbf" or "matern" (5/2).
        width: Lengthscale, in typical distances of two rows.
        line: Weight of a linear kernel beside it.
        apart: Whether each view has a kernel of its own, which are averaged.
        noise: Variance.
    """

    shape: str
    width: float
    line: float
    apart: bool
    noise: float


@dataclass(frozen=True)
class Similarity:
    """Kernel matrices of rows in views, scaled to the rows that are learned from."""

    centres: list[Float[np.ndarray, " _"]]
    units: list[float]  # half the mean squared distance of two rows, by view

    @classmethod
    def of(cls, views: Views) -> Similarity:
        """Scaled to these rows."""
        units = [max(float(v.var(0).sum()), FLOOR) for v in views]
        return cls([v.mean(0) for v in views], units)

    def parts(self, a: Views, b: Others) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances and products of rows, by view, `"v n m"` each."""
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
        """The kernel matrix from what `parts` gives."""
        squares, products = parts
        line = products.mean(0)
        if form.shape == "linear":
            return np.asarray(line)
        squares = (squares if form.apart else squares.mean(0, keepdims=True)) / form.width**2
        if form.shape == "rbf":
            kernels = np.exp(-squares / 2)
        else:
            root = np.sqrt(5 * squares)
            kernels = (1 + root + 5 * squares / 3) * np.exp(-root)
        return np.asarray(kernels.mean(0) + form.line * line)


def chosen(
    problems: Sequence[tuple[Sequence[np.ndarray], np.ndarray]], linear: bool = False
) -> Form:
    """The kernel whose left-out errors are the least, over all problems together.

    Args:
        problems: Views of rows, and their targets, `"n c"`; n and c differ from one to the next,
            so that no shape holds for all.
        linear: Of the straight lines alone.
    """
    several = len(problems[0][0]) > 1
    forms = [Form("linear", 1.0, 0.0, False, 0.0)]
    if not linear:
        shapes = product(("rbf", "matern"), WIDTHS, LINEAR, (False, True) if several else (False,))
        forms = [Form(*of, 0.0) for of in shapes]
    errors = np.zeros((len(forms), len(NOISES)))
    for views, y in problems:
        some = _some(len(y))
        views, y = [v[some] for v in views], y[some]
        parts = Similarity.of(views).parts(views, views)
        scale = max(float(y.var(0).sum()), FLOOR) / len(y)
        for i, form in enumerate(forms):
            values, vectors = np.linalg.eigh(Similarity.matrix(form, parts))
            turned = vectors.T @ (y - y.mean(0))
            for j, noise in enumerate(NOISES):
                damped = 1 / (np.maximum(values, 0.0) + noise)
                weights = vectors @ (damped[:, None] * turned)
                error = weights / (vectors**2 @ damped)[:, None]
                errors[i, j] += (error**2).mean() / scale
    best, least = divmod(int(errors.argmin()), len(NOISES))
    return forms[best]._replace(noise=float(NOISES[least]))


def _some(n: int) -> Int[np.ndarray, " m"]:
    """At most `SEARCH_ROWS` of n rows, always the same."""
    return np.sort(np.random.default_rng(0).permutation(n)[:SEARCH_ROWS])


@dataclass(frozen=True)
class ExactGP:
    """GP regression of some targets with one kernel.

    Attributes:
        form: The kernel.
        views: Rows learned from.
        y: Their targets.
    """

    form: Form
    views: Views
    y: Float[np.ndarray, "n c"]

    @cached_property
    def similarity(self) -> Similarity:
        return Similarity.of(self.views)

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        K = Similarity.matrix(self.form, self.similarity.parts(self.views, self.views))
        np.fill_diagonal(K, K.diagonal() + self.form.noise)
        factor: tuple[np.ndarray, bool] = cho_factor(K, lower=True, overwrite_a=True)
        return factor

    @cached_property
    def weights(self) -> Float[np.ndarray, "n c"]:
        """(K + noise)^-1 (y - mean)."""
        return np.asarray(cho_solve(self._factor, self.y - self.y.mean(0)))

    @cached_property
    def left_out(self) -> tuple[Float[np.ndarray, "n c"], Float[np.ndarray, " n"]]:
        """What each row would be predicted as without it: means, and variances of unit height."""
        diagonal = cho_solve(self._factor, np.eye(len(self.y))).diagonal()
        return self.y - self.weights / diagonal[:, None], 1 / diagonal

    @cached_property
    def height(self) -> float:
        """What variances are multiplied by, so that left-out errors are as large as they say."""
        mean, variance = self.left_out
        return max(float(((self.y - mean) ** 2 / variance[:, None]).mean()), FLOOR**2)

    def ask(self, views: Views) -> tuple[Float[np.ndarray, "t c"], Float[np.ndarray, " t"]]:
        """Means of rows asked, and variances, noise included."""
        means, variances = [self.y[:0]], [np.empty(0)]
        for begin in range(0, len(views[0]), SEARCH_ROWS):  # bounds the memory
            some = [v[begin : begin + SEARCH_ROWS] for v in views]
            across = Similarity.matrix(self.form, self.similarity.parts(some, self.views))
            means.append(across @ self.weights + self.y.mean(0))
            solved = cho_solve(self._factor, across.T)
            variances.append(self._own(some) - (across * solved.T).sum(1))
        variance = np.maximum(np.concatenate(variances), 0.0) + self.form.noise
        return np.concatenate(means), self.height * variance

    def _own(self, views: Views) -> Float[np.ndarray, " t"]:
        """Prior variances of unit height."""
        pieces = zip(views, self.similarity.centres, self.similarity.units)
        line = np.mean([((v - centre) ** 2).sum(1) / unit for v, centre, unit in pieces], axis=0)
        return np.asarray(line if self.form.shape == "linear" else 1 + self.form.line * line)


@dataclass(frozen=True)
class Indicators:
    """Probabilities of classes, from GP regression of their indicators."""

    gp: ExactGP
    label: Int[np.ndarray, " n"]

    @classmethod
    def of(cls, form: Form, views: Views, label: Int[np.ndarray, " n"], classes: int) -> Indicators:
        """Of rows and their classes, numbered from 0."""
        return cls(ExactGP(form, views, np.eye(classes)[label]), label)

    @cached_property
    def sharpness(self) -> float:
        """By what scores are multiplied before the softmax."""
        scores, _ = self.gp.left_out

        def cost(log: float) -> float:
            return -float(np.log(self._softmax(scores, np.exp(log))[self._own]).mean())

        bounds = (np.log(COLDEST), np.log(HOTTEST))
        return float(np.exp(minimize_scalar(cost, bounds=bounds, method="bounded").x))

    @property
    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self.label)), self.label

    def _softmax(
        self, scores: Float[np.ndarray, "t c"], sharpness: float
    ) -> Float[np.ndarray, "t c"]:
        # As many rows as there are say nothing of what is rarer than one of them.
        chance = 1 / (len(self.label) + 1)
        p = np.exp(log_softmax(sharpness * scores, axis=1))
        return np.asarray((1 - chance) * p + chance / scores.shape[1])

    def ask(self, views: Views) -> Float[np.ndarray, "t c"]:
        """Probabilities of the classes of rows asked."""
        return self._softmax(self.gp.ask(views)[0], self.sharpness)
