"""Several views of a row, and patients: survival, influence, hidden neurons, probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from scant.metrics import Z_95
from scant_dashboard.plots.base import NOTHING, Plot
from scant_dashboard.plots.cohort import CohortPlot
from scant_dashboard.plots.hidden_units import DOTS, MAX_UNITS, HiddenUnitsPlot
from scant_dashboard.plots.methods import MethodsPlot
from scant_dashboard.plots.patient import PatientPlot
from scant_dashboard.plots.score_distribution import BINS, ScoreDistributionPlot
from scant_dashboard.plots.survival import SurvivalPlot
from scant_dashboard.plots.view_ablation import AblationResult, ViewAblationPlot
from scant_dashboard.plots.view_contributions import ViewContributionsPlot

VIEWS = ["intensity", "texture", "noise"]
RNG = np.random.default_rng(0)
CLASS = (np.arange(200) % 4 == 0).astype(float)
HIDDEN = RNG.normal(size=(200, 3)) + CLASS[:, None] * [0.5, 3.0, 0.0]
TIME = np.array([0.0, 5.0, 10.0, 20.0, 30.0])
CURVE = (TIME, np.linspace(1, 0, 5))


def survival() -> SurvivalPlot:
    plot = SurvivalPlot()
    share = np.array([1.0, 0.8, 0.5, 0.3, 0.1])
    observed = np.stack([share, share - 0.1, share + 0.1])
    observed[1:, 0] = np.nan
    later = np.array([0, 0.05, 0.15, 0, 0])
    plot.show(TIME, observed, share + later, share + later / 3)
    return plot


def cohort() -> CohortPlot:
    plot = CohortPlot()
    time, predicted = np.array([10.0, 20.0, 40.0, 8.0]), np.array([20.0, 10.0, 41.0, 4.0])
    died = np.array([1.0, 1.0, 1.0, 0.0])
    plot.show(time, died, predicted, predicted / 1.5, predicted * 1.5)
    return plot


def influence() -> ViewContributionsPlot:
    plot = ViewContributionsPlot()
    plot.show(np.array([0.3, 0.65, 0.05]), VIEWS)
    return plot


def separation() -> ScoreDistributionPlot:
    plot = ScoreDistributionPlot()
    p = np.where(CLASS == 1, 0.95, 0.05)
    p[:5] = 0.7  # one of the class and three of the others, and row 4 of the class
    plot.show(p, CLASS, ["none", "event"])
    return plot


def hidden() -> HiddenUnitsPlot:
    plot = HiddenUnitsPlot()
    plot.show(HIDDEN, CLASS, VIEWS, np.array([0.3, 0.6, 0.1]), ["none", "event"])
    return plot


def methods() -> MethodsPlot:
    plot = MethodsPlot()
    scores = np.array([[0.48, 0.52], [0.38, 0.42], [0.6, np.nan], [np.nan, np.nan]])
    p = np.array([np.nan, 0.01, 0.3, np.nan])
    plot.show(scores, p, ["DFGP", "Student-t", "SGP", "none"], "NMSE")
    return plot


def views_on() -> ViewAblationPlot:
    plot = ViewAblationPlot("Views")
    tried = [AblationResult(tuple(VIEWS), 0.8, 0.7), AblationResult(("texture",), 0.7, 0.65)]
    plot.show(tried, VIEWS, "F1")
    return plot


def patient() -> PatientPlot:
    plot = PatientPlot("A patient")
    plot.show("P 7", (25.0, 15.0, 40.0), np.array([20.0, 30.0]), CURVE, 38.0, True)
    return plot


EVERY = [survival, cohort, influence, separation, hidden, methods, views_on, patient]


@pytest.mark.slow
@pytest.mark.parametrize("make", EVERY)
def test_each_states_its_reading_forgets_it_and_shows_again(make: object) -> None:
    plot: Plot = make()  # type: ignore[operator]
    message = plot.alt
    assert message != NOTHING
    assert message.endswith(".")
    assert "nan" not in message
    plot.clear()
    assert plot.alt == NOTHING
    assert make().alt == message  # type: ignore[operator]


def test_survival_tells_medians_and_how_far_apart_the_curves_are() -> None:
    plot = survival()
    assert (
        "Median time until the event: 10 observed, 20 predicted, 20 with uncertainty." in plot.alt
    )
    assert "by at most 15%, that with uncertainty by at most 5%." in plot.alt
    # at the first time there is no bound but the estimate itself, which the curve meets
    assert "within the observed bounds 100% of the time" in plot.alt
    assert plot.band.data["low"][0] == 1
    # the band is a staircase: as high as at the time before, until the next
    assert plot.band.data["time"].tolist() == [0, 5, 5, 10, 10, 20, 20, 30, 30]
    assert plot.band.data["low"].tolist() == pytest.approx([1, 1, 0.7, 0.7, 0.4, 0.4, 0.2, 0.2, 0])
    none = SurvivalPlot()
    none.show(np.empty(0), np.empty((3, 0)), np.empty(0), np.empty(0))
    assert none.alt == "No subject was held out."


def test_survival_of_more_than_half_has_no_median_but_a_last_time() -> None:
    plot = SurvivalPlot()
    share = np.array([1.0, 0.9])
    plot.show(np.array([0.0, 12.0]), np.stack([share] * 3), share, share)
    assert "Median time until the event: more than 12 observed" in plot.alt


def test_a_cohort_is_judged_by_those_who_died_and_by_what_the_others_allow() -> None:
    plot = cohort()
    # factors 2, 2 and 1.025; the intervals reach half as far again
    assert (
        "Held-out subjects with the event: 3. Their predicted times are off by a factor of 2.00"
        in plot.alt
    )
    assert "33% of the 95% intervals contain the observed time." in plot.alt
    assert "when last seen: 1. 0% of their intervals are consistent" in plot.alt
    assert plot.figures[0].xaxis[0].ticker.ticks == [10, 20]
    assert plot.figures[0].yaxis[0].ticker.ticks == [5, 10, 20, 50]
    none = np.empty(0)
    plot.show(none, none, none, none, none)
    assert plot.alt == "No subject was held out."


def test_influence_names_what_leads_and_what_adds_nothing() -> None:
    plot = influence()
    assert plot.alt.startswith("texture contributes 65%, intensity 30%. ")
    assert "Almost nothing comes from noise" in plot.alt
    assert plot.even.location == pytest.approx(1 / 3)
    plot.show(np.array([1.0]), ["all"])
    assert plot.alt == "There is only all."
    assert not plot.even.visible


def test_probabilities_of_a_rare_class_are_shares_of_that_class() -> None:
    plot = separation()
    up, down = (np.asarray(plot.bars.data[side]) for side in ("up", "down"))
    assert up.sum() == pytest.approx(1)
    assert down.sum() == pytest.approx(-1)
    assert len(up) == BINS
    assert "50 of the 50 rows of event are above one half" in plot.alt
    assert "147 of the 150 rows of none are below one half" in plot.alt
    assert [item.label["value"] for item in plot.items] == ["event, upwards", "none, downwards"]
    plot.show(np.empty(0), np.empty(0), ["none", "event"])
    assert plot.alt == "No row was held out."


def test_hidden_neurons_have_a_lane_each_with_the_classes_apart() -> None:
    plot = hidden()
    assert plot.alt.startswith("texture correlates most with the classes")
    assert "noise least" in plot.alt
    others, events = (np.asarray(source.data["y"]) for source in plot.dots)
    assert len(others) == 450
    assert len(events) == 150
    assert ((events - np.round(events)) > 0).all()
    assert ((others - np.round(others)) < 0).all()
    assert not plot.bar.visible
    plot.point(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.1, 0.1]))
    assert plot.mark.data["y"].tolist() == [0, -1, -2]
    assert plot.mark.data["low"][1] == pytest.approx(2 - 0.1 * Z_95)


def test_hidden_neurons_of_a_number_are_colored_by_it() -> None:
    plot = HiddenUnitsPlot()
    truth = HIDDEN[:, 2].copy()
    truth[:20] = np.nan
    plot.show(HIDDEN, truth, VIEWS, np.ones(3) / 3, target="SO2")
    assert len(plot.shades.data["x"]) == 3 * 180
    assert len(plot.dots[0].data["x"]) == 0
    assert plot.bar.visible
    assert "noise correlates most with the target (1.00)" in plot.alt


def test_of_many_neurons_the_most_influential_are_shown_and_no_more_dots_than_may_travel() -> None:
    plot = HiddenUnitsPlot()
    values = np.tile(np.arange(30.0), (1000, 1))
    share = np.linspace(1, 2, 30)
    plot.show(values, np.tile([0.0, 1.0], 500), [f"n{i}" for i in range(30)], share, ["a", "b"])
    assert len(plot.figures[0].yaxis[0].ticker.ticks) == MAX_UNITS
    assert sum(len(s.data["x"]) for s in plot.dots) <= DOTS
    assert min(plot.dots[0].data["x"]) == 30 - MAX_UNITS


def test_methods_are_ranked_by_what_is_better_and_tested_against_the_run() -> None:
    plot = methods()
    assert plot.dots.data["method"] == ["DFGP", "Student-t", "SGP"]
    assert "best first: Student-t 0.400 ± 0.028, DFGP 0.500 ± 0.028, SGP 0.600." in plot.alt
    assert "separates DFGP from Student-t (p 0.01), but not from SGP" in plot.alt
    assert len(plot.splits.data["value"]) == 5
    plot.show(np.array([[0.8]]), np.array([np.nan]), ["DFGP"], "F1")
    assert plot.alt == "No other method was fitted to the same rows."
    assert "higher is better" in plot.figures[0].xaxis.axis_label


def test_combinations_of_views_are_named_by_what_is_shorter() -> None:
    plot = views_on()
    assert plot.dots.data["label"] == ["1. all views", "2. texture"]
    assert plot.alt.startswith("With texture, F1 is 0.700, against 0.650 for averaged kernels.")
    assert "Over 2 combinations, the two differ by +0.075 on average" in plot.alt
    plot.show([AblationResult(("intensity", "texture"), 0.8, float("nan"))], VIEWS, "F1")
    assert plot.dots.data["label"] == ["1. all but noise"]
    assert plot.alt == "With all but noise, F1 is 0.800."


def test_a_patient_is_read_with_its_interval_and_what_happened() -> None:
    plot = patient()
    assert plot.alt == (
        "P 7: 25 predicted from 2 samples (95% interval 15 to 40). Single samples predict 20 to "
        "30. Event at 38, within the interval."
    )
    one = np.array([20.0])
    plot.show("P 8", (20.0, 10.0, 40.0), one, CURVE, 60.0, False)
    assert plot.alt.endswith("40). No event when last seen, at 60.")
    plot.show("P 9", (20.0, 10.0, 40.0), one, CURVE, float("nan"), False)
    assert plot.alt == "P 9: 20 predicted from 1 sample (95% interval 10 to 40)."
    assert len(plot.truth.data["x"]) == 0
