"""Rows that lie outside what a model has learned, by one rule for all studies.

A row is outside where it is farther from the nearest learned row than all but a hundredth of the
learned rows are from theirs: the conformal nearest-neighbor detector (Laxhammar and Falkman 2010,
Conformal prediction for distribution-independent anomaly detection in streaming vessel data). Of
rows that are drawn as the learned ones were it flags one in a hundred, whatever their distribution.
Inputs tell it, not the model's variance: that of basis functions that decay (GPz) shrinks far from
the data, and a classifier's probability goes to either end there.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from sklearn.neighbors import NearestNeighbors

from scant.studies.split import evenly_spaced

ALARMS = 0.01  # share of the rows like the learned ones that are flagged
MOST = 2000  # learned rows that are compared with
_AT_ONCE = 256  # rows whose distances to boxes are held
_ROWS = 250  # rows whose distances to points are held
_ROUNDING = 1e-14  # of sums of a few squares, in units of these


class LearnedRegion:
    """Where rows were learned from.

    Args:
        low: Learned rows on a scale where distances count alike; NaN where a value is missing.
        high: Of rows that are boxes the other corners; None: rows are points.
    """

    def __init__(
        self, low: Float[np.ndarray, "n d"], high: Float[np.ndarray, "n d"] | None = None
    ) -> None:
        both = low if high is None else np.hstack([low, high])
        both = evenly_spaced(np.unique(both[np.isfinite(both).any(1)], axis=0), MOST)
        d = low.shape[1]
        self._low, self._high = both[:, :d], both[:, -d:]
        self._near: NearestNeighbors | None = None
        self.reach = np.inf
        if len(both) < 2:
            return
        if high is None:
            metric = "nan_euclidean" if np.isnan(both).any() else "euclidean"
            self._near = NearestNeighbors(n_neighbors=1, metric=metric).fit(both)
            apart = self._near.kneighbors()[0][:, 0]
        else:
            apart = self._from_boxes((self._low + self._high) / 2, itself=False)
        apart = apart[np.isfinite(apart)]
        if len(apart):
            self.reach = float(np.quantile(apart, 1 - ALARMS, method="higher"))

    def outside(
        self, low: Float[np.ndarray, "n d"], high: Float[np.ndarray, "n d"] | None = None
    ) -> Bool[np.ndarray, " n"]:
        """Which rows lie outside; one without a single value does, where anything can."""
        if not len(low) or not np.isfinite(self.reach):
            return np.zeros(len(low), dtype=bool)
        middle = low if high is None else (low + high) / 2
        if self._near is None:
            return self._from_boxes(middle) > self.reach * (1 + 1e-9)
        known = np.isfinite(middle).any(1)
        farthest = self.reach * (1 + 1e-9)
        result, sure = ~known, ~known
        for start in range(0, len(middle), _ROWS):
            at = slice(start, start + _ROWS)
            square, error = self._squares(middle[at])
            result[at] |= square > farthest**2
            sure[at] |= np.abs(square - farthest**2) > error
        if not sure.all():
            near = self._near
            if np.isnan(middle[~sure]).any() and near.metric == "euclidean":
                near = NearestNeighbors(n_neighbors=1, metric="nan_euclidean").fit(self._low)
            away = near.kneighbors(middle[~sure])[0][:, 0]
            result[~sure] = np.nan_to_num(away, nan=np.inf) > farthest
        return result

    def _squares(
        self, rows: Float[np.ndarray, "n d"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Squared distance to the nearest learned row, by matrix products, and its error at most.

        Where values are missing, in a row or in a learned one, the mean square of those that both
        have stands for the others.
        """
        d = rows.shape[1]
        there, own = np.isfinite(rows), np.isfinite(self._low)
        x, y = np.where(there, rows, 0.0), np.where(own, self._low, 0.0)
        size = (x**2).sum(1)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if own.all():
                share = d / there.sum(1)
                square = np.hstack([-2 * x, there]) @ np.hstack([y, y**2]).T
                nearest = share * (square.min(1) + size)
            else:
                share = np.full(len(x), d)
                square = np.hstack([x**2, -2 * x, there]) @ np.hstack([own, y, y**2]).T
                both = there.astype(float) @ own.T.astype(float)
                nearest = np.where(both > 0, square * (d / both), np.inf).min(1)
            error = _ROUNDING * d * share * (size + (y**2).sum(1).max())
        return nearest, np.nan_to_num(error, nan=np.inf)

    def _from_boxes(
        self, middle: Float[np.ndarray, "n d"], itself: bool = True
    ) -> Float[np.ndarray, " n"]:
        """Distance of points to the nearest box, zero inside; not `itself`: to another box."""
        result = np.empty(len(middle))
        for start in range(0, len(middle), _AT_ONCE):
            own = middle[start : start + _AT_ONCE, None]
            gap = np.maximum(np.maximum(self._low - own, own - self._high), 0)
            away = np.sqrt((gap**2).sum(2))
            if not itself:
                rows = np.arange(len(away))
                away[rows, start + rows] = np.inf
            result[start : start + _AT_ONCE] = away.min(1)
        return result
