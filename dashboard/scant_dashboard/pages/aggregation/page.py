"""Aggregation: values known only as averages over supports of every size."""

from __future__ import annotations

from typing import Any

import numpy as np

from scant.events import Report
from scant.studies.demo_draws import sentence
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.hidden_until_revealed import (
    HiddenUntilRevealed,
    ask_coverage,
    without_coverage,
)
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.variants import Alternatives, Variant
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.aggregation.box import BoxQuery
from scant_dashboard.pages.aggregation.curve import Scarcity
from scant_dashboard.pages.aggregation.field import Field
from scant_dashboard.pages.aggregation.map import Maps, on_map
from scant_dashboard.pages.aggregation.polygon import PolygonQuery
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.calibration import CoveragePlot
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.hinton import HintonPlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.table import figures
from scant_dashboard.translate import later, ntr, tr

TOGETHER = later("How the tasks go together")
PICTURE = later("Posterior mean and deviation")
HELD_OUT = later("Held-out values")
CHECK = later("Aggregate check")
COVERAGE = later("Coverage of intervals")
TOTALS = later("Predicted parts against observed totals")
WORTH = later("What is each task worth?")
ASK = BoxQuery.title


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    box = LazyView(ASK, lambda: BoxQuery(page), height=700)
    curve = LazyView(Scarcity.title, lambda: Scarcity(page), height=420)
    polygon = LazyView(PolygonQuery.title, lambda: PolygonQuery(page), height=760)
    explore: tuple[Any, ...] = (box, polygon, curve, Alternatives(page, WORTH, leave_one_task_out))
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        main=frozenset({PICTURE, Maps.title}),
        live=_live(page),
        result=_result(page),
        explore=explore,
        full_width=frozenset(
            {PICTURE, Maps.title, "Figures", box.title, polygon.title, curve.title, WORTH}
        ),
        steps=(
            (PICTURE, later("The data are averages over boxes and a few single values.")),
            (
                TOGETHER,
                later("A large square means that two tasks are strongly correlated."),
            ),
            (CHECK, later("Does each posterior average agree with its observation?")),
            (COVERAGE, later("Guess first: how many held-out values do the bands contain?")),
            (ASK, later("Which average would you like to know?")),
            (Scarcity.title, later("How many fine values are the coarse ones worth?")),
        ),
        hides=hides,
    )


def hides(run: RunState) -> set[str]:
    """Return the titles of views without content, e.g. of the maps if the run has cells."""
    hidden = {PICTURE, BoxQuery.title} if on_map(run) else {Maps.title, PolygonQuery.title}
    if run.report is None or not np.size(run.report.arrays.get("totals", ())):
        hidden.add(TOTALS)
    return hidden


def _live(page: PageContext) -> tuple[Any, ...]:
    def together() -> DataView:
        hinton = HintonPlot(TOGETHER, tr("task"), tr("task"), tr("covariances"))
        return array_view(hinton, "B", labels=("tasks",))

    return (
        LazyView(TOGETHER, together),
        LazyView(PICTURE, lambda: Field(PICTURE), height=480),
        LazyView(Maps.title, lambda: Maps(page), height=900),
    )


def _result(page: PageContext) -> tuple[Any, ...]:
    covered = page.guess_first(answered_by=(PICTURE, HELD_OUT, CHECK, TOTALS))

    def held_out() -> DataView:
        plot = ScatterPlot(tr("value"), outlier=None, title=HELD_OUT, against=tr("held-out"))
        return array_view(plot, "test_y", "test_mean", "test_std", needs="test_y")

    def check() -> DataView:
        plot = ScatterPlot(
            tr("average"),
            outlier=None,
            title=CHECK,
            against=tr("recorded"),
            rows=tr("training rows"),
            rmse=False,
        )

        def feed(data: Report, metadata: Any) -> None:
            _, y, mean, std, _ = data.arrays["check"]
            plot.show(y, mean, std)

        return DataView(plot, feed)

    def totals() -> DataView:
        plot = ScatterPlot(
            tr("total"), outlier=None, title=TOTALS, against=tr("observed"), rows=tr("totals"),
            rmse=False,
        )  # fmt: skip

        def feed(data: Report, metadata: Any) -> None:
            _, observed, predicted, _, new, _ = data.arrays["totals"]
            plot.show(observed, predicted, new)

        return DataView(plot, feed)

    def coverage() -> HiddenUntilRevealed:
        plot = array_view(CoveragePlot(), "coverage", needs="coverage")
        return HiddenUntilRevealed(page, plot, covered, above=True)

    return (
        HiddenUntilRevealed(
            page, figures(sentence("aggregation")), covered, less=without_coverage, ask=ask_coverage
        ),
        LazyView(HELD_OUT, held_out),
        LazyView(CHECK, check),
        LazyView(TOTALS, totals),
        LazyView(COVERAGE, coverage),
    )


def leave_one_task_out(run: RunState) -> tuple[str, list[Variant]]:
    """Return variants that leave out one of the other tasks."""
    metadata = run.metadata
    others = [str(task) for task in metadata["tasks"] if task != metadata["scarce"]]
    tasks, observed = metadata["tasks"], np.asarray(metadata["observed"]["task"])
    before = str(run.record.settings.get("leave_out") or "")
    task = metadata["scarce"]
    message = tr("This run trained {task} alone.", task=task)
    if others:
        message = tr("This run trained {task} together with {others}.", task=task,
                     others=", ".join(others))  # fmt: skip
    return message, [
        Variant(
            tr("Train again without {task}", task=task),
            ntr("{n} fewer observation.", "{n} fewer observations.",
                int((observed == tasks.index(task)).sum())),
            {"leave_out": ",".join(filter(None, [before, task]))},
        )
        for task in others
    ]  # fmt: skip
