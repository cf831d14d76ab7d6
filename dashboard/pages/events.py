"""Cell events: rows that are seen in several ways at once, by a network of Gaussian processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dashboard.pages.alternatives import Alternatives
from dashboard.pages.events_on import ViewsOn
from dashboard.pages.events_otherwise import otherwise
from dashboard.pages.events_patient import Patient
from dashboard.pages.events_result import (
    BESIDE,
    DOUBT,
    PIT,
    RELIABLE,
    SPLIT,
    TRADES,
    WITHIN,
    result,
)
from dashboard.pages.events_row import OneRow, target_of
from dashboard.pages.events_scarcity import Scarcity
from dashboard.pages.mitosis_tabs import tabs
from dashboard.pages.views import Views
from dashboard.plots.base import Fed
from dashboard.plots.cohort import CohortPlot
from dashboard.plots.elbo import ElboPlot
from dashboard.plots.hidden import HiddenPlot
from dashboard.plots.influence import InfluencePlot
from dashboard.plots.late import Late
from dashboard.plots.scatter import ScatterPlot
from dashboard.plots.separation import SeparationPlot
from dashboard.plots.survival import SurvivalPlot
from engine.catalog.events import LAYERED

if TYPE_CHECKING:
    from dashboard.live import History
    from dashboard.pages.study_page import StudyPage
    from engine.events import Snapshot

STORY = """
A cell that divides can be told by its brightness, its texture, its outline, and by how it looked
a moment before. **What is scarce** is labels: a few hundred cells that somebody has looked at, few
of them events. Which ways of looking are then worth having, and how are they put together?

**What the model does.** Each view of a cell has a hidden neuron, a sparse Gaussian process that
makes one number of it. An output process takes these numbers together, and learns how far to go by
each. All layers are trained at once by one bound, so that views are combined by what they add, not
by their average.

**What to look at.** While it trains, neurons of useful views pull the classes apart and useless
ones stay behind. Afterwards take views away and see what each was worth, beside kernels that are
simply averaged, which are hard to beat. The same network predicts values and times of survival:
choose [sulphur dioxide a day ahead](./events?data=so2) or [patients](./events?data=survival) and
press Train.
"""

EQUATIONS = r"""
Neuron *r* is a Gaussian process of its own view; the output process takes all neurons
(Kandemir 2015, 4–6):

$$b_{nr}=g_r\big(\mathbf x_n^{(r)}\big),\quad g_r\sim\mathcal{GP}(0,k_r),\qquad
f\sim\mathcal{GP}(0,k),\quad k(\mathbf b,\mathbf b')=\sigma^2
\exp\Big(-\tfrac12\sum_r w_r\,(b_r-b'_r)^2\Big).$$

A value is the output with noise, a class follows by a probit link:

$$y_n=f(\mathbf b_n)+\varepsilon_n\qquad\text{or}\qquad
p(t_n=1)=\Phi\big(f(\mathbf b_n)\big).$$

With a linear output kernel this is a Gaussian process whose covariance has a Wishart prior. All
layers have inducing points, and one bound trains them (§4.1):

$$\mathcal L=\mathbb E_Q\big[\ln p(\mathbf y\mid\mathbf f)\big]-\mathrm{KL}\big(q(\mathbf u)\,\|\,
p(\mathbf u)\big)-\sum_r\mathrm{KL}\big(q(\mathbf a_r)\,\|\,p(\mathbf a_r)\big).$$
"""
PROBABILITIES = "Probabilities by class"
TRUTH = "Predicted against true"
PATIENTS = "Patients, predicted against true"
CURVES = "Survival, observed and predicted"
NEURONS = "What the hidden neurons see"
SHARES = "What each neuron contributes"
OTHERWISE = "What if it were trained otherwise?"

CLASSES = {PROBABILITIES, RELIABLE, TRADES, DOUBT}
VALUES = {TRUTH, WITHIN, PIT, SPLIT}
SURVIVAL = {PATIENTS, CURVES, Patient.title, WITHIN, PIT, SPLIT}
TASKS = {"demo": "classification", "so2": "regression", "survival": "survival"}  # by source
OF = {"classification": CLASSES, "regression": VALUES, "survival": SURVIVAL}  # by task


def views(page: StudyPage) -> Views:
    """The views of one browser session."""
    on = Late(ViewsOn.title, lambda: ViewsOn(page), height=420)
    scarce = Late(Scarcity.title, lambda: Scarcity(page), height=320)
    row = Late(OneRow.title, lambda: OneRow(page), height=520)
    patient = Late(Patient.title, lambda: Patient(page), height=420)
    explore: tuple[Any, ...] = (on, scarce, row, patient, Alternatives(page, OTHERWISE, otherwise))
    return Views(
        story=STORY,
        equations=EQUATIONS,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        live=_live(),
        result=result(),
        explore=explore,
        above=tabs(page),
        hides=hides,
        wide=frozenset({"Figures", on.title, scarce.title, row.title, patient.title, OTHERWISE}),
        steps=(
            (PROBABILITIES, "Cells that it never saw: how sure is it, and is it right?"),
            (TRUTH, "Every dot was kept from the model."),
            (CURVES, "Would these patients have lived as long as was predicted?"),
            (NEURONS, "One number a view: which of them goes with what is asked?"),
            (SHARES, "How far does it go by each?"),
            (on.title, "Guess first: which view can be spared?"),
            (scarce.title, "One film? Two? Four?"),
            (patient.title, "How long, and how sure?"),
        ),
    )


def hides(run: History) -> set[str]:
    """Titles that have nothing to show of this run: of other tasks, of neurons it does not have."""
    words, used = run.words, run.record.settings
    # A run that has not started is taken for what it will be, so that nothing jumps once it has.
    asked = used["task"] if used["task"] != "auto" else TASKS.get(run.record.data, "")
    task, layered = words.get("task", asked), used["model"] in LAYERED
    hidden = set().union(*OF.values()) - OF.get(task, set())
    if not layered:
        hidden |= {NEURONS, SHARES, OneRow.title}
    if words and not words.get("counts"):  # a run of before there were any
        hidden |= {Scarcity.title}
    if words and len(words["views"]) < 2:
        hidden |= {ViewsOn.title}
    if run.report is not None:
        a = run.report.arrays
        needed = {BESIDE: "scores", DOUBT: "test_information", SPLIT: "test_std_model"}
        hidden |= {title for title, name in needed.items() if len(a.get(name, ())) < 2}
    return hidden


def _live() -> tuple[Any, ...]:
    return (_probabilities(), _truth(), _survival(), _patients(), _neurons(), _shares())


def _probabilities() -> Fed:
    plot = SeparationPlot(PROBABILITIES)
    return Fed(
        plot,
        lambda told, words: plot.show(
            told.arrays["predicted"], told.arrays["truth"], words["classes"]
        ),
    )


def _truth() -> Fed:
    plot = ScatterPlot("value", outlier=None, title=TRUTH)

    def feed(told: Snapshot, words: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(a["truth"], a["predicted"], a["predicted_std"])

    return Fed(plot, feed)


def _patients() -> Fed:
    plot = CohortPlot(PATIENTS)

    def feed(told: Snapshot, words: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(*(a[f"patient_{name}"] for name in ("time", "event", "pred", "low", "high")))

    return Fed(plot, feed)


def _survival() -> Fed:
    plot = SurvivalPlot(CURVES)

    def feed(told: Snapshot, words: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(*(a[f"km_{name}"] for name in ("time", "true", "predicted", "expected")))

    return Fed(plot, feed)


def _neurons() -> Fed:
    plot = HiddenPlot(NEURONS)

    def feed(told: Snapshot, words: Mapping[str, Any]) -> None:
        a = told.arrays
        plot.show(
            a["hidden"],
            a["truth"],
            words["neurons"],
            a["influence"],
            words.get("classes") or (),
            target_of(words),
        )

    return Fed(plot, feed)


def _shares() -> Fed:
    plot = InfluencePlot(SHARES)
    return Fed(plot, lambda told, words: plot.show(told.arrays["influence"], words["neurons"]))
