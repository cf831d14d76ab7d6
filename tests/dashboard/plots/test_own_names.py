"""Figures call the learned column as the user's table does, its unit with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scant_dashboard.plots.base import Plot, array_view
from scant_dashboard.plots.bins import BinsPlot
from scant_dashboard.plots.cohort import CohortPlot
from scant_dashboard.plots.density import DensityPlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.theme import models
from scant_dashboard.plots.uncertainty import VariancePlot
from tests.dashboard.fakes import snapshot


def words(plot: Plot) -> str:
    bars = [bar.title for f in plot.figures for bar in f.select({"type": models.ColorBar})]
    legends = [i.label.value for f in plot.figures for legend in f.legend for i in legend.items]
    return " | ".join([*(str(a.axis_label) for f in plot.figures for a in f.axis), *bars, *legends])


@pytest.mark.parametrize(
    ("make", "usual"),
    [
        (lambda: ScatterPlot("value"), "predicted value"),
        (lambda: ScatterPlot("redshift z"), "true redshift z"),
        (lambda: VariancePlot("z"), "variance of z"),
        (lambda: BinsPlot("z"), "true z"),
        (lambda: DensityPlot("z"), "| p(z) | truth"),
        (CohortPlot, "observed time"),
    ],
)
def test_axes_color_bars_and_legends_have_the_name_of_the_table(make: Any, usual: str) -> None:
    plot = make()
    before, known = words(plot), plot.target
    assert usual in before
    for name in ("mass [kg]", r"x\1 (m/s)", "z"):
        plot.call_target(name)
        assert words(plot) == before.replace(known, name)
    plot.call_target("")
    assert words(plot) == before


def test_a_run_says_how_its_column_is_called_and_the_next_one_may_not() -> None:
    view = array_view(VariancePlot("z"), "a", "b", "b")
    told: Any = snapshot(1)
    told.arrays.update(a=np.arange(5.0), b=np.ones(5))
    named = {"reading": {"mapping": {"u [mag]": "g", "dust [ug]": "y"}}}
    for metadata, name in ((named, "dust [ug]"), ({"target": "mass"}, "mass"), ({}, "z")):
        view.update(told, metadata)
        assert words(view.plot).startswith(f"{name} | variance of {name}")
