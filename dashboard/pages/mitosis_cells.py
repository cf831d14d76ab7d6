"""The mitosis page's images: covariances by class, and new cells beside real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from dashboard.pages.mitosis_spaces import HALVES, STACKED
from dashboard.plots.base import BESIDE, Shown
from dashboard.plots.images import GalleryPlot
from dashboard.plots.matrix import MatrixPlot
from dashboard.plots.theme import GROUPS
from dashboard.shell import text
from engine.catalog.mitosis import STRIP

if TYPE_CHECKING:
    from dashboard.live import History
    from engine.events import Report, Snapshot

HEADS = ("shared", "private", "sum")
NO_IMAGES = "This run learns from columns of numbers, not from images."


def ink(grey: np.ndarray) -> np.ndarray:
    """What plots of images take: 1 is black there, and white in a grey image."""
    return 1 - np.asarray(grey, float)


def short(name: str, most: int = 9) -> str:
    """A class's name for the width of a small image."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def colours(label: Sequence[int] | np.ndarray) -> list[str]:
    """The colour of each row's class, as in the scatters."""
    return [GROUPS[int(c) % len(GROUPS)] for c in label]


class Covariances(Shown):
    """The shared part of the kernel, the private one, and their sum (Fig. 3.4)."""

    title = "What each space ties together"

    def __init__(self) -> None:
        self._told: tuple[Mapping[str, np.ndarray], Mapping[str, Any]] | None = None
        self.plot = MatrixPlot(self.title)
        self.figures = self.plot.figures
        self.stretch = pmui.Checkbox(label="Stretch each to its own range", value=False, margin=0,
                                     size="small")  # fmt: skip
        self.stretch.param.watch(lambda _: self._show(), "value")
        self.panel = pn.Column(self.stretch, self.plot.panel, stylesheets=[STACKED],
                               sizing_mode="stretch_width", margin=0)  # fmt: skip

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self._told = None
        self.plot.clear()

    def update(self, told: Snapshot | Report, words: Mapping[str, Any]) -> None:
        """Show the covariances of a snapshot."""
        self._told = told.arrays, words
        self._show()

    def _show(self) -> None:
        if self._told is None:
            return
        arrays, words = self._told
        matrices = np.asarray(arrays["covariance"], float)
        label = np.asarray(arrays["covariance_class"], int)
        if not matrices.size:
            self.plot.describe("This model has no covariance to show.")
            return
        same = label[:, None] == label[None]
        off = ~np.eye(len(label), dtype=bool)
        total = matrices[2]
        between = float(total[~same].mean()) if (~same).any() else 0.0
        within = float(total[same & off].mean()) if (same & off).any() else 0.0
        classes = list(words["classes"])
        counted = ", ".join(
            f"{int((label == c).sum())} {classes[c]}" for c in dict.fromkeys(label.tolist())
        )
        parts = bool(words["n_private"])
        own = "the private part is zero between classes by design; in the sum " if parts else ""
        self.plot.show(
            matrices if parts else matrices[2:],
            HEADS if parts else ("of a model that knows no classes",),
            label,
            classes,
            f"Among {len(label)} rows sorted by class ({counted}) {own}two rows of one class "
            f"covary {within:.2g} on average, two of different ones {between:.2g}.",
            stretch=bool(self.stretch.value),
        )


class Strips(Shown):
    """Cells that the model draws from where a class lies, beside real ones of that class."""

    title = "New cells beside real ones"

    def __init__(self) -> None:
        self.made, self.real = (
            GalleryPlot(said, name, least=44, most=80, lines=1, rows_of=STRIP)
            for said, name in (("Drawn by the model", "generated"), ("Real", "real"))
        )
        self.plot = self.made
        self.figures = (*self.made.figures, *self.real.figures)
        sides = [
            pn.Column(
                text(f"<h4>{plot.title}</h4>"), plot.panel, sizing_mode="stretch_width", margin=0
            )
            for plot in (self.made, self.real)
        ]
        self.panel = pn.Column(
            *sides, stylesheets=[BESIDE, HALVES], sizing_mode="stretch_width", margin=0
        )

    def say(self) -> None:
        self.made.say()
        self.real.say()

    def clear(self, run: History) -> None:
        """Forget the run shown before."""
        self.made.clear()
        self.real.clear()

    def update(self, told: Snapshot | Report, words: Mapping[str, Any]) -> None:
        """Show the images of a snapshot."""
        a, classes = told.arrays, list(words["classes"])
        if not len(a["generated"]):
            self.made.describe(NO_IMAGES)
            return
        for plot, name, said in (
            (self.made, "generated", "new ones drawn by the model"),
            (self.real, "real", "real ones"),
        ):
            images, label = ink(a[name]), np.asarray(a[f"{name}_class"], int)
            counted = ", ".join(
                f"{int((label == c).sum())} {classes[c]}" for c in dict.fromkeys(label.tolist())
            )
            plot.show(
                images,
                [[short(str(classes[c]))] for c in label],
                f"{counted}: {said}. Their spread of grey is {_spread(images):.2f}"
                + (f", that of the real ones {_spread(ink(a['real'])):.2f}." if plot is self.made
                   else "."),
                colours(label),
            )  # fmt: skip


def _spread(images: np.ndarray) -> float:
    """How much images of a strip differ: mean over pixels of the deviation from image to image."""
    return float(images.std(axis=0).mean()) if len(images) > 1 else 0.0
