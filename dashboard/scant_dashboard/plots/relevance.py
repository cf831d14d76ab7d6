"""Relevance of basis functions, features or latent dimensions, as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    VERMILION,
    models,
    new_figure,
    place_legend_above,
    tick_labels,
)
from scant_dashboard.translate import later, tr


class BasisPlot(Plot):
    """Each basis function's share of the signal, largest first; ARD prunes the others."""

    def __init__(
        self,
        title: str = later("Basis functions at work"),
        what: str = later("basis functions"),
        of: str = later("signal"),
    ) -> None:
        self._what, self._of = tr(what), tr(of)
        self.bars = columns("rank", "share")
        name = what.split(" ")[0]
        plot = new_figure(name, tr("{items}, sorted", items=self._what),
                          tr("share of the {total}", total=self._of), height=300)  # fmt: skip
        plot.vbar("rank", 0.8, "share", source=self.bars, color=BLUE, fill_alpha=0.85, line_width=0)
        plot.yaxis.formatter = tick_labels("0.[00]%")
        plot.y_range.start = 0
        super().__init__(title, plot)

    def show(self, share: Float[np.ndarray, "m"]) -> None:
        """Show m shares that sum to one."""
        ordered = np.sort(share)[::-1]
        update_source(self.bars, rank=np.arange(1, len(share) + 1), share=ordered)
        needed = int(np.searchsorted(np.cumsum(ordered), 0.9 * ordered.sum()) + 1)
        self.describe(
            tr(
                "90% of the {total} comes from {needed} of {n} {items}.",
                needed=needed,
                n=len(share),
                items=self._what,
                total=self._of,
            )
        )


class FeaturePlot(Plot):
    """Each feature's share of the sensitivity, by name."""

    def __init__(self, title: str = later("Features that matter")) -> None:
        self.bars = models.ColumnDataSource({"name": [], "share": []})
        plot = new_figure("features", tr("share of the sensitivity"), "", height=300,
                          y_range=models.FactorRange(),
                          x_range=models.Range1d(0, 1))  # fmt: skip
        plot.hbar("name", 0.7, "share", source=self.bars, color=BLUE, fill_alpha=0.85, line_width=0)
        plot.xaxis.formatter = tick_labels("0.[00]%")
        plot.ygrid.visible = False
        super().__init__(title, plot)

    def show(self, share: Float[np.ndarray, "d"], names: Sequence[str]) -> None:
        """Show d shares with the features' names; unnamed features are numbered."""
        numbered = (tr("feature {k}", k=i + 1) for i in range(len(names), len(share)))
        labels = [*names, *numbered][: len(share)]
        if list(self.figures[0].y_range.factors) != labels[::-1]:
            self.figures[0].y_range.factors = labels[::-1]
            self.figures[0].height = max(300, 18 * len(labels) + 70)
        self.figures[0].x_range.end = 1.05 * max(float(share.max()), 0.01)
        self.bars.data = {"name": labels, "share": share.astype(np.float32)}
        first, *others = np.argsort(share)[::-1][:2]
        reading = tr("Most sensitive to {name} ({share:.0%}).", name=labels[first],
                     share=share[first])  # fmt: skip
        for i in others:
            reading = tr(
                "Most sensitive to {name} ({share:.0%}), then to {second} ({second_share:.0%}).",
                name=labels[first],
                share=share[first],
                second=labels[i],
                second_share=share[i],
            )
        self.describe(reading)


class DimensionsPlot(Plot):
    """ARD relevance of latent dimensions, shared ones first, then private ones."""

    KINDS = ((later("shared"), BLUE), (later("private"), VERMILION))

    def __init__(self, title: str = later("Dimensions that matter")) -> None:
        self.bars = [columns("dimension", "relevance") for _ in self.KINDS]
        plot = new_figure("relevance", tr("latent dimension"), tr("relevance\n(1 / lengthscale²)"))
        for source, (kind, color) in zip(self.bars, self.KINDS):
            plot.vbar("dimension", 0.8, "relevance", source=source, color=color, fill_alpha=0.85,
                      line_width=0, legend_label=tr(kind))  # fmt: skip
        plot.y_range.start = 0
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(self, relevance: Float[np.ndarray, " q"], shared: int) -> None:
        """Show q relevances; the first `shared` belong to shared dimensions."""
        rank = np.arange(1, len(relevance) + 1)
        for source, part in zip(self.bars, (slice(None, shared), slice(shared, None))):
            update_source(source, dimension=rank[part], relevance=relevance[part])
        names = [
            f"{tr(kind)} {i + 1}"
            for (kind, _), count in zip(self.KINDS, (shared, len(relevance) - shared))
            for i in range(count)
        ]
        axis = self.figures[0].xaxis[0]
        labels = {i + 1: f"{n[0]}{n.split()[1]}" for i, n in enumerate(names)}
        if axis.major_label_overrides != labels:
            axis.ticker = models.FixedTicker(ticks=rank.tolist())
            axis.major_label_overrides = labels
        top = float(np.max(relevance, initial=0.0)) or 1.0
        working = [n for n, r in zip(names, relevance) if r > 0.05 * top]
        best = names[int(np.argmax(relevance))]
        self.describe(
            tr(
                "The relevance is largest for {best}. It is more than a twentieth of that for "
                "{working} of {n} dimensions.",
                working=len(working),
                n=len(names),
                best=best,
            )
        )
