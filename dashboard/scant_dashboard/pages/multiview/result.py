"""The results of a multiview run: metrics, other methods, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scant.events import Report
from scant.studies.demo_draws import sentence
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.calibration import CoveragePlot, PitPlot
from scant_dashboard.plots.entropy import EntropyPlot
from scant_dashboard.plots.methods import MethodsPlot
from scant_dashboard.plots.precision_recall import PrecisionRecallPlot
from scant_dashboard.plots.reliability import ReliabilityPlot
from scant_dashboard.plots.table import figures
from scant_dashboard.plots.uncertainty import VariancePlot
from scant_dashboard.translate import later, tr

METHODS = later("Beside other methods")
RELIABLE = later("Can its probabilities be trusted?")
TRADES = later("What a threshold trades")
DOUBT = later("Uncertainty of the classes")
WITHIN = later("Coverage of intervals")
PIT = later("Probability integral transform")
SPLIT = later("What more data would remove")
NONE = later("There are no held-out rows; choose a smaller training share.")


def result() -> tuple[Any, ...]:
    """Return the views of a report; the frame hides those of other tasks."""
    return (
        figures(sentence("multiview")),
        LazyView(
            METHODS,
            lambda: array_view(
                MethodsPlot(METHODS), "scores", "t_test", labels=("methods", "score")
            ),
        ),
        LazyView(RELIABLE, _reliability),
        LazyView(TRADES, _precision_recall),
        LazyView(
            DOUBT,
            lambda: array_view(
                EntropyPlot(DOUBT),
                "test_entropy",
                "test_information",
                "test_truth",
                labels=("classes",),
            ),
        ),
        LazyView(WITHIN, lambda: array_view(CoveragePlot(WITHIN), "coverage")),
        LazyView(PIT, lambda: array_view(PitPlot(bins=10, title=PIT), "pit")),
        LazyView(
            SPLIT,
            lambda: array_view(
                VariancePlot(tr("target"), bins=10, title=SPLIT, inputs=False),
                "test_truth",
                "test_std_model",
                "test_std_noise",
            ),
        ),
    )


def _reliability() -> DataView:
    """Create a view of the reliability of the positive class rather than the predicted one."""
    plot = ReliabilityPlot(RELIABLE)

    def feed(data: Report, metadata: Mapping[str, Any]) -> None:
        plot.show(data.arrays["reliability"], str(metadata["classes"][1]))

    return DataView(plot, feed)


def _precision_recall() -> DataView:
    plot = PrecisionRecallPlot(TRADES)

    def feed(data: Report, metadata: Mapping[str, Any]) -> None:
        name, methods = str(metadata["classes"][1]), list(metadata["methods"])
        truth, curves = data.arrays["test_truth"], data.arrays["pr"]
        if not len(curves):
            plot.describe(tr(NONE))
            return
        axes = plot.figures[0]
        axes.xaxis.axis_label = tr("recall: share of {name} found", name=name)
        axes.yaxis.axis_label = tr("precision: share of correct positives")
        plot.show(curves, methods, float(np.mean(truth)))
        result = curves[0, 2] >= 0.8  # recall of at least 80%
        precise = [float(np.nanmax(c[1][c[2] >= 0.8], initial=0)) for c in curves]
        if result.any():
            message = ", ".join(f"{tr(m)} {p:.0%}" for m, p in zip(methods, precise))
            plot.describe(tr("Precision where recall is 80%: {values}. Dotted: the precision of "
                             "guessing.", values=message))  # fmt: skip

    return DataView(plot, feed)
