"""Surfaces, intervals and the curve over fine observations: what they draw and what they say."""

from __future__ import annotations

import numpy as np
import pytest

from scant_dashboard.pages.aggregation.curve import ScarcityPlot
from scant_dashboard.pages.aggregation.field import on_scale
from scant_dashboard.plots.intervals import IntervalPlot
from scant_dashboard.plots.surface import SurfacePlot

EDGES = [np.arange(5.0), np.arange(4.0)]  # four cells by three


def test_a_surface_draws_every_cell_and_names_the_surest() -> None:
    plot = SurfacePlot()
    truth = np.arange(12.0)
    plot.lay_out(EDGES, truth, ("age", "year"))
    std = np.full(12, 0.5)
    std[5] = 0.1
    plot.show(truth + 1, std)
    assert plot.cells.data["mean"][0].tolist()[1][2] == 7  # the first dimension fastest
    assert (plot.cells.data["dw"], plot.cells.data["dh"]) == ([4], [3])
    assert "Most certain at (1.5, 1.5)" in plot.alt
    # The mean is off by 1 everywhere, and 1.96 deviations are .98 or .196.
    assert "within the 95% interval in 0 of all 12 cells" in plot.alt
    assert plot.figures[0].visible
    plot.clear()
    assert len(plot.cells.data["mean"]) == 0


def test_a_surface_without_truth_hides_it_and_says_nothing_of_it() -> None:
    plot = SurfacePlot()
    plot.lay_out(EDGES, None, ("x", "y"))
    plot.show(np.zeros(12), np.ones(12))
    assert not plot.figures[0].visible
    assert "truth" not in plot.alt


def test_long_intervals_are_bars_short_ones_dots_and_held_out_ones_apart() -> None:
    plot = IntervalPlot()
    lo, hi = np.array([0.0, 6.0, 3.0, 4.0]), np.array([6.0, 12.0, 3.01, 4.01])
    plot.observe(lo, hi, np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, False, True]))
    assert plot.bars.data["y"].tolist() == [1, 2]
    assert plot.dots.data["y"].tolist() == [3]
    assert plot.held.data["y"].tolist() == [4]


def test_other_instruments_are_drawn_on_the_scale_of_the_one_that_is_asked_about() -> None:
    metadata = {
        "tasks": ["counter", "filter"],
        "scarce": "filter",
        "scale": [[100.0, 20.0], [10.0, 2.0]],
        "observed": {"task": [0, 1, 0]},
    }
    assert on_scale(metadata, np.array([120.0, 12.0, 60.0])).tolist() == [12, 12, 6]


def test_the_band_reads_where_least_is_known() -> None:
    plot = IntervalPlot()
    x = np.linspace(0, 10, 11)
    std = np.ones(11)
    std[7] = 2
    plot.show(x, np.sin(x), std, std + 1, np.sin(x) + 0.5)
    assert "the widest 95% interval, ± 3.9, is at 7" in plot.alt
    assert "RMSE against the truth: 0.5" in plot.alt


@pytest.mark.parametrize(("alone", "said"), [(0.5, "up to 50"), (0.01, "do not help")])
def test_the_curve_says_how_long_other_tasks_help(alone: float, said: str) -> None:
    plot = ScarcityPlot("worth")
    n = np.array([5.0, 50.0])
    together = np.full((3, 2), 0.1)
    smse = np.stack([together, np.full((3, 2), alone)])
    plot.show(n, smse, smse - 1)
    assert said in plot.alt
