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
from scant_dashboard.pages.redshift.missing import TITLE as MISSING
from scant_dashboard.pages.redshift.missing import MissingPlot, n_rows
from scant_dashboard.pages.redshift.rejection import REJECTION, RejectionSlider
from scant_dashboard.pages.redshift.scores import TITLE as SCORES
from scant_dashboard.pages.redshift.scores import score_tables
from scant_dashboard.pages.redshift.target import OUTLIER, applicable, is_redshift
from scant_dashboard.pages.redshift.tried import TITLE as TRIED
from scant_dashboard.pages.redshift.tried import SearchHistoryPlot
from scant_dashboard.plots.base import DataView, array_view, target_name
from scant_dashboard.plots.bins import BinsPlot
from scant_dashboard.plots.calibration import CoveragePlot, PitPlot
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.relevance import BasisPlot, FeaturePlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.table import figures
from scant_dashboard.plots.uncertainty import VariancePlot
from scant_dashboard.translate import later, tr

DRAWN = later("held-out rows shown during training")  # fewer than the results are of


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    loss = page.guess_first(digits=1, idle=tr(IDLE))
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
                UNCERTAINTY,
                "Figures",
                MISSING,
                BINS,
                SCORES,
                TRIED,
                bands.title,
                rejection.title,
                chosen.title,
                cost.title,
            }
        ),
        steps=(
            (SCATTER, later("Every dot is a held-out row.")),
            (UNCERTAINTY, later("Which part would more rows reduce?")),
            (PIT, later("Is the predicted uncertainty correct?")),
            (bands.title, later("Guess first: how much larger is the error without an input?")),
            (MISSING, later("Each missing input costs accuracy. Who loses least?")),
            (rejection.title, later("How accurate are the most certain predictions?")),
        ),
        hides=hides,
    )


def hides(run: RunState) -> set[str]:
    """Return the titles of views whose scores, relative to 1 + z, do not apply to the target."""
    return set() if is_redshift(run.metadata) else {BINS}


def _live() -> tuple[Any, ...]:
    def scatter() -> DataView:
        plot = ScatterPlot(tr("redshift z"), title=SCATTER, rows=tr(DRAWN), rmse=False)

        def feed(data: Snapshot, metadata: Mapping[str, Any]) -> None:
            a = data.arrays
            plot.outlier = OUTLIER if is_redshift(metadata) else None
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
            UNCERTAINTY,
            lambda: array_view(
                VariancePlot("z", rows=tr(DRAWN)), "z_true", "std_model", "std_noise"
            ),
        ),
        LazyView(BASIS, lambda: array_view(BasisPlot(), "relevance")),
        LazyView(FEATURES, features),
    )


def _result(page: PageContext, loss: GuessFirst) -> tuple[Any, ...]:
    covered = page.guess_first(answered_by=(SCATTER, PIT, BandAblation.title))
    return (
        HiddenUntilRevealed(page, _figures(), covered, less=without_coverage, ask=ask_coverage),
        LazyView(PIT, lambda: array_view(PitPlot(), "pit")),
        LazyView(
            COVERAGE,
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
        LazyView(BINS, lambda: array_view(BinsPlot("z"), "bins")),
        LazyView(SCORES, score_tables, height=640),
        LazyView(TRIED, _search_history),
    )


def _figures() -> DataView:
    view = figures(sentence("redshift"))
    show = view.feed
    view.feed = lambda data, metadata: show(applicable(data, metadata), metadata)
    return view


def _missing() -> DataView:
    plot = MissingPlot("z")
    return DataView(plot, lambda data, metadata: plot.show(data.arrays["missing"], n_rows(data)))


def _search_history() -> DataView:
    def feed(data: Report, metadata: Mapping[str, Any]) -> None:
        plot.show(data.arrays.get("tried", np.empty((0, 5))))  # older runs have none

    plot = SearchHistoryPlot()
    return DataView(plot, feed)


SCATTER = later("Prediction against truth")
UNCERTAINTY = later("Where the uncertainty comes from")
BASIS = later("Basis functions at work")
FEATURES = later("Features that matter")
PIT = later("Probability integral transform")
COVERAGE = later("Coverage of intervals")
BINS = later("Bin by bin")
COST = later("What if errors cost differently?")
SPLIT = later("What more data would remove")
EFFECT = {
    "normal": later("every row counts the same"),
    "normalized": later("errors count relative to 1 + {target}, so small values gain"),
    "balanced": later(
        "rare values of {target} count as much as common ones, so the bias at rare values shrinks"
    ),
}
WATCH = later("{effect}; watch the bias bin by bin.")


def other_costs(run: RunState) -> tuple[str, list[Variant]]:
    """Return a sentence on this run's error weights, and variants with the others."""
    used, redshift = run.record.settings["weights"], is_redshift(run.metadata)
    target = target_name(run.metadata) or "z"
    effects = {name: tr(effect, target=target) for name, effect in EFFECT.items()}
    others = [
        Variant(
            tr("Train again with {weights} weights", weights=other),
            tr(WATCH, effect=effect) if redshift else f"{effect}.",
            {"weights": other},
        )
        for other, effect in effects.items()
        if other != used and (redshift or other != "normalized")
    ]
    message = tr("This run used {weights} weights: {effect}.", weights=used, effect=effects[used])
    return message, others
