"""Images of the mitosis page: covariances by class, and generated next to real ones."""

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
from scant_dashboard.translate import later, tr

HEADS = (later("shared"), later("private"), later("sum"))
NO_IMAGES = later("This run trains on columns of numbers, not on images.")


COMMON = later(
    "{share:.0%} of the variance is common to all rows; it does not separate rows and is not drawn."
)
COMMON_OF_CLASS = later(
    "{share:.0%} of the variance is common to all rows or to a class; it does not separate rows "
    "and is not drawn."
)


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

    title = later("What each space ties together")

    def __init__(self) -> None:
        self._latest: tuple[Mapping[str, np.ndarray], Mapping[str, Any]] | None = None
        self.plot = MatrixPlot(self.title)
        self.figures = self.plot.figures
        common = tr("Include the part common to all rows, or to all rows of a class")
        self.whole = pmui.Checkbox(label=common, value=False, margin=0, size="small")
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
            self.plot.describe(tr("This model has no covariance to show."))
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
        own = f" {tr('The private part is zero between classes by design.')}" if parts else ""
        self.plot.show(
            displayed if parts else displayed[2:],
            [tr(head) for head in HEADS] if parts else [tr("model without classes")],
            label,
            classes,
            f"{tr('{n} rows sorted by class ({classes}).', n=len(label), classes=counted)} "
            f"{message}{own}",
            signed=not whole,
        )


def _averages(total: Float[np.ndarray, "k k"], label: Int[np.ndarray, " k"]) -> str:
    same, off = label[:, None] == label[None], ~np.eye(len(label), dtype=bool)
    between = float(total[~same].mean()) if (~same).any() else 0.0
    within = float(total[same & off].mean()) if (same & off).any() else 0.0
    return tr("The mean covariance of the sum is {within:.2g} within a class and {between:.2g} "
              "between classes.", within=within, between=between)  # fmt: skip


def _describe_remainder(
    matrices: Float[np.ndarray, "3 k k"], centered: Float[np.ndarray, "3 k k"], parts: bool
) -> str:
    """Describe the share of the variance that remains, and the part of the kernel that has it."""
    variance = [float(np.trace(m)) for m in centered]
    common = 1 - variance[2] / max(float(np.trace(matrices[2])), 1e-300)
    message = tr(COMMON_OF_CLASS if parts else COMMON, share=common)
    if not parts or variance[2] <= 0:
        return message
    shared = variance[0] / variance[2]
    of_shared = tr("The shared part is {share:.0%} of the variance drawn.", share=shared)
    return f"{message} {of_shared}"


GENERATED = later("Generated by the model")
MADE = later(
    "Generated by the model: {classes}. The standard deviation of their gray levels is "
    "{spread:.2f}; that of the real images is {real:.2f}."
)
REAL = later("Real images: {classes}. The standard deviation of their gray levels is {spread:.2f}.")


class Strips(PlotView):
    """Images generated from each class's latent positions, next to real ones."""

    title = later("New images beside real ones")

    def __init__(self) -> None:
        self.made, self.real = (
            GalleryPlot(message, name, min_side=44, max_side=80, lines=1, rows_of=STRIP)
            for message, name in ((tr(GENERATED), "generated"), (tr("Real"), "real"))
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
            self.made.describe(tr(NO_IMAGES))
            return
        real = _spread(ink(a["real"]))
        for plot, name, message in (
            (self.made, "generated", MADE),
            (self.real, "real", REAL),
        ):
            images, label = ink(a[name]), np.asarray(a[f"{name}_class"], int)
            counted = ", ".join(
                f"{int((label == c).sum())} {classes[c]}" for c in dict.fromkeys(label.tolist())
            )
            plot.show(
                images,
                [[short(str(classes[c]))] for c in label],
                tr(message, classes=counted, spread=_spread(images),
                   **({"real": real} if plot is self.made else {})),
                colors(label),
            )  # fmt: skip


def _spread(images: np.ndarray) -> float:
    """Return the standard deviation between images, averaged over pixels."""
    return float(images.std(axis=0).mean()) if len(images) > 1 else 0.0
