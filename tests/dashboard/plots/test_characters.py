"""Many classes at once: Hinton diagrams to one scale, galleries of images, recall, doubt."""

from __future__ import annotations

import numpy as np
import pytest

from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.coregionalization_grid import HintonGrid
from scant_dashboard.plots.entropy import EntropyPlot
from scant_dashboard.plots.images import LEVELS, GalleryPlot, ResponsePlot
from scant_dashboard.plots.recall import GUESSING, LINE, MARGINS, MODEL, ROW, RecallPlot
from scant_dashboard.plots.reliability import ReliabilityPlot
from scant_dashboard.plots.theme import BLUE, GROUPS
from scant_dashboard.plots.tiles import at

NAMES = ["Anu/a", "Anu/b", "Bel/a"]
OF = ["Anu", "Anu", "Bel"]


def diagrams() -> HintonGrid:
    plot = HintonGrid("B")
    first = np.array([[1.0, -0.5, 0.25], [-0.5, 4.0, 0.0], [0.25, 0.0, 1.0]])
    plot.show(np.stack([first, first / 4]), ["B1", "B7"], NAMES, OF)
    return plot


def test_one_scale_over_all_matrices() -> None:
    plot = diagrams()
    side = np.reshape(plot.cells.data["side"], (2, 3, 3))
    value = np.reshape(plot.cells.data["value"], (2, 3, 3))
    assert (side / side.max()) ** 2 == pytest.approx(np.abs(value) / 4)
    assert "the largest entry is 4, in B1: Anu/b with itself" in plot.alt
    # within Anu |-0.5| and its quarter, between 0.25 and 0 and theirs
    assert "The mean size of entries between groups is 25% of the mean within one" in plot.alt


def test_classes_are_colored_by_group_whatever_their_order() -> None:
    plot = diagrams()
    # above and beside each of two matrices
    assert plot.strips.data["group"] == ["Anu", "Bel"] * 4
    assert plot.figures[0].legend[0].visible
    plot.show(np.ones((1, 3, 3)), [""], NAMES, OF, np.array([0, 2, 1]))
    assert plot.strips.data["group"] == ["Anu", "Bel", "Anu"] * 2
    assert plot.strips.data["color"][:3] == [GROUPS[0], GROUPS[1], GROUPS[0]]


def test_an_order_moves_values_and_keeps_their_names() -> None:
    plot = diagrams()
    matrix = np.arange(9.0).reshape(1, 3, 3)
    plot.show(matrix, [""], NAMES, OF, np.array([2, 0, 1]))
    i, j, value = (np.asarray(plot.cells.data[n]) for n in ("i", "j", "value"))
    np.testing.assert_array_equal(value, matrix[0, i.astype(int), j.astype(int)])
    assert value[0] == 8  # the last class stands first


def test_only_values_travel_while_a_run_goes_on() -> None:
    plot = diagrams()
    fields, strips, tags = plot.fields.data, plot.strips.data, plot.figures[0].tags
    plot.show(np.ones((2, 3, 3)), ["B1", "B7"], NAMES, OF)
    assert plot.fields.data is fields
    assert plot.figures[0].tags is tags
    assert plot.strips.data is strips


def test_what_is_not_finite_is_left_grey_and_a_cleared_one_starts_anew() -> None:
    plot = diagrams()
    plot.show(np.full((1, 3, 3), np.nan), [""], NAMES, OF)
    assert not np.any(plot.cells.data["side"])
    assert "all zeros" in plot.alt
    plot.clear()
    assert plot.alt == NOTHING
    assert len(plot.cells.data["x"]) == 0
    plot.show(np.eye(3)[None], [""], NAMES, OF)
    assert len(plot.strips.data["group"]) == 4


def test_more_groups_than_colors_have_no_legend() -> None:
    plot = HintonGrid("B")
    plot.show(np.ones((1, 9, 9)), [""], [*"abcdefghi"], [*"abcdefghi"])
    assert not plot.figures[0].legend[0].visible


def test_images_travel_as_one_array_each_for_its_tile() -> None:
    plot = GalleryPlot("g", lines=1)
    images = np.random.default_rng(0).uniform(size=(5, 3, 3))
    plot.show(images, [[str(k)] for k in range(5)], "five", [BLUE] * 5, np.linspace(0, 1, 5))
    (sheet,) = plot.sheet.data["sheet"]
    np.testing.assert_allclose(sheet / (LEVELS - 1), images, atol=0.003)
    assert plot.figures[0].tags[0] == 5
    assert np.floor(plot.frames.data["left"]).tolist() == [*range(5)]
    assert np.floor(plot.caption_source.data["y"]).tolist() == [*range(5)]
    assert np.diff(plot.bars.data["right"][:2] - plot.bars.data["left"][:2]) > 0
    held = plot.sheet.data
    plot.show(images, [["x"]] * 5, "five")
    assert plot.sheet.data is held  # the same images do not travel again
    plot.clear()
    assert plot.alt == NOTHING
    assert not len(plot.sheet.data["sheet"])


def test_a_click_picks_an_image() -> None:
    picked: list[int] = []
    plot = GalleryPlot("g", pick=picked.append)
    plot.show(np.zeros((3, 2, 2)), [["a"]] * 3, "three")
    plot.frames.selected.indices = [2]
    assert picked == [2]
    assert plot.frames.selected.indices == []


def test_the_map_lies_where_its_patches_are() -> None:
    plot = ResponsePlot("r")
    plot.show(np.eye(6), np.full((4, 4), -2.0), "a map")
    ink, over, veil = (p.data for p in plot.pictures)
    assert (plot.level.low, plot.level.high) == (-2, 2)
    assert over["dw"][0] / veil["dw"][0] == pytest.approx(4 / 6)
    assert over["x"][0] == at(1, 0, 1 / 6, 2)  # a pixel further in
    assert veil["x"][0] == 1 == 1 + ink["x"][0]
    assert ink["dw"] == veil["dw"]
    plot.show(np.eye(6), np.empty((0, 0)), "no map")
    assert len(plot.pictures[1].data["image"]) == 0


def test_recall_stands_beside_others_and_guessing() -> None:
    plot = RecallPlot("recall", others=True)
    plot.show(np.array([0.5, 0.75, np.nan]), ["a", "b", "c"], [2, 4, 5],
              {"nearest neighbour": np.array([0.25, 0.5, np.nan])})  # fmt: skip
    rows = [row for d in plot.dots for row in zip(*map(d.data.get, ("method", "output", "recall")))]
    assert (MODEL, "b", 0.75) in rows
    assert (GUESSING, "b", 0.25) in rows
    assert ("nearest neighbour", "a", 0.25) in rows
    assert all(np.isfinite(recall) for *_, recall in rows)
    named = {item.label.value for item in plot.figures[0].legend[0].items if item.visible}
    assert named == {MODEL, GUESSING, "nearest neighbour"}
    assert plot.figures[0].y_range.factors == ["c", "b", "a"]
    assert plot.figures[0].height == MARGINS + 3 * LINE + 3 * ROW  # a legend takes none of the rows
    assert "Recall of the held-out rows: 62.5% on average over 3 groups, from 50.0%" in plot.alt
    assert "nearest neighbour 37.5%" in plot.alt
    plot.show(np.array([np.nan]), ["a"], [3])
    assert plot.alt == "No row was held out."


def test_reliability_says_how_far_stated_and_right_are_apart() -> None:
    plot = ReliabilityPlot()
    bins = np.array([[np.nan, 0.4, 0.9], [np.nan, 0.5, 0.7], [0, 10, 30]])
    plot.show(bins)
    assert len(plot.points.data["rows"]) == 2
    assert plot.bars.data["share"] == pytest.approx([0.25, 0.75])
    assert plot.bars.data["left"] == pytest.approx([0.4, 0.9])
    assert "mean confidence 78%, accuracy 65%, overconfident" in plot.alt
    assert "ECE 0.1750" in plot.alt
    plot.show(np.array([[np.nan], [np.nan], [0.0]]))
    assert plot.alt == "No row was held out."


def test_doubt_is_split_by_output() -> None:
    plot = EntropyPlot("doubt")
    plot.show(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.5, 0.5]), np.array([0, 0, 1]), ["a", "b"])
    assert plot.bars.data["all"] == pytest.approx([1.5, 3.0])
    assert plot.bars.data["model"] == pytest.approx([0.5, 0.5])
    assert "2.00 nats, as of a choice among 7.4 equally probable classes" in plot.alt
    assert "would remove 25% of it" in plot.alt


def test_ten_classes_are_named_beside_and_below_and_many_are_not() -> None:
    plot = HintonGrid("B", min_side=240, max_side=460)
    names = [f"digit {k}" for k in range(10)]
    plot.show(np.eye(10)[None], [""], names, ["digits"] * 10, np.arange(10)[::-1])
    assert list(plot.row_names.data["text"]) == names[::-1] == list(plot.column_names.data["text"])
    top, bottom = (np.asarray(plot.fields.data[name], float) for name in ("top", "bottom"))
    middle = top + (np.arange(10) + 0.5) / 10 * (bottom - top)
    np.testing.assert_allclose(plot.row_names.data["y"], middle, atol=1e-6)
    plot.show(np.eye(40)[None], [""], [f"c{k}" for k in range(40)], ["a"] * 40)
    assert not len(plot.row_names.data["text"])
