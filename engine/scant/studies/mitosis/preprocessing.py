"""Standardization and principal components of a table's columns, and their inverse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from scant.errors import BadInput

COMPLETED = 8  # alternations between estimates of missing cells and of principal components


@dataclass(frozen=True)
class Columns:
    """Standardization and principal components of columns, and their inverse.

    Attributes:
        centre: Mean of each column.
        scale: Scale of each column; 1 for pixels.
        axes: Principal components, rows of unit length; empty: columns are learned as they are.
        variance: Variance of each component.
        left: Residual variance of a column.
    """

    centre: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]
    axes: Float[np.ndarray, "k d"]
    variance: Float[np.ndarray, " k"]
    left: float

    @classmethod
    def of(cls, x: Float[np.ndarray, "n d"], components: int, pixels: bool) -> Columns:
        """Fit to rows that may have missing cells (NaN).

        Args:
            x: Training rows.
            components: Number of components; 0, or the number of features: no rotation.
            pixels: True if the columns are pixels, which have one common scale.

        Raises:
            BadInput: The rows are all equal, or a column has no value.
        """
        observed = np.isfinite(x)
        empty = np.flatnonzero(~observed.any(0))
        if len(empty):
            raise BadInput(
                f"No training row has a value in feature {empty[0] + 1}; "
                "leave the column out, or fill it."
            )
        centre = np.nanmean(x, axis=0)
        spread = np.ones(x.shape[1]) if pixels else np.nanstd(x, axis=0)
        scale = np.where(spread > 1e-12, spread, 1.0)
        z = np.where(observed, (x - centre) / scale, 0.0)
        if not np.abs(z).max() > 1e-9:
            raise BadInput("All training rows are the same; there is nothing to separate.")
        count = min(components, len(x) - 1, x.shape[1])
        if not count or (not pixels and components >= x.shape[1]):
            no_axes = np.empty((0, x.shape[1]))
            return cls(centre, scale, no_axes, np.empty(0), 0.0)
        result = cls(centre, scale, *_axes(z, count))
        for _ in range(COMPLETED if not observed.all() else 0):
            z = np.where(observed, z, result._scores(np.where(observed, z, np.nan)) @ result.axes)
            result = cls(centre, scale, *_axes(z, count))
        axes = result.axes.astype(np.float32).astype(np.float64)  # as they are stored
        return cls(centre, scale, axes, result.variance, result.left)

    def forward(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Transform rows; without components, missing cells stay NaN.

        Values are rounded to single precision, so that a stored model gets identical inputs.
        """
        z = (x - self.centre) / self.scale
        components = z if not len(self.axes) else self._scores(z)
        return components.astype(np.float32).astype(np.float64)

    def back(self, z: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n d"]:
        """Transform back to rows of the table."""
        standardized = z @ self.axes if len(self.axes) else z
        return np.asarray(standardized * self.scale + self.centre)

    def spread(self, variance: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n d"]:
        """Standard deviation of columns, from variances of the transformed values."""
        column_variance = variance @ self.axes**2 + self.left if len(self.axes) else variance
        return np.asarray(np.sqrt(column_variance) * self.scale)

    def _scores(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Components; their posterior mean if cells are missing (probabilistic PCA)."""
        observed = np.isfinite(z)
        result = np.where(observed, z, 0.0) @ self.axes.T
        prior = np.diag(max(self.left, 1e-9) / np.maximum(self.variance, 1e-12))
        for i in np.flatnonzero(~observed.all(1)):
            part = self.axes[:, observed[i]]
            result[i] = np.linalg.solve(part @ part.T + prior, part @ z[i, observed[i]])
        return np.asarray(result)


def _axes(
    z: Float[np.ndarray, "n d"], count: int
) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"], float]:
    """Leading principal components, their variances, and the residual variance of a column."""
    from scipy.linalg import eigh

    n, d = z.shape
    if d <= n:
        values, vectors = eigh(z.T @ z, subset_by_index=(d - count, d - 1))
        axes = vectors.T[::-1]
    else:
        values, vectors = eigh(z @ z.T, subset_by_index=(n - count, n - 1))
        axes = vectors.T[::-1] @ z
    values = np.maximum(values[::-1], 0.0)
    length = np.linalg.norm(axes, axis=1, keepdims=True)
    axes = axes / np.where(length > 1e-12, length, 1.0)
    left = max((z**2).sum() - values.sum(), 0.0) / (n * max(d - count, 1))
    # An eigenvector's sign is arbitrary; its largest entry is made positive on every machine.
    sign = np.sign(axes[np.arange(count), np.abs(axes).argmax(1)])
    return axes * sign[:, None], values / n, float(left)
