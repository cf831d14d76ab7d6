"""A score against the number of labels: asking against drawing at random, with a band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import NOTHING, Plot, columns, empty, put
from dashboard.plots.key import LOOKS, Key, width
from dashboard.plots.theme import models, new_figure

MOST = 6  # methods


class LabelEfficiencyPlot(Plot):
    """A line a method over labels; a band of one deviation over repeats where there are some."""

    def __init__(self, title: str, name: str = "label-efficiency", height: int = 380) -> None:
        self.sources = [columns("labels", "score", "low", "high") for _ in range(MOST)]
        plot = new_figure(name, "labels", "", height=height)
        plot.y_range.update(start=0, end=1.02)
        drawn = []
        for k, source in enumerate(self.sources):
            colour, marker, dash = LOOKS[k]
            plot.varea("labels", "low", "high", source=source, color=colour, fill_alpha=0.15)
            plot.line("labels", "score", source=source, color=colour, line_dash=dash,
                      line_width=width(k))  # fmt: skip
            drawn.append(plot.scatter("labels", "score", source=source, color=colour, size=5,
                                      marker=marker))  # fmt: skip
        tips = [("labels", "@labels{0}"), ("score", "@score{0.00} (@low{0.00} to @high{0.00})")]
        plot.add_tools(models.HoverTool(renderers=drawn, tooltips=tips))
        self.key = Key(plot, lines=True, stacked=True)
        super().__init__(title, plot)

    def show(
        self,
        labels: Float[np.ndarray, " r"],
        scores: Float[np.ndarray, "m r"],
        methods: Sequence[str],
        score: str,
        deviation: Float[np.ndarray, "m r"] | None = None,
        of: str = "",
    ) -> None:
        """Show the scores of m methods, NaN where unknown; the first is the one it is about.

        Args:
            labels: How many labels there were at r times.
            scores: The scores.
            methods: Their names.
            score: What it is called.
            deviation: Of the scores over sessions.
            of: Of which sessions they are, said after the score's name.
        """
        names = [str(m) for m in methods][:MOST]
        spread = np.zeros_like(scores) if deviation is None else np.nan_to_num(deviation)
        known = np.isfinite(scores)
        for k, source in enumerate(self.sources):
            if k >= len(names) or not known[k].any():
                empty(source)
                continue
            at = known[k]
            put(source, labels=labels[at], score=scores[k, at],
                low=np.clip(scores[k, at] - spread[k, at], 0, 1),
                high=np.clip(scores[k, at] + spread[k, at], 0, 1))  # fmt: skip
        self.key.name([n if known[k].any() else "" for k, n in enumerate(names)])
        self.figures[0].yaxis[0].axis_label = score
        said = f"{score} {of}".rstrip()
        any_known = known[: len(names)].any()
        self.describe(_in_words(labels, scores, known, names, said) if any_known else NOTHING)


def _in_words(
    labels: Float[np.ndarray, " r"],
    scores: Float[np.ndarray, "m r"],
    known: np.ndarray,
    names: Sequence[str],
    score: str,
) -> str:
    said = [
        f"{name} {scores[k, known[k]][-1]:.2f} with {labels[known[k]][-1]:.0f}"
        for k, name in enumerate(names)
        if known[k].any()
    ]
    words = f"{score} by labels: {', '.join(said)}."
    both = known[0] & known[1] if len(names) > 1 else np.zeros(0, bool)
    if both.sum() > 1:
        steps = labels[both]
        gap = (scores[0, both] - scores[1, both]).astype(float)
        area = float(np.trapezoid(gap, steps) / (steps[-1] - steps[0]))
        words += f" On average {names[0]} is {abs(area):.2f} {'above' if area >= 0 else 'below'} "
        words += f"{names[1]}."
    return words
