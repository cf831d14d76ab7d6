"""Genes: outputs measured in replicas, some of which were never taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dashboard.pages.alternatives import Alternatives, Other
from dashboard.pages.genes_browse import Browse
from dashboard.pages.genes_compare import Compare
from dashboard.pages.genes_grid import Grid
from dashboard.pages.genes_hide import Hidden
from dashboard.pages.views import Views
from dashboard.plots.base import Fed
from dashboard.plots.calibration import CoveragePlot, PitPlot
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.hinton import HintonPlot
from dashboard.plots.late import Late
from dashboard.plots.latent import LatentPlot
from dashboard.plots.levels import LevelsPlot
from dashboard.plots.scatter import ScatterPlot
from dashboard.plots.table import MetricsTable
from dashboard.plots.variance import VariancePlot
from engine.catalog.genes import MODELS

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage
    from engine.events import Report

STORY = """
A gene's activity is followed in several embryos, each sampled at hours of its own; a sensor is read
on several machines, a gait in several trials. **What is scarce** is replicas: some have few points,
some end early, and some were never taken at all.

**What the model does.** It learns two levels at once: what all replicas of an output share, and
what each adds of its own. And it places the outputs in a small latent space, where neighbours lend
each other what they know: an embryo in which one gene was not measured still showed the others.

**What to look at.** While it trains, missing replicas (green rings, which the model has not seen)
come inside their bands, outputs find their neighbours, and the share of each level settles.
Afterwards hide a replica of your choice and see it return; compare with models that know only the
hierarchy, or only the correlation, or neither.
"""

EQUATIONS = r"""
Replica *r* of output *d* is a function of its own around what the output's replicas share
(Ma 2023, 5.12–5.13):

$$g_d\sim\mathcal{GP}(0,k_g),\qquad f_d^r\sim\mathcal{GP}(g_d,k_f),\qquad
y_d^r(x)=f_d^r(x)+\varepsilon_d.$$

Outputs lie at latent places $\mathbf h_d$, and all covariances are products (5.14):

$$\operatorname{cov}\big(f_d^r(x),f_{d'}^{r'}(x')\big)=k_H(\mathbf h_d,\mathbf h_{d'})\,
\big[k_g(x,x')+\delta_{rr'}\,k_f(x,x')\big].$$

Places and inducing variables have Gaussian posteriors, and one bound trains all (5.31):

$$\mathcal L=\sum_d\mathbb E_{q(\mathbf h_d)q(\mathbf U)}\big[\ln p(\mathbf y_d\mid\mathbf U,
\mathbf h_d)\big]-\mathrm{KL}\big(q(\mathbf U)\,\|\,p(\mathbf U)\big)
-\sum_d\mathrm{KL}\big(q(\mathbf h_d)\,\|\,p(\mathbf h_d)\big).$$
"""
PICTURE = "Replicas, seen and never taken"
LATENT = "Where the outputs lie"
TOGETHER = "How the outputs go together"
LEVELS = "What each level explains"
REDUCIBLE = "What more data would remove"
WORTH = "What do hierarchy and correlation each contribute?"
SIDEWAYS = ":host { overflow-x: auto !important; min-width: 0; }"  # outputs with long names
KNOWS = {
    "hmogp-lv": "replicas and outputs that go together",
    "lvmogp": "outputs that go together, but no replicas",
    "dhgp": "replicas in a tree, with one curve above all outputs",
    "hgp": "each output's replicas, but no other outputs",
    "hgp-ind": "what HGP knows of, by inducing points",
    "lmc": "mixtures of functions, but no replicas",
    "independent": "each output alone, its replicas heaped together",
    "pooled": "one curve for everything",
}


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    hidden = Late(Hidden.title, lambda: Hidden(page), height=980)
    browse = Late(Browse.title, lambda: Browse(page), height=760)
    explore: tuple[Any, ...] = (hidden, browse, Alternatives(page, WORTH, other_models))
    return Views(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=_live(),
        result=_result(),
        explore=explore,
        wide=frozenset({PICTURE, "Figures", Compare.title, hidden.title, browse.title, WORTH}),
        steps=(
            (PICTURE, "Green rings were never shown to the model."),
            (LATENT, "Neighbours lend each other what they know."),
            (LEVELS, "How much do replicas differ?"),
            (Compare.title, "What if a model knows less?"),
            (hidden.title, "Which replica shall never have been taken?"),
        ),
    )


def _live() -> tuple[Any, ...]:
    latent, levels = LatentPlot(LATENT), LevelsPlot(LEVELS)
    hinton = HintonPlot(TOGETHER, "output", "output", "correlations")
    hinton.panel.stylesheets = [SIDEWAYS]
    return (
        Fed(
            latent,
            lambda told, words: latent.show(
                told.arrays["latent"], told.arrays["latent_std"], words["outputs"]
            ),
        ),
        Grid(PICTURE),
        Fed(hinton, lambda told, words: hinton.show(told.arrays["K"], words["outputs"])),
        Fed(levels, lambda told, words: levels.show(told.arrays["share"], words["shown"])),
    )


def _result() -> tuple[Any, ...]:
    table = MetricsTable()

    def held_out() -> Fed:
        plot = ScatterPlot("value", outlier=None, title="Held-out values", against="held-out")
        return _of_test(plot, lambda a: plot.show(a["test_y"], a["test_mean"], a["test_std_y"]))

    def coverage() -> Fed:
        plot = CoveragePlot()
        return _of_test(plot, lambda a: plot.show(a["coverage"]))

    def pit() -> Fed:
        plot = PitPlot(bins=10)
        return _of_test(plot, lambda a: plot.show(a["pit"]))

    def reducible() -> Fed:
        plot = VariancePlot("y", bins=10, title=REDUCIBLE, inputs=False)
        return _of_test(
            plot, lambda a: plot.show(a["test_y"], a["test_std_f"], a["test_std_noise"])
        )

    return (
        Fed(table, lambda told, words: table.show(told.metrics, told.notes)),
        Late(Compare.title, Compare, height=700),
        Late("Held-out values", held_out),
        Late("Coverage of intervals", coverage),
        Late("Probability integral transform", pit),
        Late(REDUCIBLE, reducible),
    )


def _of_test(plot: Any, show: Any) -> Fed:
    """A view of held-out rows, which says nothing where none was held out."""

    def feed(told: Report, words: Mapping[str, Any]) -> None:
        if len(told.arrays["test_y"]):
            show(told.arrays)
        else:
            plot.describe("No row was held out; hide a replica, or choose a split.")

    return Fed(plot, feed)


def other_models(run: History) -> tuple[str, list[Other]]:
    """The other models, each one click away."""
    used = str(run.record.settings["model"])
    others = [
        Other(f"the same with {MODELS[name]}", f"it knows of {knows}.", {"model": name})
        for name, knows in KNOWS.items()
        if name != used
    ]
    return f"This run trained {MODELS[used]}, which knows of {KNOWS[used]}.", others
