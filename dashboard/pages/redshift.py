"""Redshift: galaxies of which a few noisy colours were measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboard.controls.reveal import Reveal
from dashboard.pages.alternatives import Alternatives, Other
from dashboard.pages.redshift_bands import BandsOff
from dashboard.pages.redshift_kept import KEPT, KeptSlider
from dashboard.pages.views import Views
from dashboard.pages.withheld import Withheld, ask_coverage, without_coverage
from dashboard.plots.base import Fed
from dashboard.plots.bins import BinsPlot
from dashboard.plots.calibration import CoveragePlot, PitPlot
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.late import Late
from dashboard.plots.missing import MissingPlot
from dashboard.plots.relevance import BasisPlot, FeaturePlot
from dashboard.plots.scatter import ScatterPlot
from dashboard.plots.table import MetricsTable
from dashboard.plots.variance import VariancePlot

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage
    from engine.events import Snapshot

STORY = """
The redshift *z* is how far a galaxy's light was stretched on its way: the farther, the larger. A
spectrum tells it exactly, but takes an hour of a large telescope; five brightnesses through
coloured filters (the bands u, g, r, i and z) take a minute. **What is scarce** is galaxies with
both, and among them the faint ones: their colours are noisy, and some bands were never measured.

**What the model does.** GPz puts *m* basis functions where the galaxies are, lets the noise vary
with the colours, and keeps apart three reasons to be unsure: too few galaxies like this one,
colours that do not tell, and bands that are missing. A missing band is not filled in with an
average; the model integrates over what it might have been.

**What to look at.** While it trains, the cloud tightens around the diagonal and turns blue where
the model grows sure. Afterwards, take a band away and see the answer grow wide, or one peak become
two; keep only the galaxies it is sure of and see what confidence is worth.
"""

EQUATIONS = r"""
The target is a sum of *m* basis functions and a linear trend, with noise that depends on the input
(Almosallam 2017, chapter 3):

$$y=\sum_{i=1}^{m} w_i\,\phi_i(\mathbf x)+\boldsymbol\theta^{\top}\mathbf x+\varepsilon,\qquad
\varepsilon\sim\mathcal N\!\left(0,\ \beta(\mathbf x)^{-1}\right),\qquad
\ln\beta(\mathbf x)=\boldsymbol\phi(\mathbf x)^{\top}\mathbf v+b,$$

$$\phi_i(\mathbf x)=\exp\!\left(-\tfrac12(\mathbf x-\mathbf p_i)^{\top}
\boldsymbol\Gamma_i^{\top}\boldsymbol\Gamma_i(\mathbf x-\mathbf p_i)\right).$$

The predictive variance has three parts, and each has its own cure:

$$\sigma^2(\mathbf x)=\underbrace{\nu(\mathbf x)}_{\text{more galaxies}}
+\underbrace{\beta(\mathbf x)^{-1}}_{\text{better measurements}}
+\underbrace{\gamma(\mathbf x)}_{\text{the missing bands}}.$$
"""


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    bands = Late(BandsOff.title, lambda: BandsOff(page), height=560)
    kept = Late(KEPT, lambda: KeptSlider(page), height=420)
    cost = Alternatives(page, COST, other_costs)
    explore: tuple[Any, ...] = (bands, kept, cost)
    return Views(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=_live(),
        result=_result(page),
        explore=explore,
        wide=frozenset(
            {
                "Where the uncertainty comes from",
                "Figures",
                "Bin by bin",
                bands.title,
                kept.title,
                cost.title,
            }
        ),
        steps=(
            ("Prediction against truth", "Every dot is a galaxy the model has not seen."),
            ("Where the uncertainty comes from", "What would more galaxies buy, and what not?"),
            ("Probability integral transform", "Is the stated uncertainty true?"),
            ("Bands missing", "Each band lost costs accuracy; less than filling in would."),
            (bands.title, "Guess first: how much worse without the u band?"),
            (kept.title, "How good are the galaxies it is sure of?"),
        ),
    )


def _live() -> tuple[Any, ...]:
    scatter, variance = ScatterPlot("redshift z"), VariancePlot("z")
    basis, features = BasisPlot(), FeaturePlot()

    def show_scatter(told: Snapshot, words: Mapping[str, Any]) -> None:
        a = told.arrays
        scatter.show(a["z_true"], a["z_mean"], np.hypot(a["std_model"], a["std_noise"]))

    def show_variance(told: Snapshot, words: Mapping[str, Any]) -> None:
        a = told.arrays
        variance.show(a["z_true"], a["std_model"], a["std_noise"])

    def show_features(told: Snapshot, words: Mapping[str, Any]) -> None:
        features.show(told.arrays["feature_relevance"], words.get("features", ()))

    return (
        Fed(scatter, show_scatter),
        Fed(variance, show_variance),
        Fed(basis, lambda told, words: basis.show(told.arrays["relevance"])),
        Fed(features, show_features),
    )


def _result(page: StudyPage) -> tuple[Any, ...]:
    table, covered = MetricsTable(), Reveal(first=page.guessing)
    figures = Fed(table, lambda told, words: table.show(told.metrics, told.notes))

    def feed(plot: Any, *names: str) -> Fed:
        return Fed(plot, lambda told, words: plot.show(*(told.arrays[name] for name in names)))

    return (
        Withheld(page, figures, covered, less=without_coverage, ask=ask_coverage),
        Late("Probability integral transform", lambda: feed(PitPlot(), "pit")),
        Late(
            "Coverage of intervals",
            lambda: Withheld(page, feed(CoveragePlot(), "coverage"), covered, above=True),
        ),
        Late(
            SPLIT,
            lambda: feed(
                VariancePlot("z", title=SPLIT), "z_true", "std_model", "std_noise", "std_input"
            ),
        ),
        Late("Bands missing", lambda: feed(MissingPlot("z"), "missing")),
        Late("Bin by bin", lambda: feed(BinsPlot("z"), "bins")),
    )


COST = "What if errors cost differently?"
SPLIT = "What more data would remove"
EFFECT = {
    "normal": "every galaxy counts the same",
    "normalised": "errors count relative to 1 + z, so near galaxies gain",
    "balanced": "rare redshifts count as much as common ones, so the bias at the far end shrinks",
}


def other_costs(run: History) -> tuple[str, list[Other]]:
    """The other weights of an error."""
    used = run.record.settings["weights"]
    others = [
        Other(
            f"the same with {other} weights",
            f"{effect}; watch the bias bin by bin.",
            {"weights": other},
        )
        for other, effect in EFFECT.items()
        if other != used
    ]
    return f"This run used {used} weights: {EFFECT[used]}.", others
