"""Maps: four figures of one source, what they say, and the polygon that is drawn on one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scant_dashboard.plots.choropleth import ChoroplethPlot
from scant_dashboard.plots.polygon_drawing import PolygonDrawing

Ring = tuple[np.ndarray, np.ndarray]


def square(x: float, size: float = 1.0) -> Ring:
    return np.array([x, x + size, x + size, x]), np.array([0, 0, size, size])


OUTLINES = [[[square(0)]], [[square(2), square(2.25, 0.5)]], [[square(4)], [square(6)]]]
PLACES = ["one", "ring", "islands"]


def laid(selected: list[list[int]] | None = None) -> ChoroplethPlot:
    heard = [] if selected is None else selected
    plot = ChoroplethPlot("Maps", heard.append)
    plot.lay_out(OUTLINES, np.array([1.0, np.nan, 3.0]), PLACES, [False, True, False], "2")
    return plot


def test_data_and_mean_share_one_scale_and_holes_and_islands_stay() -> None:
    plot = laid()
    plot.show(np.array([1.5, 5.0, 2.5]), np.array([0.5, 1.0, 0.2]), np.array([0.01, 1.0, 0.6]))
    assert (plot.level.low, plot.level.high) == pytest.approx((1, 5), abs=0.1)
    assert (plot.probability.low, plot.probability.high) == (0, 1)
    data = plot.shapes.data
    assert [[len(part) for part in shape] for shape in data["xs"]] == [[1], [2], [1, 1]]
    np.testing.assert_allclose(data["above"], [0.01, 1.0, 0.6], rtol=1e-6)
    np.testing.assert_allclose(data["width"], [0.5, 1.0, 0.2], rtol=1e-6)
    assert plot.alt.startswith("3 polygons. Posterior means are between 1.5 and 5; 95% intervals")
    assert "0.2 wide (islands) to 1 (ring)" in plot.alt
    assert "more than 2 is over 95% in 1 of them and under 5% in 1" in plot.alt
    assert "Held-out polygons are striped: 1." in plot.alt
    sources = {r.data_source.id for f in plot.figures for r in f.renderers if r.glyph}
    assert plot.shapes.id in sources
    plot.clear()
    assert not len(plot.shapes.data["xs"])
    assert plot.alt == "Nothing to show yet."


def test_an_update_leaves_polygons_and_selection_as_they_are() -> None:
    heard: list[list[int]] = []
    plot = laid(heard)
    plot.select([2])
    assert heard == [[2]]
    shapes = plot.shapes.data["xs"]
    plot.show(np.ones(3), np.ones(3), np.ones(3))
    assert plot.shapes.data["xs"] is shapes
    assert plot.shapes.selected.indices == [2]


def test_a_finished_drawing_is_told_once_with_its_corners() -> None:
    told: list[Any] = []
    plot = PolygonDrawing("Draw", lambda x, y: told.append((x, y)))
    plot.lay_out(OUTLINES, PLACES, np.array([1.0, 2.0, 3.0]))
    x, y = [0.0, 2.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0]  # a double click is two clicks at one place
    plot.ended.data = {"x": x, "y": y}
    assert told == [([0, 2, 2], [0, 0, 2])]
    shape = {"type": "poly", "x": x[:2], "y": y[:2]}
    plot._on_geometry(SimpleNamespace(geometry=shape, final=True))
    assert len(told) == 1  # a line is no polygon
    plot.mark(np.array([[0.0, 2.0, 2.0, np.nan], [0.0, 0.0, 2.0, np.nan]]))
    assert len(plot.query.data["x"]) == 4
    plot.clear()
    assert not len(plot.query.data["x"])
