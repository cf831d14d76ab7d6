"""Recall of each output's held-out rows, by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import Plot
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    GROUPS,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import as_number, later, tr

ROW, TIGHT = 26, 16  # pixels per output, with at most and with more than MAX_TALL_ROWS outputs
MAX_TALL_ROWS = 12
LINE, MARGINS = 22, 106  # pixels per method in the legend; pixels around the rows
STYLES = tuple(zip(GROUPS[1:], ("diamond", "triangle", "square", "plus")))
MODEL, GUESSING = later("this model"), later("guessing")
ONE = later("Recall of {rows}: {mean:.1%}.")
TOGETHER = later(
    "Recall of {rows} together: {mean:.1%}; by output, {low:.1%} ({worst}) to {high:.1%} ({best})."
)
MEAN = later(
    "Recall of {rows}: {mean:.1%} on average over {n} groups, from {low:.1%} ({worst}) to "
    "{high:.1%} ({best})."
)
NONE = [("", np.empty(0))] * len(STYLES)  # placeholders for absent methods


class RecallPlot(Plot):
    """Recall (x) by output (y), for this model, other methods on the same rows, and guessing.

    Args:
        title: The heading.
        others: Whether other methods will be shown.
    """

    def __init__(self, title: str, others: bool = False) -> None:
        plot = new_figure("recall", tr("recall of held-out rows"), "", height=200,
                          x_range=models.Range1d(-0.02, 1.02),
                          y_range=models.FactorRange(factors=[]))  # fmt: skip
        styles = [
            (GRAY, "dash", 12),
            *((*style, 9) for style in STYLES if others),
            (BLUE, "circle", 12),
        ]
        self.dots = []
        for color, marker, size in styles:
            source = models.ColumnDataSource({"recall": [], "output": [], "method": []})
            plot.scatter("recall", "output", source=source, marker=marker, size=size, color=color,
                         legend_label=tr(MODEL))  # fmt: skip
            self.dots.append(source)
        # Separate items, because Bokeh merges items with equal labels.
        renderers = plot.renderers[-len(styles) :]
        plot.legend[0].items = [
            models.LegendItem(label={"value": MODEL}, renderers=[r], visible=False)
            for r in renderers
        ]
        tips = [("", "@output"), ("@method", "@recall{0.0%}")]
        plot.add_tools(models.HoverTool(renderers=renderers, tooltips=tips))
        plot.xaxis.formatter = tick_labels("0%")
        plot.xgrid.visible = plot.ygrid.visible = True
        place_legend_above(plot, stacked=True)
        plot.legend[0].click_policy = "none"
        super().__init__(title, plot)

    def show(
        self,
        recall: Float[np.ndarray, " d"],
        outputs: Sequence[str],
        classes: Sequence[int],
        others: Mapping[str, Float[np.ndarray, " d"]] | None = None,
        of: str = later("the held-out rows"),
        rows: Int[np.ndarray, " d"] | None = None,
    ) -> None:
        """Show recalls of d outputs.

        Args:
            recall: Recall of this model; NaN if an output has no held-out row.
            outputs: Names of the outputs.
            classes: Number of classes of each.
            others: Recalls of other methods.
            of: Description of the rows.
            rows: Number of rows of each output, to average over rows as in the table; None averages
                over outputs.
        """
        names = [str(name) for name in outputs]
        recalls = {
            GUESSING: 1 / np.maximum(np.asarray(classes, float), 1),
            **{k: np.asarray(v, float) for k, v in islice((others or {}).items(), len(STYLES))},
            MODEL: np.asarray(recall, float),
        }
        plot = self.figures[0]
        *other_items, last = zip(self.dots, plot.legend[0].items)
        *before, own = recalls.items()
        self._set_method(*last, *own, names)
        for (source, item), (method, values) in zip(other_items, [*before, *NONE]):
            self._set_method(source, item, method, values, names)
        tall = (ROW if len(names) <= MAX_TALL_ROWS else TIGHT) * len(names) + LINE * len(recalls)
        if list(plot.y_range.factors) != names[::-1] or plot.height != MARGINS + tall:
            plot.y_range.factors = names[::-1]
            plot.height = MARGINS + tall
        self.describe(_reading(recalls, names, of, rows))

    def _set_method(
        self, source: Any, item: Any, method: str, recall: np.ndarray, names: Sequence[str]
    ) -> None:
        """Show one method's recalls, or none; unchanged data are not sent."""
        shown = tr(method)
        finite = [(float(v), name, shown) for name, v in zip(names, recall) if np.isfinite(v)]
        fresh = dict(zip(source.data, map(list, zip(*finite)) if finite else ([], [], [])))
        if any(list(source.data[k]) != v for k, v in fresh.items()):
            source.data = fresh
        item.update(label={"value": shown or tr(MODEL)}, visible=bool(finite))

    def clear(self) -> None:
        self.figures[0].y_range.factors = []
        super().clear()


def counted(output: np.ndarray, outputs: int) -> Int[np.ndarray, " d"]:
    """Return the number of rows of each output."""
    return np.bincount(np.asarray(output, int), minlength=outputs)


def _reading(
    recalls: Mapping[str, np.ndarray],
    names: Sequence[str],
    of: str,
    rows: Int[np.ndarray, " d"] | None,
) -> str:
    own = recalls[MODEL]
    if not np.isfinite(own).any():
        return tr("No row was held out.")
    best, worst = int(np.nanargmax(own)), int(np.nanargmin(own))
    means = {m: _mean(v, rows) for m, v in recalls.items() if np.isfinite(v).any()}
    reading = tr(
        ONE if len(names) == 1 else MEAN if rows is None else TOGETHER,
        rows=tr(of), mean=means[MODEL], n=len(names), low=own[worst], worst=names[worst],
        high=own[best], best=names[best],
    )  # fmt: skip
    rest = [f"{tr(m)} {as_number(f'{mean:.1%}')}" for m, mean in means.items() if m != MODEL]
    others = tr("For comparison: {methods}.", methods=", ".join(rest)) if rest else ""
    return f"{reading} {others}".rstrip()


def _mean(recall: Float[np.ndarray, " d"], rows: Int[np.ndarray, " d"] | None) -> float:
    finite = np.isfinite(recall)
    return float(np.average(recall[finite], weights=None if rows is None else rows[finite]))
