"""Cell events: rows that are seen in several ways at once, by a network of Gaussian processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scant.events import Snapshot
from scant.studies.multiview.settings import LAYERED
from scant_dashboard.live.run_state import RunState
from scant_dashboard.page_parts.context import PageContext
from scant_dashboard.page_parts.lazy_view import LazyView
from scant_dashboard.page_parts.prose import read_prose
from scant_dashboard.page_parts.select_rows import HEIGHT, TITLE, SelectRows
from scant_dashboard.page_parts.variants import Alternatives
from scant_dashboard.page_parts.views import PageViews
from scant_dashboard.pages.multiview import selection
from scant_dashboard.pages.multiview.patient import Patient
from scant_dashboard.pages.multiview.result import (
    DOUBT,
    METHODS,
    PIT,
    RELIABLE,
    SPLIT,
    TRADES,
    WITHIN,
    result,
)
from scant_dashboard.pages.multiview.row_explanation import RowExplanation, target_of
from scant_dashboard.pages.multiview.scarcity import Scarcity
from scant_dashboard.pages.multiview.variants import alternatives
from scant_dashboard.pages.multiview.view_ablation import ViewAblation
from scant_dashboard.plots.base import DataView, array_view
from scant_dashboard.plots.cohort import CohortPlot
from scant_dashboard.plots.elbo import ElboPlot
from scant_dashboard.plots.hidden_units import HiddenUnitsPlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.score_distribution import ScoreDistributionPlot
from scant_dashboard.plots.survival import SurvivalPlot
from scant_dashboard.plots.view_contributions import ViewContributionsPlot
from scant_dashboard.translate import later, tr

PROBABILITIES = later("Probabilities by class")
TRUTH = later("Predicted against true")
PATIENTS = later("Survival times, predicted against true")
CURVES = later("Survival, observed and predicted")
NEURONS = later("What the hidden neurons see")
SHARES = later("What each neuron contributes")
OTHERWISE = later("What if it were trained otherwise?")

CLASSES = {PROBABILITIES, RELIABLE, TRADES, DOUBT}
VALUES = {TRUTH, WITHIN, PIT, SPLIT}
SURVIVAL = {PATIENTS, CURVES, Patient.title, WITHIN, PIT, SPLIT}
TASKS = {"demo": "classification", "so2": "regression", "survival": "survival"}  # by source
OF = {"classification": CLASSES, "regression": VALUES, "survival": SURVIVAL}  # by task


def views(page: PageContext) -> PageViews:
    """Create the views of a browser session."""
    story, equations = read_prose(__package__)
    on = LazyView(ViewAblation.title, lambda: ViewAblation(page), height=420)
    scarce = LazyView(Scarcity.title, lambda: Scarcity(page), height=320)
    row = LazyView(RowExplanation.title, lambda: RowExplanation(page), height=520)
    patient = LazyView(Patient.title, lambda: Patient(page), height=420)
    chosen = LazyView(
        TITLE,
        lambda: SelectRows(page, selection.rows, selection.axes, selection.measures),
        height=HEIGHT,
    )
    other = Alternatives(page, OTHERWISE, alternatives)
    explore: tuple[Any, ...] = (on, scarce, row, patient, chosen, other)
    return PageViews(
        story=story,
        equations=equations,
        trace=ElboPlot(page.entry.objective, page.entry.score),
        main=frozenset({PROBABILITIES, TRUTH, CURVES}),
        live=_live(),
        result=result(),
        explore=explore,
        hides=hides,
        full_width=frozenset(
            {"Figures", on.title, scarce.title, row.title, patient.title, TITLE, OTHERWISE}
        ),
        steps=(
            (PROBABILITIES, later("Held-out rows: how certain is the model, and is it right?")),
            (TRUTH, later("Every dot is a held-out row.")),
            (CURVES, later("Did they survive as long as predicted?")),
            (NEURONS, later("One number per view: which one correlates with the target?")),
            (SHARES, later("How relevant is each view?")),
            (on.title, later("Guess first: which view is redundant?")),
            (scarce.title, later("One? Two? Four?")),
            (patient.title, later("How long, and how sure?")),
        ),
    )


def hides(run: RunState) -> set[str]:
    """Return the titles of the views that do not apply to this run's task or model."""
    metadata, used = run.metadata, run.record.settings
    # Before the start, predict the task, so that the page does not jump afterwards.
    query = used["task"] if used["task"] != "auto" else TASKS.get(run.record.data, "")
    task, layered = metadata.get("task", query), used["model"] in LAYERED
    hidden = set().union(*OF.values()) - OF.get(task, set())
    if not layered:
        hidden |= {NEURONS, SHARES, RowExplanation.title}
    if metadata and not metadata.get("counts"):  # old runs have none
        hidden |= {Scarcity.title}
    if metadata and len(metadata["views"]) < 2:
        hidden |= {ViewAblation.title}
    if run.report is not None:
        a = run.report.arrays
        needed = {METHODS: "scores", DOUBT: "test_information", SPLIT: "test_std_model"}
        hidden |= {title for title, name in needed.items() if len(a.get(name, ())) < 2}
    return hidden


def _live() -> tuple[Any, ...]:
    kaplan_meier = [f"km_{name}" for name in ("time", "true", "predicted", "expected")]
    patients = [f"patient_{name}" for name in ("time", "event", "pred", "low", "high")]

    def separation() -> DataView:
        return array_view(
            ScoreDistributionPlot(PROBABILITIES), "predicted", "truth", labels=("classes",)
        )

    def truth() -> DataView:
        plot = ScatterPlot(tr("value"), outlier=None, title=TRUTH, rmse=False)
        return array_view(plot, "truth", "predicted", "predicted_std")

    return (
        LazyView(PROBABILITIES, separation),
        LazyView(TRUTH, truth),
        LazyView(CURVES, lambda: array_view(SurvivalPlot(CURVES), *kaplan_meier)),
        LazyView(PATIENTS, lambda: array_view(CohortPlot(PATIENTS), *patients)),
        LazyView(NEURONS, _neurons),
        LazyView(
            SHARES,
            lambda: array_view(ViewContributionsPlot(SHARES), "influence", labels=("neurons",)),
        ),
    )


def _neurons() -> DataView:
    plot = HiddenUnitsPlot(NEURONS)

    def feed(data: Snapshot, metadata: Mapping[str, Any]) -> None:
        a = data.arrays
        plot.show(
            a["hidden"],
            a["truth"],
            metadata["neurons"],
            a["influence"],
            metadata.get("classes") or (),
            target_of(metadata),
        )

    return DataView(plot, feed)
