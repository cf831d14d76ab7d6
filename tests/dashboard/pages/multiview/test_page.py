"""The multiview page's own views: what they ask of the model, and what they do with its answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scant.events import Metric, Report
from scant.studies.multiview.settings import MultiviewSettings
from scant_dashboard.pages.multiview.page import (
    CURVES,
    NEURONS,
    PATIENTS,
    PROBABILITIES,
    SHARES,
    TRUTH,
    hides,
)
from scant_dashboard.pages.multiview.patient import HELP as HELP_PATIENT
from scant_dashboard.pages.multiview.patient import NOBODY, Patient
from scant_dashboard.pages.multiview.result import (
    DOUBT,
    METHODS,
    PIT,
    RELIABLE,
    SPLIT,
    TRADES,
    result,
)
from scant_dashboard.pages.multiview.row_explanation import RowExplanation
from scant_dashboard.pages.multiview.variants import alternatives
from scant_dashboard.pages.multiview.view_ablation import HELP, ViewAblation
from tests.dashboard.fakes import Asker

METADATA: dict[str, Any] = {
    "task": "classification",
    "views": ["outline", "texture", "noise"],
    "looked": ["outline", "texture"],
    "neurons": ["outline", "texture"],
    "classes": ["none", "event"],
    "methods": ["DFGP", "SGP"],
    "score": "F1",
    "patients": ["P1", "P2"],
    "rows": {"training": 100, "test": 4},
}
SURVIVAL = {"task": "survival", "classes": [], "score": "NMSE (log time)"}


def arrays() -> dict[str, np.ndarray]:
    none = np.empty(0)
    return {
        "shown": np.array([7, 9, 12, 30]),
        "hidden": np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 1.0], [2.0, -1.0]]),
        "influence": np.array([0.2, 0.8]),
        "truth": np.array([1.0, 0.0, 1.0, 0.0]),
        "test_truth": np.array([1.0, 0.0, 1.0, 0.0]),
        "reliability": np.array([[0.2, 0.8], [0.0, 1.0], [2.0, 2.0]]),
        "pr": np.array(
            [[[0.1, 0.5], [0.5, 1.0], [1.0, 0.5]], [[0.1, 0.5], [0.4, 0.9], [1.0, 0.4]]]
        ),
        "scores": np.array([[0.8, 0.9, 0.85], [0.7, 0.7, 0.7]]),
        "t_test": np.array([np.nan, 0.02]),
        "pit": none,
        "coverage": np.empty((2, 0)),
    }


class Model(Asker):
    said = ""

    def read(self, at_once: bool = False) -> None: ...

    def say(self, sentence: str, kind: str = "info") -> None:
        self.said = sentence


@pytest.fixture
def model() -> Any:
    return Model()


def run(metadata: dict[str, Any] | None = None, report: bool = True, **settings: Any) -> Any:
    return SimpleNamespace(
        id="r",
        metadata=METADATA | (metadata or {}),
        report=Report((Metric("this run", "F1", 0.8),), arrays()) if report else None,
        record=SimpleNamespace(settings=MultiviewSettings.parse(settings).values(), data="demo"),
        recorded=False,
    )


def test_what_belongs_to_another_task_is_kept_off_the_page() -> None:
    kept = hides(run())
    assert {TRUTH, CURVES, PATIENTS, Patient.title, PIT, SPLIT, DOUBT} <= kept
    assert (
        not {PROBABILITIES, RELIABLE, TRADES, METHODS, NEURONS, SHARES, ViewAblation.title} & kept
    )
    survival = hides(run(SURVIVAL, report=False))
    assert {PROBABILITIES, TRUTH, RELIABLE, TRADES, DOUBT} <= survival
    assert not {CURVES, PATIENTS, Patient.title, PIT, SPLIT} & survival
    flat = hides(run({"task": "regression", "views": ["features"]}, False, model="sgp"))
    assert {NEURONS, SHARES, RowExplanation.title, ViewAblation.title, PATIENTS} <= flat
    assert TRUTH not in flat


def test_a_run_that_has_not_started_is_taken_for_what_its_source_or_settings_say() -> None:
    new = run(report=False)
    new.metadata = {}
    assert PROBABILITIES not in hides(new)
    assert {TRUTH, CURVES} <= hides(new)
    new.record.data = "so2"
    assert TRUTH not in hides(new)
    assert NEURONS not in hides(new)
    new.record.data = "upload:1"
    assert {PROBABILITIES, TRUTH, CURVES} <= hides(new)
    new.record.settings["task"] = "survival"
    assert CURVES not in hides(new)


def test_views_are_switched_and_each_combination_adds_a_line(model: Any) -> None:
    view = ViewAblation(model)
    view.open(run())
    assert view.views.value == ["outline", "texture"]
    assert view.alt == HELP
    view.views.value = ["noise", "outline"]
    assert model.asked == []  # it trains: only the button asks
    view._train()
    assert model.asked == [("views", {"views": ["outline", "noise"]})]
    assert view.alt.startswith("Working: training with outline, noise, then")
    model.then({"score": np.array([0.7]), "averaged": np.array([0.6])})
    model.last()
    assert view.container.visible
    assert view.alt.startswith("With all but texture, F1 is 0.700, against 0.600")
    view._train()
    assert len(model.asked) == 1  # known already
    view.views.value = []
    view._train()
    assert "at least one view" in model.said
    assert len(model.asked) == 1
    view.clear(None)  # type: ignore[arg-type]
    assert view.button.disabled
    assert view.alt == HELP


def test_a_row_is_asked_for_by_its_place_in_the_table(model: Any) -> None:
    view = RowExplanation(model)
    view.open(run())
    assert model.asked == [("row", {"row": 7})]
    view.row.value = 3
    view._ask()
    assert model.asked[-1] == ("row", {"row": 12})
    one = {name: np.array([np.nan]) for name in ("predicted_low", "predicted_high")}
    one |= {"hidden": np.array([2.0, 4.0]), "hidden_std": np.array([0.1, 0.2])}
    model.then(one | {"predicted": np.array([0.9]), "truth": np.array([1.0])})
    assert "Row 13 of the table: event with a probability of 90%; the truth is event" in view.alt
    assert "The most unusual neuron is texture, 4.0 standard deviations above" in view.alt
    view.open(run(SURVIVAL))
    ends = {"predicted_low": np.array([5.0]), "predicted_high": np.array([20.0])}
    model.then(one | ends | {"predicted": np.array([10.0]), "truth": np.array([np.nan])})
    assert "10 predicted (95% interval 5 to 20)." in view.alt


def test_a_crowd_asks_nothing_by_itself(model: Any) -> None:
    model.owns_run = False
    row, patient = RowExplanation(model), Patient(model)
    row.open(run(SURVIVAL))
    patient.open(run(SURVIVAL))
    assert model.asked == []
    assert patient.alt == HELP_PATIENT
    assert not patient.container.visible


def test_a_patient_is_asked_for_by_name(model: Any) -> None:
    view = Patient(model)
    view.open(run(SURVIVAL))
    assert model.asked == [("patient", {"patient": "P1"})]
    view.who.value = "P2"
    assert model.asked[-1] == ("patient", {"patient": "P2"})
    model.then({
        "time": np.array([12.0]), "event": np.array([1.0]), "predicted": np.array([10.0]),
        "low": np.array([5.0]), "high": np.array([20.0]), "rows": np.array([8.0, 12.0]),
        "curve_time": np.array([0.0, 30.0]), "curve": np.array([1.0, 0.1]),
    })  # fmt: skip
    assert "P2: 10 predicted from 2 samples (95% interval 5 to 20)" in view.alt
    assert "Event at 12, within the interval" in view.alt
    view.clear(None)  # type: ignore[arg-type]
    view.open(run(SURVIVAL | {"patients": []}))
    assert view.alt == NOBODY


def test_a_report_is_read_class_by_class() -> None:
    views = {view.title: view for view in result()}
    shown = run()
    for title in (METHODS, RELIABLE, TRADES):
        view = views[title].view()
        view.update(shown.report, shown.metadata)
    assert "DFGP 0.850 ± 0.050, SGP 0.700" in views[METHODS].alt
    assert "DFGP from SGP (p 0.02)" in views[METHODS].alt
    assert "the mean probability of event is 50%, the share 50%" in views[RELIABLE].alt
    assert "the mean probability of event is 50%, the share 50%" in views[RELIABLE].alt
    # at full recall the precision is one half
    assert "Precision where recall is 80%" in views[TRADES].alt
    assert "DFGP 50%, SGP 40%" in views[TRADES].alt


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("classification", {"bound": "stochastic"}),
        ("regression", {"model": "student-t"}),
        ("survival", {}),
    ],
)
def test_every_alternative_can_be_trained(task: str, settings: dict[str, Any]) -> None:
    message, others = alternatives(run({"task": task}, task=task, **settings))
    assert message.startswith("This run trained ")
    for other in others:
        values = MultiviewSettings.parse({"task": task, **settings}).values() | other.settings
        changed = MultiviewSettings.parse(values).values()
        assert {k: changed[k] for k in other.settings} == other.settings
    rows = [
        other.settings["training_size"] for other in others if "training_size" in other.settings
    ]
    assert rows == [50, 20]
