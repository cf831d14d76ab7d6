"""How many held-out rows of each output are put into their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from dashboard.plots.base import Plot
from dashboard.plots.theme import BLUE, GREY, GROUPS, models, new_figure, quiet_legend

ROW = 26  # pixels of an output
LOOKS = tuple(zip(GROUPS[1:], ("diamond", "triangle", "square", "plus")))
MODEL, CHANCE = "this model", "guessing"


class RecallPlot(Plot):
    """Outputs down, recall across: this model, others on the same rows, and guessing."""

    def __init__(self, title: str) -> None:
        self.dots = models.ColumnDataSource(
            {"recall": [], "output": [], "method": [], "colour": [], "marker": [], "size": []}
        )
        plot = new_figure("recall", "recall of held-out rows", "", height=200,
                          x_range=models.Range1d(-0.02, 1.02),
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        drawn = plot.scatter("recall", "output", source=self.dots, marker="marker", size="size",
                             color="colour", legend_field="method")  # fmt: skip
        tips = [("", "@output"), ("@method", "@recall{0.0%}")]
        plot.add_tools(models.HoverTool(renderers=[drawn], tooltips=tips))
        plot.xaxis.formatter = models.NumeralTickFormatter(format="0%")
        plot.xgrid.visible = plot.ygrid.visible = True
        quiet_legend(plot)
        plot.legend[0].click_policy = "none"
        super().__init__(title, plot)

    def show(
        self,
        recall: Float[np.ndarray, " d"],
        outputs: Sequence[str],
        classes: Sequence[int],
        others: Mapping[str, Float[np.ndarray, " d"]] | None = None,
    ) -> None:
        """Show recalls.

        Args:
            recall: Of this model; NaN where an output has no held-out row.
            outputs: Their names.
            classes: How many classes each has.
            others: The recalls of other methods.
        """
        names = [str(name) for name in outputs]
        said = {CHANCE: (1 / np.maximum(np.asarray(classes, float), 1), GREY, "dash", 12)}
        for (method, values), (colour, marker) in zip((others or {}).items(), LOOKS):
            said[method] = (np.asarray(values, float), colour, marker, 9)
        said[MODEL] = (np.asarray(recall, float), BLUE, "circle", 12)
        kept = [
            (float(v), name, method, colour, marker, size)
            for method, (values, colour, marker, size) in said.items()
            for name, v in zip(names, values)
            if np.isfinite(v)
        ]
        fresh = dict(zip(self.dots.data, map(list, zip(*kept)))) if kept else {}
        if fresh and any(list(self.dots.data[k]) != v for k, v in fresh.items()):
            self.dots.data = fresh
        plot = self.figures[0]
        if list(plot.y_range.factors) != names[::-1]:
            plot.y_range.factors = names[::-1]
            plot.height = 110 + ROW * len(names)
        self.describe(_in_words(said, names))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def _in_words(said: Mapping[str, tuple], names: Sequence[str]) -> str:
    own = said[MODEL][0]
    if not np.isfinite(own).any():
        return "No row was held out."
    best, worst = int(np.nanargmax(own)), int(np.nanargmin(own))
    words = f"Recall {np.nanmean(own):.1%} on average over {len(names)} outputs"
    if len(names) > 1:
        words += f", from {own[worst]:.1%} ({names[worst]}) to {own[best]:.1%} ({names[best]})"
    means = {m: float(np.nanmean(v[0])) for m, v in said.items() if np.isfinite(v[0]).any()}
    rest = [f"{m} {mean:.1%}" for m, mean in means.items() if m != MODEL]
    return f"{words}; {', '.join(rest)}."
