"""Traversal of latent space on the mitosis page: click, drag or slide to decode a position."""

from __future__ import annotations

from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.widgets import controls_row, stacked
from scant_dashboard.pages.mitosis.cells import ink
from scant_dashboard.pages.mitosis.spaces import HALVES, at
from scant_dashboard.plots.base import NOTHING, SIDE_BY_SIDE
from scant_dashboard.plots.images import GalleryPlot
from scant_dashboard.plots.latent import ClassesPlot
from scant_dashboard.plots.table import comparison
from scant_dashboard.template import text
from scant_dashboard.translate import later, tr

HELP = later("Click or drag in the plane, or move the sliders, to see the expected row there.")
ALONG = later("Place along {name}")
STEPS = 100  # steps per slider
LISTED = 12  # features listed; the others are collapsed


class LatentTraversal:
    """A walk through two dimensions of the latent space, with the decoded row."""

    title = later("Walk through the latent space")

    def __init__(self, page: PageContext) -> None:
        self._page = page
        self._run: RunState | None = None
        self._metadata: dict[str, Any] = {}
        self._x: np.ndarray = np.zeros(0)
        self._turn = 0  # rank of the starting row within its class
        self._start: np.ndarray | None = None  # the decoded features at the start
        self._suspended = False
        self.plane = ClassesPlot(tr("Where you are"), "walk", pick=self._picked, height=360)
        self.cell = GalleryPlot(tr("What lies there"), "decoded", min_side=120, max_side=170)
        self.figures = (*self.plane.figures, *self.cell.figures)
        self.features = text("", visible=False)
        self._build_controls()
        left = stacked(self.plane.panel, self.across_value, self.up_value)
        right = stacked(self.cell.panel, self.features)
        layout = pn.Column(left, right, stylesheets=[SIDE_BY_SIDE, HALVES],
                           sizing_mode="stretch_width", margin=0)  # fmt: skip
        controls = controls_row(self.of, self.across, self.up, self.other, gap=16)
        self.panel = stacked(text(f"<p class='quiet'>{tr(HELP)}</p>"), controls, layout)

    def _build_controls(self) -> None:
        self.of = pmui.Select(label=tr("Class"), options=[], disabled=True, width=170, size="small",
                              margin=0)  # fmt: skip
        self.across, self.up = (
            pmui.Select(label=label, options={}, disabled=True, width=170, size="small", margin=0)
            for label in (tr("Across"), tr("Up"))
        )
        self.across_value, self.up_value = (
            pmui.FloatSlider(label=label, start=-3, end=3, step=0.06, value=0, disabled=True,
                             sizing_mode="stretch_width", max_width=480, margin=(0, 12))
            for label in (tr("Across"), tr("Up"))
        )  # fmt: skip
        self.other = pmui.Button(label=tr("Begin at another row"), variant="outlined", size="small",
                                 disabled=True, margin=0)  # fmt: skip
        self.of.param.watch(lambda _: self._begin(), "value")
        for axis in (self.across, self.up):
            axis.param.watch(lambda _: self._frame(), "value")
        for slider in (self.across_value, self.up_value):
            slider.param.watch(lambda _: self._on_slide(), "value")
        self.other.on_click(lambda _: self._begin(self._turn + 1))

    @property
    def alt(self) -> str:
        return tr(HELP) if self.cell.alt == NOTHING else self.cell.alt

    def say(self) -> None:
        """Put the text alternatives on the figures."""
        self.plane.say()
        self.cell.say()

    def open(self, run: RunState) -> None:
        """Start at a row of the rare class."""
        assert run.report is not None
        self._run, self._metadata, arrays = run, dict(run.metadata), run.report.arrays
        shared, private = int(self._metadata["n_shared"]), int(self._metadata["n_private"])
        names = [tr("shared {n}", n=i + 1) for i in range(shared)]
        names += [tr("private {n}", n=i + 1) for i in range(private)]
        options = {name: i for i, name in enumerate(names)}
        order = np.argsort(-np.asarray(arrays["relevance"], float), kind="stable")
        first, second = int(order[0]), int(order[min(1, len(order) - 1)])
        self._suspended = True
        self.of.param.update(
            options=list(self._metadata["classes"]), value=self._metadata["rare"], disabled=False
        )
        self.across.param.update(options=options, value=first, disabled=False)
        self.up.param.update(options=options, value=second, disabled=False)
        for control in (self.across_value, self.up_value, self.other):
            control.disabled = False
        self._suspended = False
        # Only the owner queries at once: all viewers of a live run would do so at the same time.
        self._begin(ask=run.recorded or self._page.owns_run)

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._run = None
        self.plane.clear()
        self.cell.clear()
        self.features.visible = False
        for control in (self.of, self.across, self.up, self.across_value, self.up_value,
                        self.other):  # fmt: skip
            control.disabled = True

    def _begin(self, turn: int = 0, ask: bool = True) -> None:
        """Go to the position of a row of the class, ordered by distance from the median."""
        if self._run is None or self._suspended:
            return
        self._start = None
        mean = self._run.report.arrays["latent_mean"]  # type: ignore[union-attr]
        own = mean[self._label() == self._class()]
        if len(own):
            distance = ((own - np.median(own, axis=0)) ** 2).sum(1)
            self._turn = turn % len(own)
            self._x = own[np.argsort(distance, kind="stable")[self._turn]].astype(float).copy()
        else:
            self._x = np.zeros(mean.shape[1])
        self._frame(ask)

    def _label(self) -> np.ndarray:
        return np.asarray(self._run.report.arrays["latent_class"], int)  # type: ignore[union-attr]

    def _class(self) -> int:
        return list(self._metadata["classes"]).index(self.of.value)

    def _frame(self, ask: bool = True) -> None:
        """Show the chosen dimensions; for private ones, only rows of their class."""
        if self._run is None or self._suspended:
            return
        arrays = self._run.report.arrays  # type: ignore[union-attr]
        chosen, shared = (
            [int(self.across.value), int(self.up.value)],
            int(self._metadata["n_shared"]),
        )
        rows = np.arange(len(arrays["latent_class"]))
        if max(chosen) >= shared:
            rows = np.flatnonzero(self._label() == self._class())
        every = range(arrays["latent_mean"].shape[1])
        mean, std = (at(arrays[n][rows], every, chosen) for n in ("latent_mean", "latent_std"))
        axes = [next(n for n, i in self.across.options.items() if i == c) for c in chosen]
        self.plane.show(
            mean, std, self._label()[rows], self._metadata["classes"], (axes[0], axes[1])
        )
        here = self._x[chosen]
        low, high = np.vstack([mean, here]).min(0), np.vstack([mean, here]).max(0)
        margin = 0.2 * np.maximum(high - low, 1.0)
        self._suspended = True
        for slider, name, a, b, value in zip(
            (self.across_value, self.up_value), axes, low - margin, high + margin, here
        ):
            slider.param.update(label=tr(ALONG, name=name), start=float(a), end=float(b),
                                step=float(b - a) / STEPS, value=float(value))  # fmt: skip
        self._suspended = False
        self._decode(ask)

    def _picked(self, x: float, y: float) -> None:
        if self._run is None:
            return
        sliders = (self.across_value, self.up_value)
        self._suspended = True
        for slider, value in zip(sliders, (x, y)):
            slider.value = min(max(float(value), slider.start), slider.end)
        self._suspended = False
        self._on_slide(mark=False)  # the browser has set the mark

    def _on_slide(self, mark: bool = True) -> None:
        if self._run is None or self._suspended:
            return
        for axis, slider in ((self.up, self.up_value), (self.across, self.across_value)):
            self._x[int(axis.value)] = slider.value
        self._decode(mark=mark)

    def _decode(self, ask: bool = True, mark: bool = True) -> None:
        if mark:
            here = [self._x[int(axis.value)] for axis in (self.across, self.up)]
            self.plane.points(np.array([here]))
        if ask:
            x = [float(v) for v in self._x]
            self._page.ask("decode", self._answered, x=x, label=self.of.value)

    def _answered(self, answer: dict[str, np.ndarray]) -> None:
        gray, std = (np.asarray(answer[name], float) for name in ("image", "std"))
        spread = float(np.sqrt(np.mean(std**2)))
        where = ", ".join(
            tr("{name} = {value:.2f}", name=_label_of(axis), value=slider.value)
            for axis, slider in ((self.across, self.across_value), (self.up, self.up_value))
        )
        name = str(self.of.value)
        if not self._metadata.get("size"):
            message = tr("Expected row of {name} at {positions}.", name=name, positions=where)
            self._list(gray.ravel(), std.ravel(), message)
            return
        worst = float(std.max()) or 1.0
        self.cell.show(
            np.stack([np.clip(ink(gray), 0, 1), std / worst]),
            [[tr("mean"), name],
             [tr("standard deviation"), tr("{value:.2f} on average", value=spread)]],
            tr("Expected image of {name} at {positions}: gray levels from {low:.2f} to "
               "{high:.2f}. Their standard deviation, {spread:.2f} on average, is the second "
               "image, dark where it reaches {worst:.2f}.", name=name, positions=where,
               low=gray.min(), high=gray.max(), spread=spread, worst=worst),
        )  # fmt: skip

    def _list(self, mean: np.ndarray, std: np.ndarray, reading: str) -> None:
        """Without images, list the features, the most changed ones first."""
        names = [str(n) for n in self._metadata.get("features", [])]
        if self._start is None or self._start.shape != mean.shape:
            self._start = mean.copy()
        gone = (mean - self._start) / np.maximum(std, 1e-300)
        order = np.argsort(-np.abs(gone).round(3), kind="stable")  # ties in table order
        rows = {
            names[i]: [
                tr("{mean:.3g} ± {std:.2g}", mean=mean[i], std=std[i]),
                tr("{value:+.2g}", value=mean[i] - self._start[i]),
            ]
            for i in order
        }
        parts = [dict(list(rows.items())[:LISTED]), dict(list(rows.items())[LISTED:])]
        first, rest = (comparison(part, [tr("expected"), tr("since the start")]) for part in parts)
        message = tr("Move in the plane to see which features change.")
        if np.any(gone):
            message = tr("The features that changed most come first.")
        summary = tr("{n} more", n=len(parts[1]))
        more = f"<details><summary>{summary}</summary>{rest}</details>"
        self.features.object = f"<p class='quiet'>{message}</p>{first}{more if parts[1] else ''}"
        self.features.visible = True
        self.cell.describe(reading)


def _label_of(axis: pmui.Select) -> str:
    """Return the label of the chosen option."""
    return str(next(name for name, value in axis.options.items() if value == axis.value))
