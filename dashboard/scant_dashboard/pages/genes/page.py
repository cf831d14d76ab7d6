"""Genes: outputs measured in replicas, some of them missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from scant.studies.demo_draws import sentence
from scant.studies.genes.settings import MODELS
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
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
from scant_dashboard.pages.genes import selection
from scant_dashboard.pages.genes.browse import Browse
from scant_dashboard.pages.genes.compare import Compare
from scant_dashboard.pages.genes.grid import Grid
from scant_dashboard.pages.genes.held_out_replica import HeldOutReplica
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.calibration import CoveragePlot, PitPlot
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.hinton import HintonPlot
from scant_dashboard.plots.latent import LatentPlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.table import figures
from scant_dashboard.plots.uncertainty import VariancePlot
from scant_dashboard.plots.variance_components import VarianceComponentsPlot

PICTURE = "Replicas, observed and missing"
PIT = "Probability integral transform"
LOW = 56  # pixels of a cell, so that four outputs are whole on the first screen
LATENT = "Where the outputs lie"
TOGETHER = "How the outputs go together"
LEVELS = "What each level explains"
REDUCIBLE = "What more data would remove"
NONE_HELD_OUT = "No row was held out; hide a replica, or choose a split."
WORTH = "What do hierarchy and correlation each contribute?"
SIDEWAYS = ":host { overflow-x: auto !important; min-width: 0; }"  # outputs with long names
KNOWS = {
    "hmogp-lv": "replicas and correlated outputs",
    "lvmogp": "correlated outputs, but no replicas",
    "dhgp": "replicas in a hierarchy, with one curve above all outputs",
    "hgp": "each output's replicas, but no other outputs",
    "hgp-ind": "the same hierarchy as HGP, with inducing points",
    "lmc": "mixtures of functions, but no replicas",
    "independent": "each output alone, all replicas pooled",
    "pooled": "one curve for everything",
}


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    hidden = LazyView(HeldOutReplica.title, lambda: HeldOutReplica(page), height=980)
    browse = LazyView(Browse.title, lambda: Browse(page), height=760)
    chosen = LazyView(
        TITLE,
        lambda: SelectRows(page, selection.rows, selection.axes, selection.measures),
        height=HEIGHT,
    )
    explore: tuple[Any, ...] = (hidden, browse, chosen, Alternatives(page, WORTH, other_models))
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        main=frozenset({PICTURE}),
        live=_live(),
        result=_result(page),
        explore=explore,
        full_width=frozenset(
            {PICTURE, "Figures", Compare.title, hidden.title, browse.title, TITLE, WORTH}
        ),
        steps=(
            (PICTURE, "Green rings were hidden from the model."),
            (LATENT, "Neighboring outputs share information."),
            (LEVELS, "How much do replicas differ?"),
            (Compare.title, "What if a model knows less?"),
            (hidden.title, "Predict a replica that was never measured."),
        ),
    )


def _live() -> tuple[Any, ...]:
    def together() -> DataView:
        hinton = HintonPlot(TOGETHER, "output", "output", "correlations")
        hinton.panel.stylesheets = [SIDEWAYS]
        return array_view(hinton, "K", labels=("outputs",))

    def latent() -> DataView:
        return array_view(LatentPlot(LATENT), "latent", "latent_std", labels=("outputs",))

    return (
        LazyView(LATENT, latent),
        LazyView(PICTURE, lambda: Grid(PICTURE, row_height=LOW), height=400),
        LazyView(TOGETHER, together),
        LazyView(
            LEVELS, lambda: array_view(VarianceComponentsPlot(LEVELS), "share", labels=("shown",))
        ),
    )


def _result(page: PageContext) -> tuple[Any, ...]:
    covered = page.guess_first(answered_by=(PICTURE, "Held-out values", PIT))
    held_out = partial(
        _held_out_view,
        lambda: ScatterPlot(
            "value", outlier=None, title="Held-out values", against="held-out", rmse=False
        ),
        "test_y", "test_mean", "test_std_y",
    )  # fmt: skip
    reducible = partial(
        _held_out_view,
        lambda: VariancePlot("y", bins=10, title=REDUCIBLE, inputs=False),
        "test_y", "test_std_f", "test_std_noise",
    )  # fmt: skip
    return (
        HiddenUntilRevealed(
            page, figures(sentence("genes")), covered, less=without_coverage, ask=ask_coverage
        ),
        LazyView(Compare.title, Compare, height=700),
        LazyView("Held-out values", held_out),
        LazyView(
            "Coverage of intervals",
            lambda: HiddenUntilRevealed(
                page, _held_out_view(CoveragePlot, "coverage"), covered, above=True
            ),
        ),
        LazyView(
            PIT,
            partial(_held_out_view, lambda: PitPlot(bins=10), "pit"),
        ),
        LazyView(REDUCIBLE, reducible),
    )


def _held_out_view(make: Callable[[], Any], *arrays: str) -> DataView:
    """Create a view of held-out rows, with a note if there are none."""
    return array_view(make(), *arrays, needs="test_y", without=NONE_HELD_OUT)


def other_models(run: RunState) -> tuple[str, list[Variant]]:
    """Return variants with the other models."""
    used = str(run.record.settings["model"])
    others = [
        Variant(f"Train {MODELS[name]} instead", f"it models {knows}.", {"model": name})
        for name, knows in KNOWS.items()
        if name != used
    ]
    if used not in KNOWS:
        return "This run trained models of several kinds, or one of them.", others
    return f"This run trained {MODELS[used]}, which models {KNOWS[used]}.", others
