"""Matrices of the omniglot page: similarity of classes and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import panel_material_ui as pmui

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.coregionalization_grid import HintonGrid
from scant_dashboard.translate import later, tr

WHOLE = 300  # maximum pixels of a single matrix: it is whole on the first screen


def names_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the display names of all classes, across all outputs."""
    return [
        name_of(output, label, metadata)
        for output, labels in zip(metadata["outputs"], metadata["classes"])
        for label in labels
    ]


def shown_names(metadata: Mapping[str, Any]) -> list[str]:
    """Return the display names of the selected classes."""
    return [name_of(output, label, metadata) for output, label in metadata["shown"]]


def name_of(output: str, label: str, metadata: Mapping[str, Any]) -> str:
    """Return a class's display name: with its output's name unless included, or the only one."""
    lone = len(metadata["outputs"]) == 1
    return label if lone or label.startswith(output) else f"{output}/{label}"


def short(name: str, max_length: int = 12) -> str:
    """Truncate a class's name to the width of an image, dropping the output's name first."""
    name = name if len(name) <= max_length else name.rpartition("/")[2]
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def outputs_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the output of each class, across all outputs."""
    return [o for o, labels in zip(metadata["outputs"], metadata["classes"]) for _ in labels]


class Matrices(PlotView):
    """Hinton diagrams over the selected classes, optionally sorted by clusters.

    Args:
        title: The heading.
        array: Name of the array to show, of shape (q, c, c) or (c, c).
        single: Whether it is a single matrix.
    """

    def __init__(self, title: str, array: str, single: bool = False) -> None:
        self.title = title
        self._array, self._single = array, single
        self._latest: tuple[Mapping[str, np.ndarray], Mapping[str, Any]] | None = None
        self.plot = (
            HintonGrid(title, min_side=240, max_side=WHOLE, say=_most_similar)
            if single
            else HintonGrid(title)
        )
        self.figures = self.plot.figures
        self.sorted = pmui.Checkbox(
            label=tr("Sort by clusters"), value=False, margin=0, size="small"
        )
        self.sorted.param.watch(lambda _: self._show(), "value")
        self.panel = stacked(self.sorted, self.plot.panel)

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the matrices of a snapshot."""
        self._latest = data.arrays, metadata
        self._show()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._latest = None
        self.plot.clear()

    def _show(self) -> None:
        if self._latest is None:
            return
        arrays, metadata = self._latest
        matrices = np.asarray(arrays[self._array], float)
        heads = [""] if self._single else [f"B{int(q) + 1}" for q in arrays["latent"]]
        self.plot.show(
            matrices[None] if self._single else matrices,
            heads,
            shown_names(metadata),
            [output for output, _ in metadata["shown"]],
            np.asarray(arrays["order"], int) if self.sorted.value else None,
        )


WITHIN = later("within a group: {one} and {other} ({value:.2f})")
BETWEEN = later("between groups: {one} and {other} ({value:.2f})")


def _most_similar(
    matrices: np.ndarray, heads: Sequence[str], names: Sequence[str], groups: Sequence[str]
) -> str:
    """Name the most similar classes within an output and across outputs."""
    matrix = np.where(np.isfinite(matrices[0]), matrices[0], -np.inf)
    group = np.array(list(groups))
    same = group[:, None] == group[None, :]
    messages = []
    own = same & ~np.eye(len(group), dtype=bool)
    for pairs, where in ((own, WITHIN), (~same, BETWEEN)):
        if pairs.any():
            i, j = np.unravel_index(int(np.argmax(np.where(pairs, matrix, -np.inf))), pairs.shape)
            messages.append(tr(where, one=names[int(i)], other=names[int(j)], value=matrix[i, j]))
    if not messages:
        return tr("There is only one class.")
    return tr("White: two classes use the same functions. Most alike: {pairs}.",
              pairs="; ".join(messages))  # fmt: skip


def coupling(matrix: np.ndarray) -> str:
    """Compare entries between groups with those within one; "" for a single group."""
    apart = ~np.eye(len(matrix), dtype=bool)
    if not apart.any() or not np.diag(matrix).mean():
        return ""
    share = matrix[apart].mean() / np.diag(matrix).mean()
    return " " + tr("Entries between groups are on average {share:.0%} of those within one (0% "
                    "if they shared no function). They do not tell which groups are related.",
                    share=share)  # fmt: skip


class Confused(PlotView):
    """Confusion matrix of held-out rows over the selected classes."""

    title = later("Confused classes")

    def __init__(self) -> None:
        self.plot = HintonGrid(self.title, tr("true"), 240, WHOLE, say=_confused)
        self.figures, self.panel = self.plot.figures, self.plot.panel

    def update(self, data: Report, metadata: Mapping[str, Any]) -> None:
        """Show a report's confusion within outputs, as none occurs between them."""
        names = shown_names(metadata)
        groups = [output for output, _ in metadata["shown"]]
        self.plot.show(np.asarray(data.arrays["confusion"], float)[None], [""], names, groups)


def _confused(
    matrices: np.ndarray, heads: Sequence[str], names: Sequence[str], groups: Sequence[str]
) -> str:
    share = np.where(np.isfinite(matrices[0]), matrices[0], 0.0)
    right = np.diag(share)
    wrong = share - np.diag(right)
    tested = share.sum(1) > 0
    if not tested.any():
        return tr("No row was held out.")
    i, j = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    values = {"n": int(tested.sum()), "share": right[tested].mean()}
    if wrong[i, j] <= 0:
        return tr("Held-out rows, true class down and predicted class across. The mean recall of "
                  "{n} classes is {share:.0%}.", **values)  # fmt: skip
    return tr("Held-out rows, true class down and predicted class across. The mean recall of {n} "
              "classes is {share:.0%}; {wrong:.0%} of {name} are classified as {other}.",
              wrong=wrong[i, j], name=names[int(i)], other=names[int(j)], **values)  # fmt: skip
