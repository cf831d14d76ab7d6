"""Scores against the number of missing bands, of this model and of other methods."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.fixed_legend import GROUP_STYLES
from scant_dashboard.plots.score_curve import ScoreCurve
from scant_dashboard.plots.theme import models

METHODS = ("this model", "random forest", "gradient boosting", "CatBoost")
BEFORE = ("this model", "random forest, mean filled in")  # in old reports, without rivals
SCORES = ("RMSE", "mean log-likelihood")


class MissingPlot(ScoreCurve):
    """RMSE and mean log-likelihood against the number of features removed at random."""

    def __init__(self, target: str = "z") -> None:
        labels = (f"RMSE of {target}", "mean log-likelihood (nats)")
        super().__init__("Bands missing", dict(zip(("missing", "missing-density"), labels)),
                         "bands missing", tips=(("", "@method"), ("score", "@score{0.0000}")),
                         size=8)  # fmt: skip
        self.target = target
        self.figures[0].y_range.start = 0

    def show(self, missing: Float[np.ndarray, "_ c"]) -> None:
        """Show scores by number of missing bands.

        Args:
            missing: Number of missing bands (row 0), then RMSE, log-likelihood and CRPS of each of
                `METHODS`, one row per method; in old reports, RMSE of each of `BEFORE`.
        """
        count, *rows = missing
        methods = BEFORE if len(rows) == len(BEFORE) else METHODS
        scores = [rows[i : i + len(methods)] for i in range(0, len(rows), len(methods))]
        scores = scores[: len(SCORES)]
        there = [k for k, values in enumerate(scores[0]) if np.isfinite(values).any()]
        lines: list[tuple[np.ndarray, np.ndarray]] = []
        for figure, values in zip(self.figures, scores):
            figure.xaxis.ticker = models.FixedTicker(ticks=[int(c) for c in count])
            lines += [(count, values[k]) for k in there]
            lines += [(count[:0], count[:0])] * (len(GROUP_STYLES) - len(there))
        for k, figure in enumerate(self.figures):
            if figure.visible != (k < len(scores)):
                figure.visible = k < len(scores)
        self.draw(reading(count, scores, methods), lines, [methods[k] for k in there])


def reading(
    count: Float[np.ndarray, " c"],
    scores: list[list[Float[np.ndarray, " c"]]],
    methods: tuple[str, ...],
) -> str:
    """Compare this model with the best rival at each number of missing bands."""
    parts = []
    for name, values, larger in zip(SCORES, scores, (False, True)):
        rivals = np.array(values[1:])
        finite = np.where(np.isfinite(rivals), rivals, -np.inf if larger else np.inf)
        best = finite.argmax(0) if larger else finite.argmin(0)
        digits = 2 if larger else 4
        pairs = "; ".join(
            f"{int(c)} missing: {own:.{digits}f} against {finite[b, k]:.{digits}f}"
            f" ({methods[b + 1]})"
            for k, (c, own, b) in enumerate(zip(count, values[0], best))
        )
        parts.append(f"{name[0].upper()}{name[1:]} of this model and of the best rival, {pairs}.")
    return f"On a part of the held-out rows. {' '.join(parts)}"
