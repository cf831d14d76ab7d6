"""Bokeh figures as the server draws them: each mark lies where Bokeh would put it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import numpy as np
import pytest
from bokeh.plotting import figure
from hypothesis import given
from hypothesis import strategies as st

from scant.store import Store
from scant.studies import STUDIES
from scant_dashboard.plots.theme import models
from scant_dashboard.static_figures.figure import figure_html, figures_html
from scant_dashboard.static_figures.marks import colored
from scant_dashboard.static_figures.scales import Scale, tick_texts
from scant_dashboard.static_page.make import ReadOnlyService, opened, prepare

finite = st.floats(-1e6, 1e6)


def places(markup: str) -> list[tuple[float, float]]:
    """The points of the first path, in units of the frame's sides."""
    path = re.search(r"<path d='([^']+)' style", markup)
    assert path is not None
    points = re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path[1])
    return [(float(x) / 1000, 1 - float(y) / 1000) for x, y in points]


def plain(**ranges: Any) -> Any:
    return figure(**{"x_range": (0, 10), "y_range": (0, 4), **ranges})


def test_a_line_lies_where_its_range_puts_it_and_breaks_at_gaps() -> None:
    plot = plain()
    plot.line([0, 5, 10], [0, 1, 4])
    np.testing.assert_allclose(places(figure_html(plot)), [(0, 0), (0.5, 0.25), (1, 1)], atol=1e-3)
    plot = plain()
    plot.line([0, 1, 2, 3], [0, np.nan, 1, 2])
    path = re.search(r"<path d='([^']+)' style", figure_html(plot))
    assert path is not None
    assert path[1].count("M") == 2


@given(st.lists(st.tuples(finite, finite), min_size=2, max_size=20))
def test_a_range_that_follows_its_data_holds_them_all(points: list[tuple[float, float]]) -> None:
    x = np.array([a for a, _ in points])
    scale = Scale(models.DataRange1d(), [x])
    assert ((scale(x) >= 0) & (scale(x) <= 1)).all()
    assert all(-1e-6 < p < 1 + 1e-6 for p in scale(scale.ticks(models.BasicTicker())))


@given(finite, st.floats(1e-3, 1e6))
def test_ticks_are_round_numbers_and_their_texts_differ(low: float, width: float) -> None:
    scale = Scale(models.Range1d(low, low + width), [])
    ticks = scale.ticks(models.BasicTicker())
    assert len(ticks) <= 13
    if len(ticks) > 2:
        steps = np.diff(ticks)
        mantissa = steps[0] / 10 ** np.floor(np.log10(steps[0]) + 1e-6)
        assert np.isclose(mantissa, [1, 2, 5]).any()


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [("0%", 0.5, "50%"), ("0.[0]%", 0.125, "12.5%"), ("0.[0]%", 0.5, "50%"),
     ("0,0.[00]", 12345.5, "12,345.5"), ("0.[0000]", 0.25, "0.25")],
)  # fmt: skip
def test_formats_of_ticks(form: str, value: float, text: str) -> None:
    plot = plain()
    plot.xaxis.formatter = models.NumeralTickFormatter(format=form)
    assert tick_texts([value], plot.xaxis[0]) == [text]


def test_a_logarithmic_axis_has_powers() -> None:
    plot = figure(x_axis_type="log", x_range=(1, 1000), y_range=(0, 1))
    plot.line([1, 10, 1000], [0, 0, 1])
    assert [x for x, _ in places(figure_html(plot))] == pytest.approx([0, 1 / 3, 1], abs=1e-3)
    assert Scale(plot.x_range, [], log=True).ticks(models.LogTicker()) == [1, 10, 100, 1000]


def test_names_stand_at_the_middle_of_their_places() -> None:
    plot = figure(y_range=["a", "b"], x_range=(0, 1))
    plot.hbar(["a", ("b", 0.1)], left=0, right=0.5, height=0.4)
    corners = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", figure_html(plot))
    assert [float(c[1]) + float(c[3]) / 2 for c in corners] == pytest.approx([750, 200], abs=0.2)
    assert all(float(c[2]) == 500 for c in corners)


def test_colors_of_numbers_names_and_gaps() -> None:
    mapper = models.LinearColorMapper(["#000000", "#ffffff"], low=0, high=1, nan_color="#ff0000")
    assert colored(mapper, [-1, 0.2, 0.9, 7, np.nan]) == [
        "#000000", "#000000", "#ffffff", "#ffffff", "#ff0000",
    ]  # fmt: skip
    names = models.CategoricalColorMapper(palette=["#111111"], factors=["x"], nan_color="#999999")
    assert colored(names, ["x", "y"]) == ["#111111", "#999999"]


def test_words_from_data_are_escaped() -> None:
    plot = figure(y_range=["<b>", "c"], x_range=(0, 1), x_axis_label="<i>")
    plot.text([0.5], ["c"], text=["<script>"])
    plot.scatter([0.5], ["c"], legend_label="<u>")
    plot.html_attributes = {"aria-label": "a 'label'"}
    markup = figure_html(plot)
    for raw in ("<b>", "<i>", "<script>", "<u>", "'label'"):
        assert raw not in markup
    assert "&lt;script&gt;" in markup


def test_a_figure_that_answers_a_click_or_a_drag_says_so() -> None:
    followed = plain()
    followed.js_on_event("tap", models.CustomJS(code=""))
    tapped, boxed = figure(tools="tap"), figure(tools="box_select")
    assert ["data-acts" in figure_html(each) for each in (plain(), tapped, boxed, followed)] == [
        False, True, True, True,
    ]  # fmt: skip


def test_a_legend_has_its_color_before_there_are_rows() -> None:
    plot = plain()
    plot.line([], [], line_color="#123456", legend_label="later")
    assert "2px solid #123456" in figure_html(plot)


def test_names_stand_under_a_frame_of_fixed_width() -> None:
    wide, fixed = plain(), plain()
    fixed.frame_width = 200
    assert ["body fixed" in figure_html(each) for each in (wide, fixed)] == [False, True]


def test_what_is_hidden_is_not_drawn() -> None:
    plot = plain()
    plot.line([0, 1], [0, 1]).visible = False
    assert "style='fill:none" not in figure_html(plot)
    plot.visible = False
    assert figure_html(plot) == ""
    assert figures_html([plot]) == "<div class='plots'></div>"


def test_pixels_are_a_picture_with_the_first_row_below() -> None:
    import base64
    import io

    from PIL import Image

    plot = plain()
    mapper = models.LinearColorMapper(["#000000", "#ffffff"], low=0, high=1)
    plot.image([np.array([[0.0, 0.0], [1.0, 1.0]])], x=0, y=0, dw=10, dh=4, color_mapper=mapper)
    data = re.search(r"base64,([^']+)", figure_html(plot))
    assert data is not None
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data[1]))))
    assert pixels[0, 0, 0] == 255
    assert pixels[1, 0, 0] == 0


def test_what_cannot_be_drawn_is_not_left_out_unseen() -> None:
    glyph, annotation = plain(), plain()
    glyph.wedge([], [], radius=1, start_angle=0, end_angle=1)
    annotation.add_layout(models.Whisker(base=1, lower=0, upper=2))
    for plot, kind in ((glyph, "glyph Wedge"), (annotation, "annotation Whisker")):
        with pytest.raises(NotImplementedError, match=kind):
            figure_html(plot)


@pytest.mark.parametrize("study", STUDIES)
def test_every_figure_of_a_page_can_be_drawn(study: str, store: Store) -> None:
    prepare()
    store.import_shipped([study])

    async def figures() -> list[Any]:
        with opened(study, ReadOnlyService(store), {}) as page:
            found = page.panel.select(
                lambda pane: isinstance(getattr(pane, "object", None), models.Plot)
            )
            return [pane.object for pane in found]

    shown = asyncio.run(figures())
    assert len(shown) > 5
    for plot in shown:
        plot.visible = True
        assert "class='plot'" in figure_html(plot)
