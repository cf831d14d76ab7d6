"""Genes: outputs measured in replicas, some of them missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scant.dashboard.pages.genes.browse import Browse
from scant.dashboard.pages.genes.compare import Compare
from scant.dashboard.pages.genes.grid import Grid
from scant.dashboard.pages.genes.held_out_replica import HeldOutReplica
from scant.dashboard.plots.base import DataView
from scant.dashboard.plots.calibration import CoveragePlot, PitPlot
from scant.dashboard.plots.elbo import ElboPlot
from scant.dashboard.plots.hinton import HintonPlot
from scant.dashboard.plots.latent import LatentPlot
from scant.dashboard.plots.scatter import ScatterPlot
from scant.dashboard.plots.table import MetricsTable
from scant.dashboard.plots.uncertainty import VariancePlot
from scant.dashboard.plots.variance_components import LevelsPlot
from scant.dashboard.study_page.lazy_view import LazyView
from scant.dashboard.study_page.prose import read_prose
from scant.dashboard.study_page.variants import Alternatives, Variant
from scant.dashboard.study_page.views import PageViews
from scant.studies.genes.entry import MODELS

if TYPE_CHECKING:
    from scant.dashboard.live.run_state import RunState
    from scant.dashboard.study_page.context import PageContext
    from scant.events import Report

STORY, EQUATIONS = read_prose(__package__)
PICTURE = "Replicas, seen and never taken"
LATENT = "Where the outputs lie"
TOGETHER = "How the outputs go together"
LEVELS = "What each level explains"
REDUCIBLE = "What more data would remove"
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
    """The views of one browser session."""
    hidden = LazyView(HeldOutReplica.title, lambda: HeldOutReplica(page), height=980)
    browse = LazyView(Browse.title, lambda: Browse(page), height=760)
    explore: tuple[Any, ...] = (hidden, browse, Alternatives(page, WORTH, other_models))
    return PageViews(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=_live(),
        result=_result(),
        explore=explore,
        wide=frozenset({PICTURE, "Figures", Compare.title, hidden.title, browse.title, WORTH}),
        steps=(
            (PICTURE, "Green rings were hidden from the model."),
            (LATENT, "Neighboring outputs share information."),
            (LEVELS, "How much do replicas differ?"),
            (Compare.title, "What if a model knows less?"),
            (hidden.title, "Predict a replica that was never measured."),
        ),
    )


def _live() -> tuple[Any, ...]:
    latent, levels = LatentPlot(LATENT), LevelsPlot(LEVELS)
    hinton = HintonPlot(TOGETHER, "output", "output", "correlations")
    hinton.panel.stylesheets = [SIDEWAYS]
    return (
        DataView(
            latent,
            lambda told, metadata: latent.show(
                told.arrays["latent"], told.arrays["latent_std"], metadata["outputs"]
            ),
        ),
        Grid(PICTURE),
        DataView(hinton, lambda told, metadata: hinton.show(told.arrays["K"], metadata["outputs"])),
        DataView(
            levels, lambda told, metadata: levels.show(told.arrays["share"], metadata["shown"])
        ),
    )


def _result() -> tuple[Any, ...]:
    table = MetricsTable()

    def held_out() -> DataView:
        plot = ScatterPlot("value", outlier=None, title="Held-out values", against="held-out")
        return _of_test(plot, lambda a: plot.show(a["test_y"], a["test_mean"], a["test_std_y"]))

    def coverage() -> DataView:
        plot = CoveragePlot()
        return _of_test(plot, lambda a: plot.show(a["coverage"]))

    def pit() -> DataView:
        plot = PitPlot(bins=10)
        return _of_test(plot, lambda a: plot.show(a["pit"]))

    def reducible() -> DataView:
        plot = VariancePlot("y", bins=10, title=REDUCIBLE, inputs=False)
        return _of_test(
            plot, lambda a: plot.show(a["test_y"], a["test_std_f"], a["test_std_noise"])
        )

    return (
        DataView(table, lambda told, metadata: table.show(told.metrics, told.notes)),
        LazyView(Compare.title, Compare, height=700),
        LazyView("Held-out values", held_out),
        LazyView("Coverage of intervals", coverage),
        LazyView("Probability integral transform", pit),
        LazyView(REDUCIBLE, reducible),
    )


def _of_test(plot: Any, show: Any) -> DataView:
    """A view of held-out rows, which says nothing where none was held out."""

    def feed(told: Report, metadata: Mapping[str, Any]) -> None:
        if len(told.arrays["test_y"]):
            show(told.arrays)
        else:
            plot.describe("No row was held out; hide a replica, or choose a split.")

    return DataView(plot, feed)


def other_models(run: RunState) -> tuple[str, list[Variant]]:
    """The other models, each one click away."""
    used = str(run.record.settings["model"])
    others = [
        Variant(f"the same with {MODELS[name]}", f"it models {knows}.", {"model": name})
        for name, knows in KNOWS.items()
        if name != used
    ]
    return f"This run trained {MODELS[used]}, which models {KNOWS[used]}.", others
