"""Latent rows by class, covariances, relevance, thresholds, imbalance: drawn and said."""

from __future__ import annotations

import numpy as np
import pytest
from bokeh.document import Document
from scipy.stats import norm

from scant_dashboard.pages.mitosis.imbalance import ImbalancePlot
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.latent import ClassesPlot
from scant_dashboard.plots.matrix import COMMON, LEVELS, MatrixPlot
from scant_dashboard.plots.precision_recall import PrecisionRecallPlot
from scant_dashboard.plots.relevance import DimensionsPlot
from scant_dashboard.plots.theme import GROUPS, MARKERS

CLASSES = ["other", "mitosis"]
AXES = ("shared dimension 1", "shared dimension 2")
MEAN = np.array([[0.0, 0.0], [4.0, 1.0], [0.2, 0.0], [0.1, 1.0], [4.2, 0.0]])
LABEL = np.array([0, 1, 0, 0, 1])


def scattered() -> ClassesPlot:
    plot = ClassesPlot("rows")
    plot.show(MEAN, np.full((5, 2), 0.1), LABEL, CLASSES, AXES)
    return plot


def test_rows_are_told_apart_by_color_and_marker_the_rare_ones_on_top() -> None:
    plot = scattered()
    assert plot.rows.data["group"].tolist() == ["other"] * 3 + ["mitosis"] * 2
    assert plot.rows.data["color"].tolist() == [GROUPS[0]] * 3 + [GROUPS[1]] * 2
    assert plot.rows.data["marker"].tolist() == [MARKERS[0]] * 3 + [MARKERS[1]] * 2
    assert plot.rows.data["x"].tolist() == pytest.approx([0, 0.2, 0.1, 4, 4.2])
    assert plot.rows.data["width"][0] == pytest.approx(2 * 2.4477 * 0.1, rel=1e-3)
    assert plot.figures[0].yaxis[0].axis_label == AXES[1]


def test_the_scatter_says_how_far_classes_are_apart() -> None:
    plot = scattered()
    assert plot.alt.startswith("Rows: 3 other, 2 mitosis, each with its 95% ellipse")
    deviations = 4.0 / np.sqrt((np.var([4, 4.2]) + np.var([0, 0.2, 0.1])) / 2)
    x = np.linspace(-6, 6 + deviations, 20_001)
    overlap = np.trapezoid(np.minimum(norm.pdf(x), norm.pdf(x, deviations)), x)
    assert f"mitosis overlaps the others by {overlap:.0%}" in plot.alt
    assert f"{deviations:.1f} deviations apart" in plot.alt
    one = LABEL == 0
    plot.show(MEAN[one], MEAN[one], LABEL[one], CLASSES, AXES)
    assert plot.alt.startswith("Rows: 3 other, each with")


def test_while_a_run_goes_on_only_numbers_travel() -> None:
    plot = scattered()
    document = Document()
    document.add_root(plot.figures[0])
    sent: list[object] = []
    document.on_change(sent.append)
    plot.show(MEAN + 1, np.full((5, 2), 0.1), LABEL, CLASSES, AXES)
    (event,) = (e for e in sent if type(e).__name__ == "ColumnsPatchedEvent")
    assert set(event.patches) == {"x", "y"}  # type: ignore[attr-defined]
    plot.show(MEAN + 1, np.full((5, 2), 0.1), 1 - LABEL, CLASSES, AXES)
    assert plot.rows.data["group"].tolist() == ["mitosis"] * 3 + ["other"] * 2


def test_a_place_is_picked_and_marked() -> None:
    picked: list[tuple[float, float]] = []
    plot = ClassesPlot("walk", pick=lambda x, y: picked.append((x, y)))
    plot.sent.data = {"x": [1.5], "y": [-2.0]}
    assert picked == [(1.5, -2.0)]
    plot.points(np.array([[1.0, 2.0]]))
    first = plot.mark.data
    plot.points(np.array([[1.0, 2.0]]))
    assert plot.mark.data["x"] == [1.0]
    assert plot.mark.data != first  # the browser may have moved it since
    plot.points(np.array([[1.0, 2.0], [3.0, 4.0]]), ["if a", "if b"])
    assert plot.mark.data["name"] == ["if a", "if b"]


def test_covariances_share_a_scale_and_travel_as_bytes() -> None:
    shared = np.array([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]])
    private = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    plot = MatrixPlot("covariance")
    three = np.stack([shared, private, shared + private])
    plot.show(three, ["s", "p", "sum"], np.array([0, 0, 1]), CLASSES, "Said.")
    images = plot.pictures.data["image"]
    assert [i.dtype for i in images] == [np.uint8] * 3
    assert images[2].max() == LEVELS
    assert images[0][0, 0] == round(LEVELS / 4)
    message = plot.strips.data["name"]
    assert message == [*["2 rows of other"] * 2, *["1 row of mitosis"] * 2] * 3
    assert plot.alt == "Said. Strips at the edges: blue other, orange mitosis."
    signed = np.stack([np.diag([1.0, -2.0, 0.0])])
    plot.show(signed, ["s"], np.array([0, 0, 1]), CLASSES, "Said.", signed=True)
    assert plot.pictures.data["image"][0].diagonal().tolist() == [191, 0, 128]
    assert plot.bar.color_mapper.low == -1
    assert plot.bar.title != COMMON
    plot.show(three, ["s", "p", "sum"], np.array([0, 0, 1]), CLASSES, "Said.")
    assert (plot.bar.color_mapper.low, plot.bar.title) == (0, COMMON)
    plot.clear()
    assert plot.alt == NOTHING
    assert len(plot.pictures.data["image"]) == 0


def test_relevance_tells_shared_from_private() -> None:
    plot = DimensionsPlot()
    plot.show(np.array([2.0, 0.01, 4.0]), shared=2)
    assert plot.bars[0].data["dimension"].tolist() == [1, 2]
    assert plot.bars[1].data["relevance"].tolist() == [4]
    assert plot.figures[0].xaxis[0].major_label_overrides == {1: "s1", 2: "s2", 3: "p1"}
    assert plot.alt.endswith("for 2 of 3 dimensions.")
    assert "largest for private 1." in plot.alt


def test_thresholds_are_marked_on_every_curve() -> None:
    plot = PrecisionRecallPlot()
    curves = np.array([[[0.1, 0.9], [0.5, np.nan], [1.0, 0.0]]] * 2)
    plot.show(curves, ["SCLVM", "SVM"], 0.1)
    assert plot.curves.data["width"] == [3.0, 1.8]
    assert plot.guess.data["y"].tolist() == pytest.approx([0.1, 0.1])
    plot.mark(curves[:, :, 0], ["SCLVM", "SVM"], "At 0.1.")
    assert plot.marks.data["recall"].tolist() == [1, 1]
    assert plot.alt == "At 0.1. Dotted: random guessing."


def test_the_curve_of_imbalance_grows_and_names_who_is_better() -> None:
    plot = ImbalancePlot("imbalance")
    plot.show({10: np.array([0.8, 0.7])}, ["SCLVM", "SVM"], "F1")
    assert "0.80 at 1:10." in plot.alt
    plot.show({10: np.array([0.8, 0.7]), 100: np.array([0.2, 0.6])}, ["SCLVM", "SVM"], "F1")
    assert "0.20 at 1:100 (best: SVM, 0.60)" in plot.alt
    assert [list(s.data["x"]) for s in plot.sources[:2]] == [[10, 100]] * 2
    scores = [s.data["score"].tolist() for s in plot.sources[:2]]
    assert np.ravel(scores) == pytest.approx([0.8, 0.2, 0.7, 0.6])
    assert [item.visible for item in plot.legend.items] == [True] * 2 + [False] * 4
    assert plot.legend.items[1].label.value == "SVM"
    plot.show({1: np.array([0.5, np.nan])}, ["SCLVM", "SVM"], "F1")
    assert "nan" not in plot.alt
