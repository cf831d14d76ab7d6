"""All rows of a pool in a plane, colored by predicted probability, with queries marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int

from scant_dashboard.plots.base import PERMANENT, Plot, columns, empty, update_source
from scant_dashboard.plots.theme import (
    DEVIATION,
    GRAY,
    GREEN,
    color_bar,
    models,
    new_figure,
    place_legend_above,
)
from scant_dashboard.translate import tr

# Markers of the classes; further classes share the last one.
SHAPES = ("square", "triangle", "circle", "diamond", "inverted_triangle", "hex", "star", "plus")


class PoolPlot(Plot):
    """One dot per row, a shape around labeled rows by class, a cross on the next queries.

    Args:
        title: The heading.
        pick: Called with the row that the visitor clicked.
    """

    def __init__(self, title: str, pick: Callable[[int], None] | None = None) -> None:
        self.rows = columns("x", "y", "p", "row")
        self.given = [columns("x", "y") for _ in SHAPES]
        self.next = columns("x", "y")
        plot = new_figure("pool", tr("first principal component"), tr("second principal component"),
                          height=380, tools="tap" if pick else "")  # fmt: skip
        self.colors = models.LinearColorMapper(palette=list(DEVIATION), low=0, high=1)
        dots = plot.scatter("x", "y", source=self.rows, size=6, line_color=None,
                            fill_color={"field": "p", "transform": self.colors}, fill_alpha=0.75,
                            nonselection_fill_alpha=0.75)  # fmt: skip
        for source, shape in zip(self.given, SHAPES):
            plot.scatter("x", "y", source=source, marker=shape, size=13, fill_alpha=0,
                         line_color=GRAY, line_width=2)  # fmt: skip
        plot.scatter("x", "y", source=self.next, marker="x", size=13, line_color=GREEN,
                     line_width=3)  # fmt: skip
        none = models.ColumnDataSource({"x": [np.nan], "y": [np.nan]}, tags=[PERMANENT])
        styles = [(shape, GRAY) for shape in SHAPES] + [("x", GREEN)]
        self.items = [
            models.LegendItem(
                label={"value": message},
                renderers=[plot.scatter("x", "y", source=none, marker=marker, size=11, fill_alpha=0,
                                        line_color=color, line_width=2)],
            )
            for (marker, color), message in zip(styles, [*[""] * len(SHAPES), tr("queried next")])
        ]  # fmt: skip
        plot.add_layout(models.Legend(items=self.items))
        place_legend_above(plot)
        plot.legend[0].click_policy = "none"
        self.bar = color_bar(plot, self.colors, tr("probability"))
        tips = [(tr("row"), "@row{0}"), ("p", "@p{0.00}")]
        plot.add_tools(models.HoverTool(renderers=[dots], tooltips=tips))
        if pick:
            self.rows.selected.on_change(
                "indices", lambda _attr, _old, new: pick(int(self.rows.data["row"][new[0]]))
                if new else None
            )  # fmt: skip
        super().__init__(title, plot)

    def show(
        self,
        xy: Float[np.ndarray, "n 2"],
        p: Float[np.ndarray, " n"],
        rows: Int[np.ndarray, " n"],
        given: Sequence[Sequence[int]],
        queue: Sequence[int],
        classes: Sequence[str],
        sought: str,
    ) -> None:
        """Show n rows.

        Args:
            xy: Positions in the plane.
            p: Probability of the class of interest.
            rows: Row numbers in the table.
            given: For each class, the rows labeled with it.
            queue: Rows to query next.
            classes: Names of the classes.
            sought: Name of the class of interest.
        """
        at = {int(row): i for i, row in enumerate(rows)}
        update_source(self.rows, x=xy[:, 0], y=xy[:, 1], p=p, row=rows)
        last = len(SHAPES) - 1
        shaped: list[list[int]] = [list(some) for some in given[:last]]
        shaped += [[row for some in given[last:] for row in some]]
        shaped += [[] for _ in range(len(SHAPES) - len(shaped))]
        names = [*classes[:last], ", ".join(classes[last:])]
        for source, some in zip((*self.given, self.next), (*shaped, queue)):
            indices = [at[int(r)] for r in some if int(r) in at]
            if indices:
                update_source(source, x=xy[indices, 0], y=xy[indices, 1])
            else:
                empty(source)
        for item, name in zip(self.items, names):
            item.label = {"value": tr("labeled {name}", name=name)}
        for item, some in zip(self.items, (*shaped, queue)):
            item.visible = len(some) > 0
        self.bar.title = tr("p, the probability of {name}", name=sought)
        n_labeled = sum(map(len, given))
        n_uncertain = int(np.sum(np.abs(p - 0.5) < 0.25))
        self.describe(
            tr(
                "{labeled} of {n:,} rows are labeled. Of all rows, p({name}) is above one "
                "half for {above:,} and between 0.25 and 0.75 for {uncertain:,}.",
                labeled=n_labeled,
                n=len(p),
                above=int(np.sum(p > 0.5)),
                name=sought,
                uncertain=n_uncertain,
            )
        )
