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
from scant_dashboard.translate import later, tr

PICTURE = later("Replicas, observed and missing")
HELD_OUT = later("Held-out values")
COVERAGE = later("Coverage of intervals")
PIT = later("Probability integral transform")
LOW = 56  # pixels of a cell, so that four outputs are whole on the first screen
LATENT = later("Where the outputs lie")
TOGETHER = later("How the outputs go together")
LEVELS = later("What each level explains")
REDUCIBLE = later("What more data would remove")
NONE_HELD_OUT = later("No row was held out; hide a replica, or choose a split.")
WORTH = later("What do hierarchy and correlation each contribute?")
SIDEWAYS = ":host { overflow-x: auto !important; min-width: 0; }"  # outputs with long names
KNOWS = {
    "hmogp-lv": later("replicas and correlated outputs"),
    "lvmogp": later("correlated outputs, but no replicas"),
    "dhgp": later("replicas in a hierarchy, with one curve above all outputs"),
    "hgp": later("each output's replicas, but no other outputs"),
    "hgp-ind": later("the same hierarchy as HGP, with inducing points"),
    "lmc": later("mixtures of functions, but no replicas"),
    "independent": later("each output alone, all replicas pooled"),
    "pooled": later("one curve for everything"),
}


NAMES = MODELS | {"independent": later("independent GPs"), "pooled": later("pooled GP")}


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
            (PICTURE, later("Green rings were hidden from the model.")),
            (LATENT, later("Neighboring outputs share information.")),
            (LEVELS, later("How much do replicas differ?")),
            (Compare.title, later("What if a model knows less?")),
            (hidden.title, later("Predict a replica that was never measured.")),
        ),
    )


def _live() -> tuple[Any, ...]:
    def together() -> DataView:
        hinton = HintonPlot(TOGETHER, tr("output"), tr("output"), tr("correlations"))
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
    covered = page.guess_first(answered_by=(PICTURE, HELD_OUT, PIT))
    held_out = partial(
        _held_out_view,
        lambda: ScatterPlot(
            tr("value"), outlier=None, title=HELD_OUT, against=tr("held-out"), rmse=False
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
        LazyView(HELD_OUT, held_out),
        LazyView(
            COVERAGE,
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
    return array_view(make(), *arrays, needs="test_y", without=tr(NONE_HELD_OUT))


def other_models(run: RunState) -> tuple[str, list[Variant]]:
    """Return variants with the other models."""
    used = str(run.record.settings["model"])
    others = [
        Variant(
            tr("Train {model} instead", model=tr(NAMES[name])),
            tr("it models {what}.", what=tr(knows)),
            {"model": name},
        )
        for name, knows in KNOWS.items()
        if name != used
    ]
    if used not in KNOWS:
        return tr("This run trained models of several kinds, or one of them."), others
    model, what = tr(NAMES[used]), tr(KNOWS[used])
    return tr("This run trained {model}, which models {what}.", model=model, what=what), others
