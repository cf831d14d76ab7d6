"""Shares of each output's variance by level of the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from scant_dashboard.plots.base import Plot, columns, update_source
from scant_dashboard.plots.theme import (
    BLUE,
    GRAY,
    VERMILION,
    models,
    new_figure,
    place_legend_above,
)
from scant_dashboard.translate import later, tr

LEVELS = (("shared", VERMILION, later("shared by replicas")), ("replica", BLUE, later("own")),
          ("noise", GRAY, later("noise")))  # fmt: skip


class VarianceComponentsPlot(Plot):
    """One bar per output: variance shared by its replicas, variance of each, and noise."""

    def __init__(self, title: str = later("What each level explains")) -> None:
        self.bars = columns("y", "zero", *(name for name, _, _ in LEVELS))
        plot = new_figure("levels", tr("share of the variance"), "", x_range=models.Range1d(0, 1))
        left = "zero"
        for name, color, label in LEVELS:
            plot.hbar("y", height=0.7, left=left, right=name, source=self.bars, color=color,
                      fill_alpha=0.8, line_width=0, legend_label=tr(label))  # fmt: skip
            left = name
        plot.yaxis[0].major_tick_line_color = None
        place_legend_above(plot)
        super().__init__(title, plot)

    def show(self, share: Float[np.ndarray, "s 3"], names: Sequence[str]) -> None:
        """Show the shares of s outputs (rows sum to 1), the first output on top."""
        bounds = np.cumsum(share, axis=1)
        y = -np.arange(len(share), dtype=float)
        update_source(
            self.bars,
            y=y,
            zero=np.zeros(len(y)),
            **{n: e for (n, _, _), e in zip(LEVELS, bounds.T)},
        )
        plot = self.figures[0]
        plot.yaxis[0].ticker = models.FixedTicker(ticks=list(y))
        plot.yaxis[0].major_label_overrides = dict(zip(y.tolist(), map(str, names)))
        plot.height = max(200, 34 * len(y) + 100)
        shared, replica, noise = share.mean(axis=0)
        self.describe(
            tr(
                "On average {shared:.0%} of the variance is shared by an output's replicas, "
                "{replica:.0%} belongs to each replica and {noise:.0%} is noise.",
                shared=shared,
                replica=replica,
                noise=noise,
            )
            + f" {_largest_difference(share, names)}"
        )


def _largest_difference(share: Float[np.ndarray, "s 3"], names: Sequence[str]) -> str:
    if np.ptp(share[:, 1]) < 0.005:
        return (
            tr("The shares are the same for every output.")
            if len(share) > 1
            else tr("There is only one output.")
        )
    return tr("Replicas of {name} differ most.", name=names[int(np.argmax(share[:, 1]))])
