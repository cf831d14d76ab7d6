"""Figures as JSON: kept until they change, and what of them a page without a session needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bokeh.core.serialization import Deserializer
from bokeh.document import Document
from bokeh.models import CustomJS, HoverTool, Range1d, TapTool
from bokeh.plotting import figure

from scant_dashboard.plots.theme import new_figure
from scant_dashboard.static_page.figure_models import (
    FigureModels,
    figure_model,
    is_interactive,
)


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
def test_a_figure_that_changed_is_converted_again(change: Callable[[Any], None]) -> None:
    converted, one, other = FigureModels(), plot(), plot()
    before, unchanged = converted(one), converted(other)
    assert before == figure_model(one)
    change(one)
    after = converted(one)
    assert after == figure_model(one, converted.ids) != before
    assert converted(other) is unchanged
    assert converted(one) is after


def test_what_is_added_is_heard_of_too() -> None:
    converted, one = FigureModels(), plot()
    converted(one)
    add(one)
    converted(one)
    one.renderers[1].data_source.data = {"x": [9], "y": [9]}
    assert converted(one) == figure_model(one, converted.ids)


def test_the_figure_of_another_document_is_converted_each_time() -> None:
    converted, one = FigureModels(), plot()
    Document().add_root(one)
    converted(one)
    stream(one)
    assert converted(one) == figure_model(one, converted.ids)


def test_new_data_leave_the_figure_itself_as_it_was() -> None:
    one = plot()
    before = figure_model(one)
    replace(one)
    after = figure_model(one)
    assert after.figure == before.figure
    assert after.sources != before.sources


def test_bokeh_reads_back_what_was_drawn() -> None:
    one = new_figure("a", "x", "y")
    values = np.linspace(0, 1, 40)
    one.line("a", "b (mm)", source={"a": values, "b (mm)": values**2, "unused": values})
    made = figure_model(one)
    (source,) = made.sources.values()
    data = Deserializer().deserialize(json.loads(source))
    assert set(data) == {"a", "b (mm)"}
    assert data["a"].dtype == np.float32
    np.testing.assert_allclose(data["b (mm)"], values**2, rtol=1e-6)
    assert json.loads(made.figure)["name"] == "Figure"


def test_nothing_in_it_needs_a_session_or_ends_a_script_element() -> None:
    one = new_figure("a", x="</script><!--part 0-->", tools="tap")
    one.line("x", "y", source={"x": ["</script>"], "y": [1]})
    one.js_on_event("tap", CustomJS(code="alert(1)"))
    made = figure_model(one)
    texts = made.figure + "".join(made.sources.values())
    assert "<" not in texts
    for word in ("CustomJS", "CustomAction", "TapTool"):
        assert word not in texts
    assert "PanTool" in texts


def test_every_model_is_defined_where_it_comes_first() -> None:
    one = new_figure("a", tools="tap,box_select")
    lines = one.line([1, 2], [1, 2])
    one.add_tools(HoverTool(renderers=[lines]), TapTool(renderers=[lines]))
    one.js_on_change("inner_width", CustomJS(args={"source": lines.data_source}, code=""))
    defined: set[str] = set()

    def walk(made: Any) -> None:
        if isinstance(made, dict):
            if "id" in made and "type" not in made:
                assert made["id"] in defined
            defined.add(made.get("id", ""))
            made = list(made.values())
        for part in made if isinstance(made, list) else ():
            walk(part)

    walk(json.loads(figure_model(one).figure))


def test_a_figure_that_answers_a_click_or_a_drag_says_so() -> None:
    followed = plot()
    followed.js_on_event("tap", CustomJS(code=""))
    tools = [new_figure("a"), new_figure("a", tools="tap"), new_figure("a", tools="box_select")]
    assert [is_interactive(each) for each in (*tools, followed)] == [False, True, True, True]
