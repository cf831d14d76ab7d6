"""Grids of replicas, latent places, levels: what they draw and what they say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bokeh.events import Tap

from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.latent import NONE, LatentPlot
from scant_dashboard.plots.replicas import (
    ACROSS,
    BAND_F,
    BAND_Y,
    DOWN,
    HELD,
    MEAN,
    SHARED,
    TRAINED,
    ReplicaGrid,
    ticks,
)
from scant_dashboard.plots.variance_components import VarianceComponentsPlot

GRID = np.linspace(0.0, 10.0, 11)
REPLICAS = [["r1", "r2", "r3"], ["r1", "r2"]]  # of lengths that differ


def laid(**options: Any) -> ReplicaGrid:
    plot = ReplicaGrid("grid", **options)
    plot.lay_out(
        ["a", "b"],
        REPLICAS,
        x=np.array([0.0, 10.0, 5.0, 2.0, 4.0]),
        y=np.array([0.0, 1.0, 0.5, 100.0, 300.0]),
        row=np.array([0, 0, 0, 1, 1]),
        replica=np.array([0, 0, 1, 0, 1]),
        held=np.array([False, False, True, False, False]),
    )
    return plot


def curves() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = np.full((2, 3, 11), np.nan)
    mean[0], mean[1, :2] = 0.5, 200.0
    std_f = np.where(np.isfinite(mean), np.array([0.1, 10.0])[:, None, None], np.nan)
    std_f[0, 2, 7] = 0.4
    return mean, std_f, std_f * 1.5


def test_each_cell_has_its_place_and_each_row_its_scale() -> None:
    plot = laid()
    u, v = plot.points.data["u"], plot.points.data["v"]
    np.testing.assert_allclose(u, [0, 1, 0.2, 1 + ACROSS + 0.4], rtol=1e-6)
    assert v[0] == pytest.approx(0.2 / 1.4)  # room is left below and above
    assert v[1] == pytest.approx(1.2 / 1.4)
    assert v[2] == pytest.approx(0.2 / 1.4 - 1 - DOWN)
    assert plot.held.data["u"].tolist() == pytest.approx([1 + ACROSS + 0.5])
    assert len(plot.cells.data["left"]) == 5
    assert list(plot.labels.data["text"]) == ["r1", "r2", "r3", "r1", "r2"]
    assert list(plot.labels.data["hidden"]) == ["", "held out", "", "", ""]
    assert list(plot.figures[0].yaxis[1].major_label_overrides.values()) == ["a", "b"]
    assert "100" in plot.figures[0].yaxis[0].major_label_overrides.values()


def test_bands_stay_in_their_cells_and_have_no_width_between_them() -> None:
    plot = laid()
    mean, std_f, std_y = curves()
    plot.show(GRID, mean, std_f * 50, std_y * 50, np.full((2, 11), 0.5))
    data = plot.curves.data
    assert len(data["u"]) == 5 * (11 + 2)
    assert np.isnan(data["mean"]).sum() == 10  # the line breaks from cell to cell
    for band in "fy":
        between = np.isnan(data["mean"])
        np.testing.assert_array_equal(data[f"{band}_lo"][between], data[f"{band}_hi"][between])
        first = slice(0, 13)
        assert data[f"{band}_hi"][first].max() <= 1
        assert data[f"{band}_lo"][first].min() >= 0
    assert (data["y_hi"] >= data["f_hi"]).all()


def test_the_grid_says_where_least_is_known_and_how_many_held_out_points_it_caught() -> None:
    plot = laid()
    plot.show(GRID, *curves())
    assert "the widest 95% interval, ± 0.78, is that of a, r3 at 7" in plot.alt
    assert "1 of 1 held-out points (green rings) lie within the 95% band" in plot.alt
    mean, std_f, std_y = curves()
    mean[0, 1] = 5.0
    plot.show(GRID, mean, std_f, std_y)
    assert "0 of 1 held-out" in plot.alt
    plot.clear()
    assert plot.alt == NOTHING
    assert len(plot.curves.data["u"]) == 0


def legend_items(plot: ReplicaGrid) -> list[str]:
    return [item.label.value for item in plot.figures[0].legend[0].items if item.visible]


def test_the_legend_names_what_is_drawn_and_nothing_else() -> None:
    plot = laid()
    mean, std_f, std_y = curves()
    plot.show(GRID, mean, std_f, std_y, np.full((2, 11), 0.5))
    assert legend_items(plot) == [BAND_Y, BAND_F, SHARED, MEAN, TRAINED, HELD]
    plot.show(GRID, mean, np.full_like(std_f, np.nan), std_y)
    assert legend_items(plot) == [BAND_Y, MEAN, TRAINED, HELD]
    x, y, row, replica, held = plot._points
    plot.lay_out(["a", "b"], REPLICAS, x, y, row, replica, np.zeros_like(held))
    plot.show(GRID, mean, std_f, std_y)
    assert legend_items(plot) == [BAND_Y, BAND_F, MEAN, TRAINED]


def test_points_that_every_row_shows_are_counted_once() -> None:
    plot = ReplicaGrid("grid", rows="models")
    two = np.array([0, 0, 1, 1])
    plot.lay_out(["this run", "pooled"], [["r1"]] * 2, np.array([1.0, 9.0] * 2),
             np.array([0.0, 1.0] * 2), two, np.zeros(4, int), np.ones(4, bool))  # fmt: skip
    mean = np.stack([np.linspace(-0.1, 1.1, 11), np.zeros(11)])[:, None]
    plot.show(GRID, mean, np.full_like(mean, np.nan), np.full_like(mean, 0.1))
    assert plot.alt.startswith(
        "Held-out points (green rings, the same 2 in each row) within the 95% band"
    )
    assert "band of new measurements: this run 2, pooled 1. 2 models, one replica" in plot.alt


def test_a_model_without_a_curve_leaves_the_grid_empty() -> None:
    plot = laid()
    nothing = np.full((2, 3, 11), np.nan)
    plot.show(GRID, nothing, nothing, nothing)
    assert plot.alt == "No curve yet."
    assert len(plot.curves.data["u"]) == 0


def test_a_click_picks_the_cell_it_falls_on() -> None:
    picked: list[tuple[int, int]] = []
    plot = laid(pick=lambda i, j: picked.append((i, j)))
    (act,) = plot.figures[0]._event_callbacks[Tap.event_name]
    for x, y in (
        (0.5, 0.5),
        (1 + ACROSS + 0.5, 0.9),
        (1 + ACROSS + 0.5, -1 - DOWN + 0.1),
        (2 * (1 + ACROSS) + 0.5, -1.0),  # the second row has no third replica
        (0.5, -3.0),
    ):
        act(SimpleNamespace(x=x, y=y))
    assert picked == [(0, 0), (0, 1), (1, 1)]
    plot.choose(1, 1)
    assert plot.chosen.data["left"].tolist() == pytest.approx([1 + ACROSS])
    plot.choose(None)
    assert len(plot.chosen.data["left"]) == 0


def test_rows_set_the_height() -> None:
    plot = laid()
    assert plot.figures[0].height == ReplicaGrid.tall(2) < ReplicaGrid.tall(8)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 10.0), (2.0, 20.0), (-1.3, 1.1), (1e-5, 3e-5), (4000.0, 4001.0)]
)
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    result = ticks(low, high)
    assert 2 <= len(result) <= 6
    assert all(low <= tick <= high for tick in result)


def test_latent_places_carry_ellipses_and_name_neighbors() -> None:
    plot = LatentPlot()
    mean = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [3.0, 0.0, 2.0]])
    std = np.array([[0.1, 9.0, 0.1], [0.1, 9.0, 0.1], [0.5, 9.0, 0.5]])
    plot.show(mean, std, ["a", "b", "c"])
    # The second dimension says nothing, so the first and the third are shown.
    assert plot.positions.data["y"].tolist() == [0, 0, 2]
    assert plot.positions.data["width"][0] == pytest.approx(2 * 2.4477 * 0.1, rel=1e-3)
    assert "the closest two are a and b, 0.1 apart; the position of c is most uncertain" in plot.alt
    assert plot.figures[0].yaxis[0].axis_label == "latent dimension 3"
    plot.show(mean[:, :1], std[:, :1], ["a", "b", "c"])
    assert plot.positions.data["y"].tolist() == [0, 0, 0]
    plot.show(np.empty((0, 0)), np.empty((0, 0)))
    assert plot.alt == NONE
    assert len(plot.positions.data["x"]) == 0


def test_two_hundred_places_have_no_names_over_each_other() -> None:
    plot = LatentPlot()
    rng = np.random.default_rng(0)
    plot.show(rng.normal(size=(200, 2)), np.ones((200, 2)), [f"o{i}" for i in range(200)])
    assert len(plot.labels.data["name"]) == 0
    assert "200 outputs; the closest two are o" in plot.alt


def test_levels_are_stacked_and_said() -> None:
    plot = VarianceComponentsPlot()
    plot.show(np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]), ["a", "b"])
    np.testing.assert_allclose(plot.bars.data["replica"], [0.9, 0.9])
    np.testing.assert_allclose(plot.bars.data["noise"], [1, 1])
    assert "40% of the variance is shared by an output's replicas, 50% belongs to each" in plot.alt
    assert "Replicas of b differ most." in plot.alt


def test_levels_that_are_the_same_are_not_told_apart() -> None:
    plot = VarianceComponentsPlot()
    plot.show(np.tile([0.7, 0.2, 0.1], (3, 1)), ["a", "b", "c"])
    assert plot.alt.endswith("10% is noise. The shares are the same for every output.")


def test_neighbors_names_are_set_apart() -> None:
    plot = LatentPlot()
    places = np.array([[0.0, 0.0], [0.2, 0.0], [0.1, 0.0]])
    plot.show(places, np.full((3, 2), 0.1), ["a", "b", "c"])
    assert len(set(plot.labels.data["lift"])) == 3
