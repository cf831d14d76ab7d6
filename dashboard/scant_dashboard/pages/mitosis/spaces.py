"""Latent spaces of the mitosis page: shared and private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
from jaxtyping import Float

from scant.events import Report, Snapshot
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.plots.base import SIDE_BY_SIDE, PlotView
from scant_dashboard.plots.latent import ClassesPlot
from scant_dashboard.translate import later, tr

HALVES = ":host { grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }"
CONTROLS = """
:host { grid-template-columns: repeat(auto-fit, minmax(118px, 1fr)); max-width: 30em; }
:host { padding-top: 4px; }
"""
FIRST, SECOND = -1, -2  # the currently most relevant dimensions
RANKS = {later("strongest"): FIRST, later("second"): SECOND}
SHARED, PRIVATE = later("shared dimension {n}"), later("private dimension {n}")
Arrays = Mapping[str, np.ndarray]


class Space(PlotView):
    """Rows in two dimensions of the shared space."""

    title = later("The space that all classes share")
    name, kind = "shared", SHARED
    aside = ""

    def __init__(self) -> None:
        self._latest: tuple[Arrays, Mapping[str, Any]] | None = None
        self.plot = ClassesPlot(self.title, self.name)
        self.figures = self.plot.figures
        self.across, self.up = (
            pmui.Select(label=label, options={tr(n): i for n, i in RANKS.items()},
                        value=value, sizing_mode="stretch_width", size="small", margin=0)
            for label, value in ((tr("Across"), FIRST), (tr("Up"), SECOND))
        )  # fmt: skip
        for control in (self.across, self.up):
            control.param.watch(lambda _: self._show(), "value")
        controls = pn.Column(*self._controls(), stylesheets=[SIDE_BY_SIDE, CONTROLS],
                             sizing_mode="stretch_width", margin=0)  # fmt: skip
        self.panel = stacked(controls, self.plot.panel)

    def _controls(self) -> tuple[Any, ...]:
        return self.across, self.up

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the positions of a snapshot."""
        self._latest = data.arrays, metadata
        self._offer(metadata)
        self._show()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._latest = None
        self.plot.clear()

    def _offer(self, metadata: Mapping[str, Any]) -> None:
        """Offer the dimensions, keeping the current choice if possible."""
        count = len(self._dimensions(metadata))
        options = {tr(name): rank for name, rank in RANKS.items()}
        options |= {str(i + 1): i for i in range(count)}
        for control, usual in ((self.across, FIRST), (self.up, SECOND)):
            if control.options != options:
                selected = control.value if control.value in options.values() else usual
                control.param.update(options=options, value=selected)

    def _dimensions(self, metadata: Mapping[str, Any]) -> range:
        return range(int(metadata["n_shared"]))

    def _rows(self, arrays: Arrays, metadata: Mapping[str, Any]) -> np.ndarray:
        return np.arange(len(arrays["latent_class"]))

    def _show(self) -> None:
        if self._latest is None:
            return
        arrays, metadata = self._latest
        dimensions, rows = self._dimensions(metadata), self._rows(arrays, metadata)
        if not len(dimensions) or not len(rows):
            self.plot.clear()
            self.plot.describe(tr("This model has no such space."))
            return
        relevance = np.asarray(arrays["relevance"], float)[list(dimensions)]
        chosen = [_chosen(int(c.value), relevance) for c in (self.across, self.up)]
        mean, spread = (
            at(arrays[name][rows], dimensions, chosen) for name in ("latent_mean", "latent_std")
        )
        axes = tuple(tr(self.kind, n=i + 1) if i < len(dimensions) else "" for i in chosen)
        label = np.asarray(arrays["latent_class"], int)[rows]
        self.plot.show(mean, spread, label, metadata["classes"], (axes[0], axes[1]))
        self.plot.describe(f"{self.plot.alt} {tr(self.aside)}".rstrip())


class Private(Space):
    """Rows of one class in two dimensions of its private space."""

    title = later("The space that a class has to itself")
    name, kind = "private", PRIVATE
    aside = later(
        "Positions of different classes are not comparable here, so one class is drawn at a time."
    )

    def __init__(self) -> None:
        self.of = pmui.Select(label=tr("Class"), options=[], sizing_mode="stretch_width",
                              size="small", margin=0)  # fmt: skip
        super().__init__()
        self.of.param.watch(lambda _: self._show(), "value")

    def _controls(self) -> tuple[Any, ...]:
        return self.of, self.across, self.up

    def _offer(self, metadata: Mapping[str, Any]) -> None:
        super()._offer(metadata)
        classes = list(metadata["classes"])
        if self.of.options != classes:
            self.of.param.update(options=classes, value=metadata["rare"])

    def _dimensions(self, metadata: Mapping[str, Any]) -> range:
        return range(
            int(metadata["n_shared"]), int(metadata["n_shared"]) + int(metadata["n_private"])
        )

    def _rows(self, arrays: Arrays, metadata: Mapping[str, Any]) -> np.ndarray:
        own = list(metadata["classes"]).index(self.of.value)
        return np.flatnonzero(np.asarray(arrays["latent_class"], int) == own)


def _chosen(value: int, relevance: Float[np.ndarray, " q"]) -> int:
    """Return the dimension with this index or relevance rank; the number of dimensions if none."""
    if value >= 0:
        return value
    rank = -value - 1
    if rank >= len(relevance):
        return len(relevance)
    return int(np.argsort(-relevance, kind="stable")[rank])


def at(
    values: Float[np.ndarray, "n q"], dimensions: range, chosen: list[int]
) -> Float[np.ndarray, "n 2"]:
    """Select two of the dimensions; absent ones are zero."""
    none = np.zeros(len(values))
    return np.column_stack(
        [values[:, dimensions[i]] if i < len(dimensions) else none for i in chosen]
    )
