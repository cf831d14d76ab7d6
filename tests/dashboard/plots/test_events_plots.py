"""Several views of a row, and patients: survival, influence, hidden neurons, probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.plots.base import NOTHING, Plot
from dashboard.plots.hidden import DOTS, MOST, HiddenPlot
from dashboard.plots.influence import InfluencePlot
from dashboard.plots.methods import MethodsPlot
from dashboard.plots.patient import PatientPlot
from dashboard.plots.separation import BINS, SeparationPlot
from dashboard.plots.survival import SurvivalPlot
from dashboard.plots.views_on import Tried, ViewsOnPlot
from engine.events import Metric

VIEWS = ["intensity", "texture", "noise"]
RNG = np.random.default_rng(0)
CLASS = (np.arange(200) % 4 == 0).astype(float)
HIDDEN = RNG.normal(size=(200, 3)) + CLASS[:, None] * [0.5, 3.0, 0.0]
TIME = np.array([0.0, 5.0, 10.0, 20.0, 30.0])


def survival() -> SurvivalPlot:
    plot = SurvivalPlot()
    share = np.array([1.0, 0.8, 0.5, 0.3, 0.1])
    observed = np.stack([share, share - 0.1, share + 0.1])
    later = np.array([0, 0.05, 0.15, 0, 0])
    predicted = np.stack([share + later, share, share + 0.2])
    observed[1:, 0] = np.nan
    plot.show(TIME, observed, predicted)
    return plot


def influence() -> InfluencePlot:
    plot = InfluencePlot()
    plot.show(np.array([0.3, 0.65, 0.05]), VIEWS)
    return plot


def separation() -> SeparationPlot:
    plot = SeparationPlot()
    p = np.where(CLASS == 1, 0.95, 0.05)
    p[:5] = 0.7  # one of the class and three of the others, and row 4 of the class
    plot.show(p, CLASS, ["none", "event"])
    return plot


def hidden() -> HiddenPlot:
    plot = HiddenPlot()
    plot.show(HIDDEN, CLASS, VIEWS, np.array([0.3, 0.6, 0.1]), ["none", "event"])
    return plot


def methods() -> MethodsPlot:
    plot = MethodsPlot()
    plot.show(METRICS, "NMSE")
    return plot


METRICS = (
    Metric("this run", "NMSE", 0.5, 0.02),
    Metric("this run", "NLPD", 1.5),
    Metric("Student-t", "NMSE", 0.4, 0.03, "baseline"),
    Metric("SGP", "NMSE", 0.6, None, "baseline"),
    Metric("DFGP", "NMSE", 0.59, 0.03, "published"),
)


def views_on() -> ViewsOnPlot:
    plot = ViewsOnPlot("Views")
    tried = [Tried(tuple(VIEWS), 0.8, 0.7), Tried(("texture",), 0.7, 0.65)]
    plot.show(tried, VIEWS, "F1")
    return plot


def patient() -> PatientPlot:
    plot = PatientPlot("A patient")
    samples = np.array([[20.0, 30.0], [10.0, 15.0], [40.0, 60.0]])
    plot.show("P 7", (25.0, 15.0, 40.0), samples, 38.0, True)
    return plot


EVERY = [survival, influence, separation, hidden, methods, views_on, patient]


@pytest.mark.parametrize("make", EVERY)
def test_each_states_its_reading_forgets_it_and_shows_again(make: object) -> None:
    plot: Plot = make()  # type: ignore[operator]
    said = plot.alt
    assert said != NOTHING
    assert said.endswith(".")
    assert "nan" not in said
    plot.clear()
    assert plot.alt == NOTHING
    assert make().alt == said  # type: ignore[operator]


def test_survival_tells_medians_and_how_far_apart_the_curves_are() -> None:
    plot = survival()
    assert "Of the observed, half live beyond 10; of the predicted, half live beyond 20" in plot.alt
    assert "at most 15% apart, at 10" in plot.alt
    # three of four bounded times: at 10 the predicted curve leaves the band
    assert "within the bounds of the observed 75% of the time" in plot.alt
    low = plot.sources[0].data["low"]
    assert low[0] == 1  # no bound: the band has no width there
    none = SurvivalPlot()
    none.show(np.empty(0), np.empty((3, 0)), np.empty((3, 0)))
    assert none.alt == "No patient was held out."


def test_survival_of_more_than_half_has_no_median_but_a_last_time() -> None:
    plot = SurvivalPlot()
    curve = np.array([[1.0, 0.9], [1.0, 0.8], [1.0, 1.0]])
    plot.show(np.array([0.0, 12.0]), curve, curve)
    assert "Of the observed, half live beyond 12" in plot.alt


def test_influence_names_what_leads_and_what_adds_nothing() -> None:
    plot = influence()
    assert plot.alt.startswith("texture contributes 65%, then intensity 30%; ")
    assert "next to nothing comes from noise" in plot.alt
    assert plot.even.location == pytest.approx(1 / 3)
    plot.show(np.array([1.0]), ["all"])
    assert plot.alt == "There is but all, which contributes all."
    assert not plot.even.visible


def test_probabilities_of_a_rare_class_are_shares_of_that_class() -> None:
    plot = separation()
    up, down = (np.asarray(plot.bars.data[side]) for side in ("up", "down"))
    assert up.sum() == pytest.approx(1)
    assert down.sum() == pytest.approx(-1)
    assert len(up) == BINS
    assert "100% of the 50 rows of event are put above one half" in plot.alt
    assert "98% of the 150 rows of none are put below one half" in plot.alt
    assert [item.label["value"] for item in plot.items] == ["event, upwards", "none, downwards"]
    plot.show(np.empty(0), np.empty(0), ["none", "event"])
    assert plot.alt == "No row was held out."


def test_hidden_neurons_have_a_lane_each_with_the_classes_apart() -> None:
    plot = hidden()
    assert plot.alt.startswith("texture goes with the classes most")
    assert "noise least" in plot.alt
    others, events = (np.asarray(source.data["y"]) for source in plot.dots)
    assert len(others) == 450
    assert len(events) == 150
    assert ((events - np.round(events)) > 0).all()
    assert ((others - np.round(others)) < 0).all()
    assert not plot.bar.visible
    plot.point(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.1, 0.1]))
    assert plot.mark.data["y"].tolist() == [0, -1, -2]
    assert plot.mark.data["low"][1] == pytest.approx(2 - 0.196)


def test_hidden_neurons_of_a_number_are_coloured_by_it() -> None:
    plot = HiddenPlot()
    truth = HIDDEN[:, 2].copy()
    truth[:20] = np.nan
    plot.show(HIDDEN, truth, VIEWS, np.ones(3) / 3, target="SO2")
    assert len(plot.shades.data["x"]) == 3 * 180
    assert len(plot.dots[0].data["x"]) == 0
    assert plot.bar.visible
    assert "noise goes with the target most (correlation 1.00)" in plot.alt


def test_of_many_neurons_the_most_influential_are_shown_and_no_more_dots_than_may_travel() -> None:
    plot = HiddenPlot()
    values = np.tile(np.arange(30.0), (1000, 1))
    share = np.linspace(1, 2, 30)
    plot.show(values, np.tile([0.0, 1.0], 500), [f"n{i}" for i in range(30)], share, ["a", "b"])
    assert len(plot.figures[0].yaxis[0].ticker.ticks) == MOST
    assert sum(len(s.data["x"]) for s in plot.dots) <= DOTS
    assert min(plot.dots[0].data["x"]) == 30 - MOST


def test_methods_are_ranked_by_what_is_better_and_none_is_of_other_data() -> None:
    plot = methods()
    assert plot.dots.data["method"] == ["this run", "Student-t", "SGP"]
    assert "best first: Student-t 0.400 ± 0.030, this run 0.500 ± 0.020, SGP 0.600" in plot.alt
    assert "this run is number 2 of 3" in plot.alt
    plot.show(METRICS, "NLPD")
    assert plot.alt == "No other method was fitted to the same rows."


def test_combinations_of_views_are_named_by_what_is_shorter() -> None:
    plot = views_on()
    assert plot.dots.data["label"] == ["1. all views", "2. texture"]
    assert plot.alt.startswith("With texture F1 is 0.700 against 0.650 of the SVM")
    assert "over 2 combinations the two differ by +0.075 on average" in plot.alt
    plot.show([Tried(("intensity", "texture"), 0.8, float("nan"))], VIEWS, "F1")
    assert plot.dots.data["label"] == ["1. no noise"]
    assert plot.alt == "With intensity, texture F1 is 0.800."


def test_a_patient_is_read_with_its_interval_and_what_happened() -> None:
    plot = patient()
    assert "P 7: 25 predicted, between 15 and 40 with 95%, from 2 samples" in plot.alt
    assert "died at 38, within it" in plot.alt
    one = np.array([[20.0], [10.0], [40.0]])
    plot.show("P 8", (20.0, 10.0, 40.0), one, 60.0, False)
    assert "from 1 sample; alive when last seen, at 60" in plot.alt
    plot.show("P 9", (20.0, 10.0, 40.0), one, float("nan"), False)
    assert plot.alt.endswith("from 1 sample.")
    assert len(plot.truth.data["x"]) == 0
