"""A metric by method, over several splits of the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import BLUE, VERMILION, models, new_figure
from scant_dashboard.translate import as_number, later, tr

ROW = 34  # pixels per method
LOWER = ("NMSE", "NLPD", "RMSE", "SMSE", "SNLP", "ECE")  # lower is better
SIGNIFICANCE = 0.05  # level of the paired t-test
ALL = later("Over {splits} splits, a paired t-test separates {name} from {separated}.")
SOME = later(
    "Over {splits} splits, a paired t-test separates {name} from {separated}, but not from {rest}."
)
NO_METHOD = later(
    "Over {splits} splits, a paired t-test separates {name} from none of the other methods."
)


class MethodsPlot(Plot):
    """One row per method: a small dot per split, a large one for mean ± 1 standard deviation."""

    def __init__(self, title: str = later("Beside other methods")) -> None:
        self.dots = models.ColumnDataSource(
            {"method": [], "value": [], "low": [], "high": [], "color": [], "marker": []}
        )
        self.splits = models.ColumnDataSource({"method": [], "value": [], "color": []})
        plot = new_figure("methods", "", "", height=200, y_range=models.FactorRange(factors=[]))
        plot.scatter("value", "method", source=self.splits, size=5, color="color", alpha=0.5)
        plot.segment("low", "method", "high", "method", source=self.dots, line_color="color",
                     line_width=3, line_alpha=0.5)  # fmt: skip
        means = plot.scatter("value", "method", source=self.dots, marker="marker", size=12,
                             color="color")  # fmt: skip
        interval = tr("{low} to {high}", low="@low{0.000}", high="@high{0.000}")
        tips = [("", "@method"), ("", f"@value{{0.000}} ({interval})")]
        plot.add_tools(models.HoverTool(renderers=[means], tooltips=tips))
        plot.xgrid.visible = True
        super().__init__(title, plot)

    def show(
        self,
        scores: Float[np.ndarray, "m r"],
        p: Float[np.ndarray, " m"],
        methods: Sequence[str],
        score: str,
    ) -> None:
        """Show scores.

        Args:
            scores: Scores of m methods on r splits, the run's own model first; NaN if missing.
            p: P-value of a paired t-test of that model against each method; NaN if missing.
            methods: Names of the methods.
            score: Name of the score.
        """
        have = [i for i, row in enumerate(scores) if np.isfinite(row).any()]
        names = [tr(str(methods[i])) for i in have]
        mean = np.array([np.nanmean(scores[i]) for i in have])
        spread = np.array(
            [np.nanstd(row, ddof=1) if np.isfinite(row).sum() > 1 else 0 for row in scores[have]]
        )
        colors = [VERMILION if i else BLUE for i in have]
        self.dots.data = {
            "method": names,
            "value": mean,
            "low": mean - spread,
            "high": mean + spread,
            "color": colors,
            "marker": ["diamond" if i else "circle" for i in have],
        }
        each = [(n, float(v), c) for n, i, c in zip(names, have, colors) for v in scores[i]]
        finite = [one for one in each if np.isfinite(one[1])]
        self.splits.data = dict(
            zip(("method", "value", "color"), map(list, zip(*finite)), strict=False)
        )
        less = score.split(" ")[0] in LOWER
        plot = self.figures[0]
        plot.y_range.factors = names[::-1]
        plot.height = 90 + ROW * len(names)
        plot.xaxis.axis_label = (
            tr("{score} (lower is better)", score=score)
            if less
            else tr("{score} (higher is better)", score=score)
        )
        order = np.argsort(mean if less else -mean, kind="stable")
        self.describe(
            _ranked(names, mean, spread, order, score, scores.shape[1])
            + _tested(names, p[have], scores.shape[1])
        )

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def _ranked(
    names: Sequence[str],
    mean: Float[np.ndarray, " m"],
    spread: Float[np.ndarray, " m"],
    order: Int[np.ndarray, " m"],
    score: str,
    splits: int,
) -> str:
    if len(names) < 2:
        return tr("No other method was fitted to the same rows.")
    numbers = [f"{m:.3f}" + (f" ± {s:.3f}" if s else "") for m, s in zip(mean, spread)]
    methods = ", ".join(f"{names[i]} {as_number(numbers[i])}" for i in order)
    if splits > 1:
        score = tr("{score}, mean of {n} splits", score=score, n=splits)
    return tr("{score}, best first: {methods}.", score=score, methods=methods)


def _tested(names: Sequence[str], p: Float[np.ndarray, " m"], splits: int) -> str:
    """Name the methods that a paired t-test over the splits separates from the run's own."""
    lines = [f"{n} (p {as_number(f'{v:.2g}')})" for n, v in zip(names, p) if v < SIGNIFICANCE]
    rest = [n for n, v in zip(names, p) if v >= SIGNIFICANCE]
    if not lines and not rest:
        return ""
    sentence = (SOME if rest else ALL) if lines else NO_METHOD
    return " " + tr(sentence, splits=splits, name=names[0], separated=", ".join(lines),
                    rest=", ".join(rest))  # fmt: skip
