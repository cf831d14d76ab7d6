"""How many held-out rows of each output are put into their class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import BLUE, GRAY, GROUPS, models, new_figure, quiet_legend

ROW, TIGHT, MANY = 26, 16, 12  # pixels of an output, the same where there are more than so many
LINE, MARGINS = 22, 106  # pixels of a method in the legend, of what stands around the rows
LOOKS = tuple(zip(GROUPS[1:], ("diamond", "triangle", "square", "plus")))
MODEL, CHANCE = "this model", "guessing"
NONE = [("", np.empty(0))] * len(LOOKS)  # in the place of methods that there are not


class RecallPlot(Plot):
    """Outputs down, recall across: this model, others on the same rows, and guessing.

    Args:
        title: The heading.
        others: Whether other methods will be shown.
    """

    def __init__(self, title: str, others: bool = False) -> None:
        plot = new_figure("recall", "recall of held-out rows", "", height=200,
                          x_range=models.Range1d(-0.02, 1.02),
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        looks = [
            (GRAY, "dash", 12),
            *((*look, 9) for look in LOOKS if others),
            (BLUE, "circle", 12),
        ]
        self.dots = []
        for color, marker, size in looks:
            source = models.ColumnDataSource({"recall": [], "output": [], "method": []})
            plot.scatter("recall", "output", source=source, marker=marker, size=size, color=color,
                         legend_label=MODEL)  # fmt: skip
            self.dots.append(source)
        # An item of its own for each: bokeh makes one of those that share a label.
        renderers = plot.renderers[-len(looks) :]
        plot.legend[0].items = [
            models.LegendItem(label={"value": MODEL}, renderers=[r], visible=False)
            for r in renderers
        ]
        tips = [("", "@output"), ("@method", "@recall{0.0%}")]
        plot.add_tools(models.HoverTool(renderers=renderers, tooltips=tips))
        plot.xaxis.formatter = models.NumeralTickFormatter(format="0%")
        plot.xgrid.visible = plot.ygrid.visible = True
        quiet_legend(plot, stacked=True)
        plot.legend[0].click_policy = "none"
        super().__init__(title, plot)

    def show(
        self,
        recall: Float[np.ndarray, " d"],
        outputs: Sequence[str],
        classes: Sequence[int],
        others: Mapping[str, Float[np.ndarray, " d"]] | None = None,
        of: str = "the held-out rows",
        rows: Int[np.ndarray, " d"] | None = None,
    ) -> None:
        """Show recalls.

        Args:
            recall: Of this model; NaN where an output has no held-out row.
            outputs: Their names.
            classes: How many classes each has.
            others: The recalls of other methods.
            of: Of which rows they are.
            rows: How many of them each output has, so that the reading is of all together, as a
                table's is; None: not known, and it is of the outputs' average.
        """
        names = [str(name) for name in outputs]
        recalls = {
            CHANCE: 1 / np.maximum(np.asarray(classes, float), 1),
            **{k: np.asarray(v, float) for k, v in islice((others or {}).items(), len(LOOKS))},
            MODEL: np.asarray(recall, float),
        }
        plot = self.figures[0]
        *among, last = zip(self.dots, plot.legend[0].items)
        *before, own = recalls.items()
        self._put(*last, *own, names)
        for (source, item), (method, values) in zip(among, [*before, *NONE]):
            self._put(source, item, method, values, names)
        tall = (ROW if len(names) <= MANY else TIGHT) * len(names) + LINE * len(recalls)
        if list(plot.y_range.factors) != names[::-1] or plot.height != MARGINS + tall:
            plot.y_range.factors = names[::-1]
            plot.height = MARGINS + tall
        self.describe(_reading(recalls, names, of, rows))

    def _put(
        self, source: Any, item: Any, method: str, recall: np.ndarray, names: Sequence[str]
    ) -> None:
        """Show one method's recalls, or nothing; what has not changed does not travel."""
        kept = [(float(v), name, method) for name, v in zip(names, recall) if np.isfinite(v)]
        fresh = dict(zip(source.data, map(list, zip(*kept)) if kept else ([], [], [])))
        if any(list(source.data[k]) != v for k, v in fresh.items()):
            source.data = fresh
        item.update(label={"value": method or MODEL}, visible=bool(kept))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def counted(output: np.ndarray, outputs: int) -> Int[np.ndarray, " d"]:
    """How many rows each of d outputs has."""
    return np.bincount(np.asarray(output, int), minlength=outputs)


def _reading(
    recalls: Mapping[str, np.ndarray],
    names: Sequence[str],
    of: str,
    rows: Int[np.ndarray, " d"] | None,
) -> str:
    own = recalls[MODEL]
    if not np.isfinite(own).any():
        return "No row was held out."
    best, worst = int(np.nanargmax(own)), int(np.nanargmin(own))
    means = {m: _mean(v, rows) for m, v in recalls.items() if np.isfinite(v).any()}
    reading = f"Recall of {of}: {means[MODEL]:.1%}"
    if len(names) > 1:
        reading += (
            " of all together" if rows is not None else f" on average over {len(names)} outputs"
        )
        reading += f", from {own[worst]:.1%} ({names[worst]}) to {own[best]:.1%} ({names[best]})"
    rest = [f"{m} {mean:.1%}" for m, mean in means.items() if m != MODEL]
    return f"{reading}; {', '.join(rest)}."


def _mean(recall: Float[np.ndarray, " d"], rows: Int[np.ndarray, " d"] | None) -> float:
    known = np.isfinite(recall)
    return float(np.average(recall[known], weights=None if rows is None else rows[known]))
