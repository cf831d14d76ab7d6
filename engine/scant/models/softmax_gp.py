"""Softmax GP classification at the posterior mode, of columns that may have missing values.

    p(c | x) = softmax(f(x))_c,    f_c ~ GP(0, C k) for each class

f is the mode of its posterior (Rasmussen and Williams 2006, GPML, section 3.5) in the span of the
landmarks' kernel functions (subset of regressors, GPML 8.3.1), plus a free constant.
`softmax_mixture` selects kernels and stacks their models.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

QUANTILES = 101
MAX_DEVIATIONS = 5.0  # standardized values are clipped to this
STEPS = 100  # L-BFGS steps to the mode


Rows = Float[np.ndarray, "n d"]
Probabilities = Float[np.ndarray, "n c"]


@dataclass(frozen=True)
class Inputs:
    """Preprocessing of columns with missing values: standardization, or ranks of unit variance.

    Attributes:
        median: Median of each column, which replaces missing values.
        center: Mean of each column.
        scale: Standard deviation of each column.
        quantiles: Quantiles of each column, for the ranks.
        gaps: Columns that get an additional indicator of missing values.
        used: Columns that vary.
    """

    median: Float[np.ndarray, " d"]
    center: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    quantiles: Float[np.ndarray, "q d"]
    gaps: Bool[np.ndarray, " d"]
    used: Bool[np.ndarray, " d"]

    @classmethod
    def fit(cls, x: Rows) -> Inputs:
        """Fit the preprocessing to rows; columns without any value are dropped."""
        has_missing = np.isnan(x).any(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # for columns without a value
            median = np.nan_to_num(np.nanmedian(x, axis=0))
        filled = np.where(np.isnan(x), median, x)
        scale = filled.std(0)
        levels = np.linspace(0, 1, min(len(x), QUANTILES))
        used = scale > 1e-9 * np.maximum(1.0, np.abs(median))
        return cls(
            median, filled.mean(0), np.where(used, scale, 1.0),
            np.quantile(filled, levels, axis=0), has_missing, used,
        )  # fmt: skip

    def transform(self, x: Rows, ranks: bool) -> Float[np.ndarray, "n e"]:
        """Standardized values or ranks, followed by indicators of missing values."""
        filled = np.where(np.isnan(x), self.median, x)
        if ranks:
            columns = np.column_stack(
                [_rank(filled[:, j], q) for j, q in enumerate(self.quantiles.T)]
            )
        else:
            columns = np.clip((filled - self.center) / self.scale, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        return np.hstack([columns[:, self.used], np.isnan(x[:, self.gaps]).astype(float)])


def _rank(x: Float[np.ndarray, " n"], quantiles: Float[np.ndarray, " q"]) -> Any:
    """Ranks of values among quantiles, ties averaged, with mean 0 and variance 1."""
    levels = np.linspace(0, 1, len(quantiles))
    total = np.interp(x, quantiles, levels) - np.interp(-x, -quantiles[::-1], -levels[::-1])
    return (total / 2 - 0.5) * 12**0.5


class Kernel(NamedTuple):
    """Kernel over preprocessed columns, with its amplitude C.

    `length` is in units of the typical distance between rows: in d columns gamma is
    1 / (2 d length^2) for "rbf" and 1 / (d length) for "laplacian".
    """

    form: str  # linear, rbf, laplacian
    ranks: bool
    ard: bool = False
    length: float = 1.0
    amplitude: float = 1.0

    def __call__(self, a: Rows, b: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "n m"]:
        d = a.shape[1]
        if self.form == "rbf":
            return np.asarray(rbf_kernel(a, b, gamma=0.5 / (d * self.length**2)))
        return np.asarray(laplacian_kernel(a, b, gamma=1 / (d * self.length)))


@dataclass(frozen=True)
class SoftmaxGP:
    """Softmax model with one kernel.

    Attributes:
        kernel: The kernel.
        scale: Factor of each column before the kernel.
        landmarks: Scaled landmark rows; empty for a linear kernel.
        coefficients: Coefficients of the landmarks' kernel functions, or of the columns.
        constant: Constant of each class.
    """

    kernel: Kernel
    scale: Float[np.ndarray, " d"]
    landmarks: Float[np.ndarray, "m d"]
    coefficients: Float[np.ndarray, "e c"]
    constant: Float[np.ndarray, " c"]

    def probability(self, x: Rows) -> Probabilities:
        """p(c | x) at the mode."""
        features = x * self.scale
        if len(self.landmarks):
            features = self.kernel(features, self.landmarks)
        f = features @ self.coefficients + self.constant
        p = np.exp(f - f.max(1, keepdims=True))
        return np.asarray(p / p.sum(1, keepdims=True))


class Problem(NamedTuple):
    """Training rows, indices of the landmarks, and the scale of the columns."""

    x: Rows
    label: Int[np.ndarray, " n"]
    classes: int
    landmarks: Int[np.ndarray, " m"]
    scale: Float[np.ndarray, " d"]

    def design(self, kernel: Kernel) -> tuple[Rows, Float[np.ndarray, "m m"] | None]:
        """Features whose inner products are the kernel, and the landmarks' Cholesky factor."""
        scaled = self.x * self.scale
        if kernel.form == "linear":
            return scaled, None
        landmarks = scaled[self.landmarks]
        K = kernel(landmarks, landmarks)
        factor = cholesky(K + 1e-6 * np.eye(len(K)), lower=True)
        features = solve_triangular(factor, kernel(scaled, landmarks).T, lower=True).T
        return np.asarray(features), np.asarray(factor)

    def fit_mode(
        self, kernel: Kernel, features: Rows, rows: Int[np.ndarray, " k"]
    ) -> tuple[Float[np.ndarray, "e c"], Float[np.ndarray, " c"]]:
        """Coefficients and constants at the posterior mode given some rows."""
        regression = LogisticRegression(C=kernel.amplitude, tol=1e-3, max_iter=STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # close enough after STEPS
            regression.fit(features[rows], self.label[rows])
        classes, binary = regression.classes_, len(regression.classes_) == 2
        weights = np.zeros((features.shape[1], self.classes))
        constant = np.full(self.classes, -30.0)  # for classes without rows
        weights[:, classes] = (
            np.stack([0 * regression.coef_[0], regression.coef_[0]], 1)
            if binary
            else (regression.coef_.T)
        )
        constant[classes] = [0.0, regression.intercept_[0]] if binary else regression.intercept_
        return weights, constant

    def model(self, kernel: Kernel) -> SoftmaxGP:
        """Fit the model to all rows."""
        features, factor = self.design(kernel)
        weights, constant = self.fit_mode(kernel, features, np.arange(len(features)))
        if factor is None:
            return SoftmaxGP(kernel, self.scale, self.x[:0], weights, constant)
        weights = np.asarray(solve_triangular(factor, weights, lower=True, trans="T"))
        landmarks = self.x[self.landmarks] * self.scale
        return SoftmaxGP(kernel, self.scale, landmarks, weights, constant)
