"""Scores against the number of missing bands, of this model and of other methods."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from scant.events import Metric, Report
from scant_dashboard.plots.fixed_legend import GROUP_STYLES
from scant_dashboard.plots.score_curve import ScoreCurve
from scant_dashboard.plots.table import figure
from scant_dashboard.plots.theme import models
from scant_dashboard.translate import later, tr

METHODS = (
    later("this model"), later("random forest"), later("gradient boosting"), "CatBoost",
)  # fmt: skip
BEFORE = (METHODS[0], later("random forest, mean filled in"))  # in old reports, without rivals
SCORES = ("RMSE", later("mean log-likelihood"))
TITLE = later("Inputs missing")


class MissingPlot(ScoreCurve):
    """RMSE and mean log-likelihood against the number of features removed at random."""

    def __init__(self, target: str = "z") -> None:
        labels = (tr("RMSE of {target}", target=target), tr("mean log-likelihood (nats)"))
        tips = (("", "@method"), (tr("score"), "@score{0.0000}"))
        super().__init__(TITLE, dict(zip(("missing", "missing-density"), labels)),
                         tr("inputs missing"), tips=tips, size=8)  # fmt: skip
        self.target = target
        self.figures[0].y_range.start = 0

    def show(self, missing: Float[np.ndarray, "_ c"], n_held_out: int = 0) -> None:
        """Show scores by number of missing bands.

        Args:
            missing: Number of missing bands (row 0), then RMSE, log-likelihood and CRPS of each of
                `METHODS`, one row per method; in old reports, RMSE of each of `BEFORE`.
            n_held_out: Number of held-out rows that the scores are of; 0 if unknown.
        """
        count, *rows = missing
        methods = BEFORE if len(rows) == len(BEFORE) else METHODS
        scores = [rows[i : i + len(methods)] for i in range(0, len(rows), len(methods))]
        scores = scores[: len(SCORES)]
        there = [k for k, values in enumerate(scores[0]) if np.isfinite(values).any()]
        lines: list[tuple[np.ndarray, np.ndarray]] = []
        for plot, values in zip(self.figures, scores):
            plot.xaxis.ticker = models.FixedTicker(ticks=[int(c) for c in count])
            lines += [(count, values[k]) for k in there]
            lines += [(count[:0], count[:0])] * (len(GROUP_STYLES) - len(there))
        for k, plot in enumerate(self.figures):
            if plot.visible != (k < len(scores)):
                plot.visible = k < len(scores)
        text = f"{split_of(n_held_out)} {reading(count, scores, methods)}"
        self.draw(text, lines, [tr(methods[k]) for k in there])


def n_rows(report: Report) -> int:
    """Return the number of held-out rows from which bands were removed; 0 if unknown."""
    parts = () if report.verdict is None else report.verdict.parts
    return next((part.rows for part in parts if part.kind == "missing"), 0)


def split_of(rows: int) -> str:
    """Return a sentence that names the rows."""
    if rows:
        return tr(
            "All scores are on the same {rows:,} held-out rows, which had all inputs.", rows=rows
        )
    return tr("All scores are on the held-out rows that had all inputs.")


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
        pairs = "; ".join(
            tr("{score} against {other} ({method}) with {n} missing", n=int(c),
               score=_score(name, own), other=_score(name, finite[b, k]),
               method=tr(methods[b + 1]))
            for k, (c, own, b) in enumerate(zip(count, values[0], best))
        )  # fmt: skip
        score = tr(name)
        parts.append(tr("{score} of this model against the best rival: {pairs}.",
                        score=score[0].upper() + score[1:], pairs=pairs))  # fmt: skip
    return " ".join(parts)


def _score(name: str, value: float) -> str:
    return figure(Metric("", name, float(value)))
