"""Redshift: galaxies with a few noisy colors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scant.events import Report, Snapshot
from scant.studies.demo_draws import sentence
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.guess_first import GuessFirst
from scant_dashboard.page_parts.hidden_until_revealed import (
    HiddenUntilRevealed,
    ask_coverage,
    without_coverage,
)
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.select_rows import HEIGHT, TITLE, SelectRows
from scant_dashboard.page_parts.variants import Alternatives, Variant
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.redshift import selection
from scant_dashboard.pages.redshift.bands import IDLE, BandAblation
from scant_dashboard.pages.redshift.missing import MissingPlot, n_rows
from scant_dashboard.pages.redshift.rejection import REJECTION, RejectionSlider
from scant_dashboard.pages.redshift.scores import TITLE as SCORES
from scant_dashboard.pages.redshift.scores import score_tables
from scant_dashboard.pages.redshift.tried import TITLE as TRIED
from scant_dashboard.pages.redshift.tried import SearchHistoryPlot
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.bins import BinsPlot
from scant_dashboard.plots.calibration import CoveragePlot, PitPlot
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.relevance import BasisPlot, FeaturePlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.table import figures
from scant_dashboard.plots.uncertainty import VariancePlot

DRAWN = "held-out rows drawn in training"  # fewer than the results are of


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    loss = page.guess_first(digits=1, idle=IDLE)
    bands = LazyView(BandAblation.title, lambda: BandAblation(page, loss), height=560)
    rejection = LazyView(REJECTION, lambda: RejectionSlider(page), height=420)
    chosen = LazyView(
        TITLE,
        lambda: SelectRows(page, selection.rows, selection.axes, selection.measures),
        height=HEIGHT,
    )
    cost = Alternatives(page, COST, other_costs)
    explore: tuple[Any, ...] = (bands, rejection, chosen, cost)
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        main=frozenset({SCATTER}),
        live=_live(),
        result=_result(page, loss),
        explore=explore,
        full_width=frozenset(
            {
                "Where the uncertainty comes from",
                "Figures",
                MISSING,
                "Bin by bin",
                SCORES,
                TRIED,
                bands.title,
                rejection.title,
                chosen.title,
                cost.title,
            }
        ),
        steps=(
            (SCATTER, "Every dot is a held-out galaxy."),
            ("Where the uncertainty comes from", "Which part would more galaxies reduce?"),
            (PIT, "Is the predicted uncertainty correct?"),
            (bands.title, "Guess first: how much larger is the error without the u band?"),
            (MISSING, "Each missing band costs accuracy. Who loses least?"),
            (rejection.title, "How accurate are the most certain predictions?"),
        ),
    )


def _live() -> tuple[Any, ...]:
    def scatter() -> DataView:
        plot = ScatterPlot("redshift z", rows=DRAWN, rmse=False)

        def feed(data: Snapshot, metadata: Mapping[str, Any]) -> None:
            a = data.arrays
            plot.show(a["z_true"], a["z_mean"], np.hypot(a["std_model"], a["std_noise"]))

        return DataView(plot, feed)

    def features() -> DataView:
        plot = FeaturePlot()

        def feed(data: Snapshot, metadata: Mapping[str, Any]) -> None:
            plot.show(data.arrays["feature_relevance"], metadata.get("features", ()))

        return DataView(plot, feed)

    return (
        LazyView(SCATTER, scatter),
        LazyView(
            "Where the uncertainty comes from",
            lambda: array_view(VariancePlot("z", rows=DRAWN), "z_true", "std_model", "std_noise"),
        ),
        LazyView("Basis functions at work", lambda: array_view(BasisPlot(), "relevance")),
        LazyView("Features that matter", features),
    )


def _result(page: PageContext, loss: GuessFirst) -> tuple[Any, ...]:
    covered = page.guess_first(answered_by=(SCATTER, PIT, BandAblation.title))
    return (
        HiddenUntilRevealed(
            page, figures(sentence("redshift")), covered, less=without_coverage, ask=ask_coverage
        ),
        LazyView(PIT, lambda: array_view(PitPlot(), "pit")),
        LazyView(
            "Coverage of intervals",
            lambda: HiddenUntilRevealed(
                page, array_view(CoveragePlot(), "coverage"), covered, above=True
            ),
        ),
        LazyView(
            SPLIT,
            lambda: array_view(
                VariancePlot("z", title=SPLIT), "z_true", "std_model", "std_noise", "std_input"
            ),
        ),
        LazyView(MISSING, lambda: HiddenUntilRevealed(page, _missing(), loss)),
        LazyView("Bin by bin", lambda: array_view(BinsPlot("z"), "bins")),
        LazyView(SCORES, score_tables, height=640),
        LazyView(TRIED, _search_history),
    )


def _missing() -> DataView:
    plot = MissingPlot("z")
    return DataView(plot, lambda data, metadata: plot.show(data.arrays["missing"], n_rows(data)))


def _search_history() -> DataView:
    def feed(data: Report, metadata: Mapping[str, Any]) -> None:
        plot.show(data.arrays.get("tried", np.empty((0, 5))))  # older runs have none

    plot = SearchHistoryPlot()
    return DataView(plot, feed)


SCATTER = "Prediction against truth"
PIT = "Probability integral transform"
MISSING = "Bands missing"
COST = "What if errors cost differently?"
SPLIT = "What more data would remove"
EFFECT = {
    "normal": "every galaxy counts the same",
    "normalised": "errors count relative to 1 + z, so nearby galaxies gain",
    "balanced": "rare redshifts count as much as common ones, so the bias at high redshift shrinks",
}


def other_costs(run: RunState) -> tuple[str, list[Variant]]:
    """Return a sentence on this run's error weights, and variants with the others."""
    used = run.record.settings["weights"]
    others = [
        Variant(
            f"Train again with {other} weights",
            f"{effect}; watch the bias bin by bin.",
            {"weights": other},
        )
        for other, effect in EFFECT.items()
        if other != used
    ]
    return f"This run used {used} weights: {EFFECT[used]}.", others
