"""Scores against the number of labels: active against random sampling, with a band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.score_curve import Line, ScoreCurve
from scant_dashboard.translate import later, tr

PLAIN = later("{score}: {values}.")
ABOVE = later(
    "{score}: {values}. On average over the numbers of labels, {one} is {difference:.2f} above "
    "{other}."
)
BELOW = later(
    "{score}: {values}. On average over the numbers of labels, {one} is {difference:.2f} below "
    "{other}."
)
REACHED = later("{method} {score:.2f} with {n:.0f} labels")


class LabelEfficiencyPlot(ScoreCurve):
    """One line per method over labels, with a band of one standard deviation if known."""

    def __init__(self, title: str, name: str = "label-efficiency") -> None:
        tips = (
            (tr("labels"), "@x{0}"),
            (tr("score"), "@score{0.00} (@low{0.00} – @high{0.00})"),
        )
        super().__init__(title, {name: ""}, tr("labels"), tips=tips, size=5, band=True, height=320)
        self.figures[0].y_range.update(start=0, end=1.02)

    def show(
        self,
        labels: Float[np.ndarray, " r"],
        scores: Float[np.ndarray, "m r"],
        methods: Sequence[str],
        score: str,
        deviation: Float[np.ndarray, "m r"] | None = None,
        of: str = "",
    ) -> None:
        """Show the scores of m methods, NaN where unknown; the first method is the plot's subject.

        Args:
            labels: Numbers of labels at r times.
            scores: The scores.
            methods: Names of the methods.
            score: Name of the score.
            deviation: Standard deviation over sessions.
            of: Name of the score with that of its patches or sessions, a field `score` in it.
        """
        spread = np.zeros_like(scores) if deviation is None else np.nan_to_num(deviation)
        lines: list[Line] = []
        for one, around in zip(scores, spread):
            at = np.isfinite(one)
            mean, low, high = one[at], one[at] - around[at], one[at] + around[at]
            lines.append((labels[at], mean, np.clip(low, 0, 1), np.clip(high, 0, 1)))
        self.figures[0].yaxis[0].axis_label = score
        methods = [tr(name) for name in methods]
        messages = [
            tr(REACHED, method=name, score=line[1][-1], n=line[0][-1])
            for name, line in zip(methods, lines)
            if len(line[0])
        ]
        reading, compared = PLAIN, {}
        difference = _mean_difference(labels, scores) if len(scores) > 1 else None
        if difference is not None:
            reading = ABOVE if difference >= 0 else BELOW
            compared = {"one": methods[0], "other": methods[1], "difference": abs(difference)}
        named = tr(of, score=score) if of else score
        text = tr(reading, score=named, values=", ".join(messages), **compared)
        self.draw(text if messages else NOTHING, lines, methods)


def _mean_difference(
    labels: Float[np.ndarray, " r"], scores: Float[np.ndarray, "m r"]
) -> float | None:
    """Return the first method's mean lead over the second; None if too few labels have both."""
    both = np.isfinite(scores[:2]).all(axis=0)
    if both.sum() < 2:
        return None
    steps = labels[both]
    difference = (scores[0, both] - scores[1, both]).astype(float)
    return float(np.trapezoid(difference, steps) / (steps[-1] - steps[0]))
