"""Images of the mitosis page: covariances by class, and generated next to real cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float, Int

from scant.events import Report, Snapshot
from scant.studies.mitosis.entry import STRIP
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.mitosis.spaces import HALVES
from scant_dashboard.plots.base import SIDE_BY_SIDE, PlotView
from scant_dashboard.plots.images import GalleryPlot
from scant_dashboard.plots.matrix import MatrixPlot
from scant_dashboard.plots.theme import GROUPS
from scant_dashboard.template import text

HEADS = ("shared", "private", "sum")
NO_IMAGES = "This run trains on columns of numbers, not on images."


def ink(gray: np.ndarray) -> np.ndarray:
    """Convert gray (1 is white) to ink (1 is black)."""
    return 1 - np.asarray(gray, float)


def short(name: str, max_length: int = 9) -> str:
    """Truncate a class's name to the width of a small image."""
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def colors(label: Sequence[int] | np.ndarray) -> list[str]:
    """Return the color of each row's class, as in the scatter plots."""
    return [GROUPS[int(c) % len(GROUPS)] for c in label]


class Covariances(PlotView):
    """The shared part of the kernel, the private one, and their sum (Fig. 3.4).

    With long lengthscales, all rows covary almost equally. By default the common part is therefore
    subtracted, which leaves the part that separates rows.
    """

    title = "What each space ties together"

    def __init__(self) -> None:
        self._latest: tuple[Mapping[str, np.ndarray], Mapping[str, Any]] | None = None
        self.plot = MatrixPlot(self.title)
        self.figures = self.plot.figures
        self.whole = pmui.Checkbox(label="With what all rows, or all of a class, have in common",
                                   value=False, margin=0, size="small")  # fmt: skip
        self.whole.param.watch(lambda _: self._show(), "value")
        self.panel = stacked(self.whole, self.plot.panel)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._latest = None
        self.plot.clear()

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the covariances of a snapshot."""
        self._latest = data.arrays, metadata
        self._show()

    def _show(self) -> None:
        if self._latest is None:
            return
        arrays, metadata = self._latest
        matrices, centered = arrays["covariance"], arrays["covariance_apart"]
        label = np.asarray(arrays["covariance_class"], int)
        if not matrices.size:
            self.plot.describe("This model has no covariance to show.")
            return
        whole, parts = bool(self.whole.value), bool(metadata["n_private"])
        displayed = matrices if whole else centered
        classes = list(metadata["classes"])
        counted = ", ".join(
            f"{int((label == c).sum())} {classes[c]}" for c in dict.fromkeys(label.tolist())
        )
        message = (
            _averages(matrices[2], label)
            if whole
            else _describe_remainder(matrices, centered, parts)
        )
        own = " The private part is zero between classes by design." if parts else ""
        self.plot.show(
            displayed if parts else displayed[2:],
            HEADS if parts else ("of a model that knows no classes",),
            label,
            classes,
            f"{len(label)} rows sorted by class ({counted}). {message}{own}",
            signed=not whole,
        )


def _averages(total: Float[np.ndarray, "k k"], label: Int[np.ndarray, " k"]) -> str:
    same, off = label[:, None] == label[None], ~np.eye(len(label), dtype=bool)
    between = float(total[~same].mean()) if (~same).any() else 0.0
    within = float(total[same & off].mean()) if (same & off).any() else 0.0
    return (
        f"The mean covariance of the sum is {within:.2g} within a class and {between:.2g} between "
        "classes."
    )


def _describe_remainder(
    matrices: Float[np.ndarray, "3 k k"], centered: Float[np.ndarray, "3 k k"], parts: bool
) -> str:
    """Describe the share of the variance that remains, and the part of the kernel that has it."""
    variance = [float(np.trace(m)) for m in centered]
    common = 1 - variance[2] / max(float(np.trace(matrices[2])), 1e-300)
    message = (
        f"{common:.0%} of the variance is common to all rows{' or to a class' if parts else ''}; "
        "it does not separate rows and is not drawn."
    )
    if not parts or variance[2] <= 0:
        return message
    return f"{message} Of what is drawn, {variance[0] / variance[2]:.0%} is the shared part."


class Strips(PlotView):
    """Cells generated from each class's latent positions, next to real ones."""

    title = "New cells beside real ones"

    def __init__(self) -> None:
        self.made, self.real = (
            GalleryPlot(message, name, min_side=44, max_side=80, lines=1, rows_of=STRIP)
            for message, name in (("Generated by the model", "generated"), ("Real", "real"))
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
            *sides, stylesheets=[SIDE_BY_SIDE, HALVES], sizing_mode="stretch_width", margin=0
        )

    def say(self) -> None:
        self.made.say()
        self.real.say()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self.made.clear()
        self.real.clear()

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the images of a snapshot."""
        a, classes = data.arrays, list(metadata["classes"])
        if not len(a["generated"]):
            self.made.describe(NO_IMAGES)
            return
        for plot, name, message in (
            (self.made, "generated", "generated by the model"),
            (self.real, "real", "real ones"),
        ):
            images, label = ink(a[name]), np.asarray(a[f"{name}_class"], int)
            counted = ", ".join(
                f"{int((label == c).sum())} {classes[c]}" for c in dict.fromkeys(label.tolist())
            )
            plot.show(
                images,
                [[short(str(classes[c]))] for c in label],
                f"{counted}: {message}. The standard deviation of their gray is "
                f"{_spread(images):.2f}"
                + (f", that of the real ones {_spread(ink(a['real'])):.2f}." if plot is self.made
                   else "."),
                colors(label),
            )  # fmt: skip


def _spread(images: np.ndarray) -> float:
    """Return the standard deviation between images, averaged over pixels."""
    return float(images.std(axis=0).mean()) if len(images) > 1 else 0.0
