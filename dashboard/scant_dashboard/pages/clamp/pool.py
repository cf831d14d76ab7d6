"""The clamp page's live views: the pool in a plane, and scores by number of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import panel_material_ui as pmui

from scant.events import Report, Snapshot
from scant.store.records import Label
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.widgets import stacked
from scant_dashboard.pages.clamp.label_efficiency import LabelEfficiencyPlot
from scant_dashboard.pages.clamp.session_labels import classes_of, positive_class
from scant_dashboard.plots.base import PlotView
from scant_dashboard.plots.pool import PoolPlot
from scant_dashboard.translate import later, tr

SCORES = {"F1": "f1", later("precision"): "precision", later("recall"): "recall"}
YOURS = later("your labels")
ONE = later("{score} of this one session (random: the mean of several)")
HELD_OUT = later("{score} of held-out rows")
VALIDATED = later("{score} by cross-validation on the labels that the model learns from")


class PoolView(PlotView):
    """Every row of the pool in the plane of the first two principal components."""

    title = later("The pool and its queries")

    def __init__(self) -> None:
        self.plot = PoolPlot(self.title)
        self.figures, self.panel = self.plot.figures, self.plot.panel
        self._xy = np.empty((0, 2))
        self._classes: list[str] = []
        self._sought = ""

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the pool of a snapshot."""
        arrays = data.arrays
        self._xy = np.asarray(arrays["pool_xy"], float)
        self._classes, self._sought = classes_of(metadata), positive_class(metadata)
        query, label = (np.asarray(arrays[n], int) for n in ("asked", "asked_label"))
        given = [query[label == k].tolist() for k in range(len(self._classes))]
        self._show(arrays["pool_p"], given, arrays["queue"])

    def on_answer(self, answer: Mapping[str, np.ndarray], labels: Mapping[int, Label]) -> None:
        """Show the predictions after the model was refitted to these labels."""
        if len(answer["p"]) == len(self._xy):
            # Placed patches are no rows of the pool.
            own = [(r, v.label) for r, v in labels.items() if r < len(self._xy)]
            given = [[r for r, label in own if label == c] for c in self._classes]
            self._show(answer["p"], given, answer["queue"])

    def _show(self, p: np.ndarray, given: list[list[int]], queue: np.ndarray) -> None:
        rows = np.arange(len(self._xy))
        query = np.asarray(queue, int).tolist()
        self.plot.show(self._xy, np.asarray(p, float), rows, given, query, self._classes,
                       self._sought)  # fmt: skip


class Efficiency(PlotView):
    """F1, precision or recall of held-out rows against the number of labels."""

    title = later("What a label is worth")

    def __init__(self) -> None:
        self.plot = LabelEfficiencyPlot(self.title)
        self.figures = self.plot.figures
        self.score = pmui.Select(label=tr("Score"), options={tr(name): name for name in SCORES},
                                 value="F1", width=180, size="small", margin=0)  # fmt: skip
        self.score.param.watch(lambda _: self._show(), "value")
        self.panel = stacked(self.score, self.plot.panel)
        self._latest: tuple[Mapping[str, np.ndarray], list[str]] | None = None
        self._own: dict[int, list[float]] = {}
        self._of = ""

    def update(self, data: Snapshot | Report, metadata: Mapping[str, Any]) -> None:
        """Show the curves of a snapshot."""
        self._latest = data.arrays, [str(m) for m in metadata["methods"]]
        self._show()

    def clear(self, run: RunState) -> None:
        """Discard the previous run."""
        self._latest, self._own = None, {}
        self.plot.clear()

    def on_answer(self, answer: Mapping[str, np.ndarray], labels: Mapping[int, Label]) -> None:
        """Add the scores reached with these labels."""
        scores = [float(np.ravel(answer[name])[0]) for name in SCORES.values()]
        held_out = float(np.ravel(answer.get("held_out", 0.0))[0]) == 1
        self._of = HELD_OUT if held_out else VALIDATED
        # Removing labels removes their points.
        self._own = {n: s for n, s in self._own.items() if n < len(labels)}
        self._own[len(labels)] = scores
        self._show()

    def _show(self) -> None:
        name = str(self.score.value)
        if self._own:
            column = list(SCORES).index(name)
            count = np.array(sorted(self._own), float)
            values = np.array([[self._own[int(n)][column] for n in count]])
            self.plot.show(count, values, [YOURS], tr(name), of=self._of)
        elif self._latest is not None:
            arrays, methods = self._latest
            scores = np.asarray(arrays[SCORES[name]], float)
            band = np.zeros_like(scores)
            if name == "F1" and len(scores) > 1:
                band[1] = np.nan_to_num(np.asarray(arrays["f1_random_sd"], float))
            labels = np.asarray(arrays["labels"], float)
            self.plot.show(labels, scores, methods, tr(name), band, ONE)
