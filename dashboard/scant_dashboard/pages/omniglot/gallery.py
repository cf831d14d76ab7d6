"""Galleries of the omniglot page: inducing patches, and held-out images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scant.events import Report, Snapshot
from scant_dashboard.pages.omniglot.matrices import names_of, short
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.images import GalleryPlot
from scant_dashboard.plots.theme import GREEN, VERMILION
from scant_dashboard.translate import later, tr

NO_PATCHES = later("This model compares whole rows and has no patches.")
NO_IMAGES = later("This run trains on columns of numbers, not on images.")


class Patches(PlotView):
    """The inducing patches of largest influence, the most influential first."""

    title = later("What the model looks for")

    def __init__(self) -> None:
        self.plot = GalleryPlot(self.title, "patches", min_side=40, max_side=52, lines=0)
        self.figures, self.panel = self.plot.figures, self.plot.panel

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the patches of a snapshot."""
        patches = np.asarray(data.arrays["patches"], float)
        if not len(patches):
            self.plot.describe(tr(NO_PATCHES))
            return
        weight = np.asarray(data.arrays["patches_weight"], float)
        low, high = min(0.0, float(patches.min())), max(1.0, float(patches.max()))
        top = float(weight.max()) or 1.0
        n_half = int((np.cumsum(np.sort(weight)[::-1]) < 0.5 * weight.sum()).sum()) + 1
        k, h, w = patches.shape
        self.plot.show(
            patches,
            [[tr("influence {share:.0%} of the largest", share=v / top)] for v in weight],
            tr("The {n} inducing patches of {width} x {height} pixels with the largest influence, "
               "which the bars show. Half of it comes from {half} of them. Dark is ink.", n=k,
               width=w, height=h, half=n_half),
            bars=weight / top,
            span=(low, high),
        )  # fmt: skip


class Examples(PlotView):
    """Held-out images with predicted class and probability."""

    title = later("Held-out images")

    def __init__(self) -> None:
        self.plot = GalleryPlot(self.title, "examples", min_side=84, max_side=104)
        self.figures, self.panel = self.plot.figures, self.plot.panel

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the examples of a snapshot."""
        a = data.arrays
        if not a["examples"].size:
            self.plot.describe(tr(NO_IMAGES))
            return
        names = names_of(metadata)
        true, taken = (np.asarray(a[f"examples_{n}"], int) for n in ("true", "predicted"))
        p, right = np.asarray(a["examples_p"], float), true == taken
        messages = [
            [f"{'✓' if t == c else '✗'} {short(names[c])}", tr("is {name}", name=short(names[t]))]
            for t, c in zip(true, taken)
        ]
        self.plot.show(
            np.asarray(a["examples"], float),
            messages,
            tr("Classified correctly (green, ✓): {right} of {n}. Bars show the probability of the "
               "predicted class, {share:.0%} on average.",
               right=int(right.sum()), n=len(right), share=p.mean()),
            [GREEN if ok else VERMILION for ok in right],
            p,
        )  # fmt: skip
