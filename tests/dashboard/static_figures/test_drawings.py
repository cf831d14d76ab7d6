"""A drawing is kept until its figure changes, in whatever way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bokeh.document import Document
from bokeh.models import Range1d
from bokeh.plotting import figure

from scant_dashboard.static_figures.drawings import Drawings
from scant_dashboard.static_figures.figure import figure_html


def plot() -> Any:
    made = figure(x_range=(0, 10), y_range=(0, 10))
    made.line([0, 1], [0, 1])
    return made


def stream(of: Any) -> None:
    of.renderers[0].data_source.stream({"x": [5], "y": [5]})


def patch(of: Any) -> None:
    of.renderers[0].data_source.patch({"y": [(0, 5)]})


def replace(of: Any) -> None:
    of.renderers[0].data_source.data = {"x": [3, 4], "y": [3, 4]}


def change_in_place(of: Any) -> None:
    of.renderers[0].data_source.data["y"] = [7, 8]


def zoom(of: Any) -> None:
    of.x_range.end = 20


def another_range(of: Any) -> None:
    of.x_range = Range1d(0, 30)


def name(of: Any) -> None:
    of.xaxis[0].axis_label = "steps"


def add(of: Any) -> None:
    of.scatter([2], [2])


@pytest.mark.parametrize(
    "change", [stream, patch, replace, change_in_place, zoom, another_range, name, add]
)
def test_a_figure_that_changed_is_drawn_again(change: Callable[[Any], None]) -> None:
    drawings, one, other = Drawings(), plot(), plot()
    before, unchanged = drawings(one), drawings(other)
    assert before == figure_html(one)
    change(one)
    after = drawings(one)
    assert after == figure_html(one) != before
    assert drawings(other) is unchanged
    assert drawings(one) is after


def test_what_is_added_is_heard_of_too() -> None:
    drawings, one = Drawings(), plot()
    drawings(one)
    add(one)
    drawings(one)
    one.renderers[1].data_source.data = {"x": [9], "y": [9]}
    assert drawings(one) == figure_html(one)


def test_a_new_label_is_in_the_drawing() -> None:
    drawings, one = Drawings(), plot()
    one.html_attributes = {"aria-label": "a rising line"}
    drawings(one)
    one.html_attributes = {"aria-label": "a line of two points"}
    assert "a line of two points" in drawings(one)


def test_the_figure_of_another_document_is_drawn_each_time() -> None:
    drawings, one = Drawings(), plot()
    Document().add_root(one)
    drawings(one)
    stream(one)
    assert drawings(one) == figure_html(one)
