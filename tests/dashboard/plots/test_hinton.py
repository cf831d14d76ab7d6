"""Hinton diagram: area is magnitude, color is sign, gray is a glyph beneath."""

from __future__ import annotations

import numpy as np
import pytest

from scant_dashboard.plots.hinton import FIELD, HintonPlot


def test_area_is_magnitude_over_the_greatest_wherever_it_is() -> None:
    plot = HintonPlot("B", "output", "output")
    plot.show(np.array([[1.0, -4.0], [0.0, 2.0]]))
    side = plot.squares.data["side"]
    assert side**2 / side.max() ** 2 == pytest.approx([0.25, 1.0, 0.0, 0.5])
    assert list(plot.squares.data["color"])[:2] == ["#ffffff", "#000000"]
    assert "largest entry is -4, for output 1 and output 2" in plot.alt


def test_rows_run_downwards_and_the_field_covers_them() -> None:
    plot = HintonPlot("B")
    plot.show(np.ones((2, 3)))
    figure = plot.figures[0]
    assert figure.y_range.start > figure.y_range.end
    assert [plot.field.data[k][0] for k in ("left", "right", "bottom", "top")] == [
        0.5,
        3.5,
        0.5,
        2.5,
    ]
    gray = figure.renderers[0]
    assert gray.level == "underlay"
    assert gray.glyph.fill_color == FIELD


def test_zeros_and_what_is_not_finite() -> None:
    plot = HintonPlot("B")
    plot.show(np.zeros((2, 2)))
    assert plot.alt == "A 2 by 2 matrix of zeros."
    plot.show(np.array([[np.nan, 1.0]]))
    assert list(plot.squares.data["side"]) == pytest.approx([0, 0.95])
    plot.clear()
    plot.show(np.ones((1, 1)))
    assert len(plot.squares.data["x"]) == 1


def test_axes_are_set_only_when_they_change() -> None:
    plot = HintonPlot("B")
    plot.show(np.ones((2, 2)), ["a", "b"])
    ticker = plot.figures[0].xaxis[0].ticker
    plot.show(np.eye(2), ["a", "b"])
    assert plot.figures[0].xaxis[0].ticker is ticker
    plot.show(np.eye(2), ["a", "c"])
    assert plot.figures[0].xaxis[0].major_label_overrides == {1: "a", 2: "c"}
    plot.show(np.ones((3, 3)))
    assert plot.figures[0].x_range.end == 3.5


def test_long_names_stand_upright_so_that_they_do_not_run_together() -> None:
    plot = HintonPlot("B")
    axis = plot.figures[0].xaxis[0]
    plot.show(np.eye(3), ["a", "b", "c"])
    assert axis.major_label_orientation == "horizontal"
    plot.show(np.eye(3), ["an alphabet", "another alphabet", "a third, of more letters than fit"])
    assert axis.major_label_orientation == "vertical"
    assert axis.major_label_overrides[3] == "a third, of more lett…"
