"""Plots of the clamp page: the pool, scores by labels, pictures with boxes, images in color."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.events import Tap

from scant_dashboard.pages.clamp.label_efficiency import LabelEfficiencyPlot
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.boxes import BoxesPlot
from scant_dashboard.plots.images import GalleryPlot, PhotographsPlot, rgba
from scant_dashboard.plots.pool import SHAPES, PoolPlot

CLASSES = ["no clamp", "clamp"]


def test_the_pool_marks_what_was_labeled_and_what_comes_next() -> None:
    picked: list[int] = []
    plot = PoolPlot("Pool", picked.append)
    xy = np.arange(8.0).reshape(4, 2)
    p = np.array([0.1, 0.5, 0.9, 0.3])
    plot.show(xy, p, np.array([10, 11, 12, 13]), [[10], [12]], [11, 99], CLASSES, "clamp")
    assert "2 of 4 rows are labeled" in plot.alt
    assert "p(clamp) is above one half for 1 and between 0.25 and 0.75 for 2" in plot.alt
    assert plot.given[1].data["x"].tolist() == [4.0]
    assert plot.next.data["y"].tolist() == [3.0]  # 99 is not in the pool
    assert plot.items[1].label.value == "labeled clamp"
    assert [i for i, item in enumerate(plot.items) if item.visible] == [0, 1, len(SHAPES)]
    assert plot.bar.title == "p, the probability of clamp"
    plot.rows.selected.indices = [2]
    assert picked == [12]
    plot.show(xy, p, np.array([10, 11, 12, 13]), [[], []], [], CLASSES, "clamp")
    assert len(plot.next.data["x"]) == 0
    assert not any(item.visible for item in plot.items)  # nothing is marked, nothing explained
    many = [f"class {k}" for k in range(10)]
    given = [[10 + k] if k < 4 else [] for k in range(8)] + [[11], [13]]
    plot.show(xy, p, np.array([10, 11, 12, 13]), given, [], many, many[3])
    assert plot.items[2].label.value == "labeled class 2"
    assert plot.items[7].label.value == "labeled class 7, class 8, class 9"
    assert plot.given[7].data["x"].tolist() == [2.0, 6.0]
    assert plot.bar.title == "p, the probability of class 3"
    plot.clear()
    assert plot.alt == NOTHING


def test_scores_by_labels_are_compared_and_unknown_ones_left_out() -> None:
    plot = LabelEfficiencyPlot("Labels")
    labels = np.array([10.0, 20.0, 30.0])
    scores = np.array([[0.5, 0.7, 0.9], [0.4, 0.5, 0.6], [np.nan] * 3])
    spread = np.array([[0.0] * 3, [0.1] * 3, [np.nan] * 3])
    plot.show(labels, scores, ["active", "random", "none"], "F1", spread)
    assert "F1: active 0.90 with 30 labels, random 0.60 with 30 labels." in plot.alt
    assert " On average over the numbers of labels, active is 0.20 above random." in plot.alt
    assert plot.sources[1].data["low"].tolist() == np.float32([0.3, 0.4, 0.5]).tolist()
    assert len(plot.sources[2].data["x"]) == 0
    assert plot.legend.names[:3] == ["active", "random", ""]
    plot.show(labels[:0], scores[:, :0], ["active", "random", "none"], "F1")
    assert plot.alt == NOTHING
    assert len(plot.sources[0].data["x"]) == 0


def test_boxes_lie_where_their_shares_say_in_the_pictures_own_proportions() -> None:
    picked: list[int] = []
    offsets: list[list[float]] = []

    def pick(row: int, offset: np.ndarray) -> None:
        picked.append(row)
        offsets.append(offset.tolist())

    plot = BoxesPlot("Picture", pick)
    image = np.zeros((90, 160, 3), np.uint8)
    box = np.array([[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 0.5, 1.0]])
    plot.show(image, box, np.array([0.2, 0.8]), np.array([4, 7]), "Two patches.")
    assert plot.figures[0].aspect_ratio == 160 / 90
    assert plot.boxes.data["x"].tolist() == [40.0, 120.0]
    assert plot.boxes.data["width"].tolist() == [2.0, 4.0]
    assert plot.labels.data["text"] == ["0.20", "0.80"]
    tap = plot.figures[0]._trigger_event
    tap(Tap(plot.figures[0], x=150.0, y=20.0))
    tap(Tap(plot.figures[0], x=150.0, y=120.0))  # outside
    assert picked == [7]
    overlapping = np.array([[0.0, 0.0, 0.6, 1.0], [0.3, 0.0, 0.6, 1.0]])
    plot.show(image, overlapping, np.array([0.2, 0.8]), np.array([4, 7]), "Two patches.")
    tap(Tap(plot.figures[0], x=60.0, y=45.0))  # in both, nearer to the middle of the first
    assert picked == [7, 4]
    assert offsets[0] == pytest.approx([30 / 80, -25 / 90])
    assert offsets[1] == pytest.approx([12 / 96, 0])
    plot.clear()
    assert plot.alt == NOTHING


def test_a_gallery_in_color_keeps_every_pixels_color() -> None:
    plot = PhotographsPlot("Queue", min_side=100, max_side=100, lines=1)
    red, blue = np.zeros((24, 24, 3)), np.zeros((24, 24, 3))
    red[..., 0], blue[..., 2] = 1, 1
    plot.show(np.stack([red, blue]), [["a"], ["b"]], "Two images.", bars=np.array([0.2, 0.7]))
    (sheet,) = plot.sheet.data["sheet"]
    assert sheet.dtype == np.uint32
    colors = set(sheet.ravel().tolist())
    assert colors == {0xFF0000FF, 0xFFFF0000}  # red, blue: bytes R, G, B, A
    gray = GalleryPlot("Gray")
    gray.show(np.ones((1, 4, 4)), [["a"]], "One image.")
    assert gray.sheet.data["sheet"][0].dtype == np.uint8


def test_pixels_travel_as_one_number() -> None:
    assert rgba(np.array([[[1, 2, 3]]], np.uint8)).tolist() == [[0xFF030201]]
