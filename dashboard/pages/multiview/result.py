"""The results of a multiview run: metrics, other methods, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scant.dashboard.plots.base import DataView
from scant.dashboard.plots.calibration import CoveragePlot, PitPlot
from scant.dashboard.plots.entropy import EntropyPlot
from scant.dashboard.plots.methods import MethodsPlot
from scant.dashboard.plots.precision_recall import PrecisionRecallPlot
from scant.dashboard.plots.reliability import ReliabilityPlot
from scant.dashboard.plots.table import MetricsTable
from scant.dashboard.plots.uncertainty import VariancePlot
from scant.dashboard.study_page.lazy_view import LazyView

if TYPE_CHECKING:
    from scant.events import Report

BESIDE = "Beside other methods"
RELIABLE = "Can its probabilities be trusted?"
TRADES = "What a threshold trades"
DOUBT = "How much of its doubt is its own"
WITHIN = "Coverage of intervals"
PIT = "Probability integral transform"
SPLIT = "What more data would remove"
NONE = "There are no held-out rows; choose a smaller training share."


def result() -> tuple[Any, ...]:
    """The views of a report; those of other tasks are kept off the page by the frame."""
    table = MetricsTable()
    return (
        DataView(table, lambda told, metadata: table.show(told.metrics, told.notes)),
        LazyView(BESIDE, _beside),
        LazyView(RELIABLE, _reliable),
        LazyView(TRADES, _trades),
        LazyView(DOUBT, _doubt),
        LazyView(WITHIN, _within),
        LazyView(PIT, _pit),
        LazyView(SPLIT, _split),
    )


def _beside() -> DataView:
    plot = MethodsPlot(BESIDE)

    def feed(told: Report, metadata: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(a["scores"], a["t_test"], metadata["methods"], str(metadata["score"]))

    return DataView(plot, feed)


def _reliable() -> DataView:
    """Of one class, where others show the class that is taken: half of 20% is no coin toss."""
    plot = ReliabilityPlot(RELIABLE)

    def feed(told: Report, metadata: Mapping[str, Any]) -> None:
        plot.show(told.arrays["reliability"], str(metadata["classes"][1]))

    return DataView(plot, feed)


def _trades() -> DataView:
    plot = PrecisionRecallPlot(TRADES)

    def feed(told: Report, metadata: Mapping[str, Any]) -> None:
        name, methods = str(metadata["classes"][1]), list(metadata["methods"])
        truth, curves = told.arrays["test_truth"], told.arrays["pr"]
        if not len(curves):
            plot.describe(NONE)
            return
        axes = plot.figures[0]
        axes.xaxis.axis_label = f"recall: share of {name} found"
        axes.yaxis.axis_label = "precision: share of correct positives"
        plot.show(curves, methods, float(np.mean(truth)))
        found = curves[0, 2] >= 0.8  # where four in five are found
        precise = [float(np.nanmax(c[1][c[2] >= 0.8], initial=0)) for c in curves]
        if found.any():
            said = ", ".join(f"{m} {p:.0%}" for m, p in zip(methods, precise))
            plot.describe(
                f"Where four in five of {name} are found, of the finds are right: {said}. Dotted: "
                "what guessing comes to."
            )

    return DataView(plot, feed)


def _doubt() -> DataView:
    plot = EntropyPlot(DOUBT)

    def feed(told: Report, metadata: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(a["test_entropy"], a["test_information"], a["test_truth"], metadata["classes"])

    return DataView(plot, feed)


def _within() -> DataView:
    plot = CoveragePlot(WITHIN)
    return DataView(plot, lambda told, metadata: plot.show(told.arrays["coverage"]))


def _pit() -> DataView:
    plot = PitPlot(bins=10, title=PIT)
    return DataView(plot, lambda told, metadata: plot.show(told.arrays["pit"]))


def _split() -> DataView:
    plot = VariancePlot("target", bins=10, title=SPLIT, inputs=False)

    def feed(told: Report, metadata: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(a["test_truth"], a["test_std_model"], a["test_std_noise"])

    return DataView(plot, feed)
