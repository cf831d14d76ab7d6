"""Every plot shows what it is given, says it in words, and forgets it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import ColorBar

from scant.events import Report
from scant_dashboard.pages.redshift.missing import MissingPlot
from scant_dashboard.pages.redshift.tried import SearchHistoryPlot
from scant_dashboard.plots import base, theme
from scant_dashboard.plots.base import NOTHING, DataView, Plot, columns, update_source
from scant_dashboard.plots.bins import BinsPlot
from scant_dashboard.plots.calibration import CoveragePlot, PitPlot
from scant_dashboard.plots.density import DensityPlot
from scant_dashboard.plots.hidden_units import HiddenUnitsPlot
from scant_dashboard.plots.images import ResponsePlot
from scant_dashboard.plots.matrix import MatrixPlot
from scant_dashboard.plots.pool import PoolPlot
from scant_dashboard.plots.rejection_curve import RejectionCurvePlot
from scant_dashboard.plots.relevance import BasisPlot, FeaturePlot
from scant_dashboard.plots.scatter import ScatterPlot
from scant_dashboard.plots.surface import SurfacePlot
from scant_dashboard.plots.uncertainty import VariancePlot, split_reading

RNG = np.random.default_rng(0)
TRUE = RNG.uniform(0, 1, 50)
MEAN = TRUE + 0.01 * RNG.normal(size=50)
STD = np.full(50, 0.02)
GRID = np.linspace(0, 1, 101)


def shown() -> list[Plot]:
    """One of each plot, showing something."""
    scatter, variance, basis, features = ScatterPlot(), VariancePlot(), BasisPlot(), FeaturePlot()
    scatter.show(TRUE, MEAN, STD)
    variance.show(TRUE, STD, 2 * STD, STD)
    basis.show(np.array([0.7, 0.2, 0.1]))
    features.show(np.array([0.2, 0.8]), ["u", "g"])
    pit, coverage = PitPlot(), CoveragePlot()
    pit.show(RNG.uniform(size=400))
    coverage.show(np.array([[0.5, 0.8, 0.95], [0.48, 0.81, 0.94]]))
    density, kept, bins, missing = DensityPlot(), RejectionCurvePlot(), BinsPlot(), MissingPlot()
    density.show(GRID, bump(0.3) + bump(0.7), np.stack([bump(0.3), bump(0.7)]), 0.31)
    kept.show(np.stack([np.linspace(0.1, 1, 10)] + [np.arange(10.0) * i for i in range(1, 6)]))
    bins.show(np.array([[0, 0.5], [0.5, 1], [0.1, -0.2], [0.01, 0.02], [0, 0.1], [5, 7.0]]))
    missing.show(np.stack([[0, 1.0], *np.linspace((0.04, 0.06), (0.05, 0.1), 12)]))
    tried = SearchHistoryPlot()
    tried.show(GROWN)
    return [
        scatter, variance, basis, features, pit, coverage, density, kept, bins, missing, tried
    ]  # fmt: skip


def bump(center: float) -> np.ndarray:
    return np.exp(-0.5 * ((GRID - center) / 0.05) ** 2)


GROWN = np.array(
    [[25, 2, 2, 1.2, 3], [25, 4, 2, 1.3, 5], [50, 5, 2, 1.4, 9], [50, 3, 2, -np.inf, 12.0]]
)


def test_every_plot_states_its_reading_and_forgets_it() -> None:
    for plot in shown():
        assert plot.alt != NOTHING
        assert plot.alt.endswith(".")
        assert "nan" not in plot.alt
        plot.say()
        for figure in plot.figures:
            assert figure.html_attributes["aria-label"] == f"{plot.title}. {plot.alt}"
        plot.clear()
        assert plot.alt == NOTHING
        observed = [
            r for f in plot.figures for r in f.renderers if r.data_source is not plot.corners
        ]
        sources = [r.data_source for r in observed]
        assert all(np.isnan(np.asarray(v, float)).all() for s in sources for v in s.data.values())


@pytest.mark.slow
def test_every_plot_can_be_shown_again_after_it_was_cleared() -> None:
    for plot in shown():
        Document().add_root(plot.figures[0])
        plot.clear()
    for plot in shown():
        assert plot.alt != NOTHING


def test_rivals_of_rows_with_gaps_are_drawn_where_they_are_installed() -> None:
    plot = MissingPlot()
    scores = np.array([[0.05, 0.07], [0.06, 0.08], [0.04, 0.09], [np.nan] * 2])
    plot.show(np.concatenate([[[0, 1.0]], scores, 10 * scores, scores]))
    assert [f.visible for f in plot.figures] == [True, True]
    assert plot.legend is not None
    assert [n for n in plot.legend.names if n] == [
        "this model",
        "random forest",
        "gradient boosting",
    ]
    second = plot.sources[len(plot.sources) // 2 :]
    np.testing.assert_allclose(second[2].data["score"], [0.4, 0.9], rtol=1e-6)
    assert "0.05000 against 0.04000 (gradient boosting) with 0 missing; 0.0700" in plot.alt
    assert "0.7000 against 0.9000 (gradient boosting) with 1 missing." in plot.alt


def test_a_report_of_before_shows_its_forest_and_no_likelihood() -> None:
    plot = MissingPlot()
    plot.show(np.array([[0, 1.0], [0.04, 0.06], [0.05, 0.1]]))
    assert [f.visible for f in plot.figures] == [True, False]
    assert plot.legend is not None
    assert [n for n in plot.legend.names if n] == ["this model", "random forest, mean filled in"]
    assert "0.06000 against 0.1000 (random forest, mean filled in) with 1 missing" in plot.alt
    assert "likelihood" not in plot.alt
    plot.show(np.stack([[0, 1.0], *np.ones((12, 2))]))
    assert [f.visible for f in plot.figures] == [True, True]


def test_what_a_fit_has_tried_is_drawn_and_the_kept_stage_marked() -> None:
    plot = SearchHistoryPlot()
    plot.show(GROWN)
    assert [str(s) for s in plot.stages.data["shape"]] == ["GD", "GC", "VC", "VD"]
    np.testing.assert_allclose(plot.best.data["score"], [1.2, 1.3, 1.4, 1.4], rtol=1e-6)
    np.testing.assert_allclose(
        [plot.selected.data["m"], plot.selected.data["seconds"]], [[50], [9]]
    )
    assert "began with 25 GD (score 1.200); 50 VC in stage 3 was kept (score 1.400)" in plot.alt
    assert "1 later stage gained nothing" in plot.alt
    assert plot.legend.names == ["", "", "GD", "VD", "GC", "VC"]
    assert "VC: a full covariance, a shape each." in plot.alt


def test_a_model_of_fixed_size_is_told_as_such() -> None:
    plot = SearchHistoryPlot()
    plot.show(np.array([[25, 5, 2, 1.4, 0.0], [25, 5, 2, 1.5, 0.0]]))
    assert "The settings fixed the model: 25 VC, from 2 starts" in plot.alt
    assert "1.400, 1.500" in plot.alt
    plot.show(np.empty((0, 5)))
    assert "An earlier version made this run" in plot.alt
    assert len(plot.stages.data["m"]) == 0


def test_every_color_bar_says_what_it_means() -> None:
    plots = [ScatterPlot("z"), SurfacePlot(), HiddenUnitsPlot(), MatrixPlot("m"), PoolPlot("p"),
             ResponsePlot("r")]  # fmt: skip
    for plot in plots:
        bars = [b for f in plot.figures for b in f.select(ColorBar)]
        assert len(bars) == len(plot.figures)
        assert all(bar.title for bar in bars)


def test_what_is_not_drawn_is_not_in_the_legend() -> None:
    variance = VariancePlot()
    variance.show(TRUE, STD, STD)
    assert [i.label.value for i in variance.items if i.visible] == ["noise", "model"]
    variance.show(TRUE, STD, STD, STD)
    assert all(item.visible for item in variance.items)


def test_a_density_explains_the_lines_it_has() -> None:
    plot = DensityPlot()
    items = plot.figures[0].legend[0].items
    plot.show(GRID, bump(0.3))
    assert [i.label.value for i in items if i.visible] == ["p(z)"]
    assert "Thin lines" not in plot.alt
    plot.show(GRID, bump(0.3), np.stack([bump(0.3), bump(0.7)]), 0.3, (GRID, bump(0.4)))
    assert all(item.visible for item in items)
    assert "Thin lines" in plot.alt


def test_readings_hold_the_right_numbers() -> None:
    scatter, variance, basis, features, *_ = shown()
    error = math.sqrt(np.mean((MEAN - TRUE) ** 2))
    assert f"RMSE: {error:.5f}." in scatter.alt
    assert scatter.alt.startswith(
        "50 of 50 held-out rows lie within their 95% interval. Beyond the dashed lines: 0. RMSE"
    )
    assert "17% of the variance; 67% is noise" in variance.alt
    assert "17% comes" in variance.alt
    assert " comes from 2 of 3 " in basis.alt
    assert features.alt == "Most sensitive to g (80%), then to u (20%)."


def test_split_without_missing_inputs_speaks_of_none() -> None:
    assert split_reading(1.0, 3.0).endswith("reduce.")
    assert split_reading(0.0, 0.0) == "All predictions have a variance of zero."


def test_density_counts_peaks_and_says_where_the_truth_lies() -> None:
    plot = DensityPlot()
    plot.show(GRID, bump(0.3) + bump(0.7), None, 0.31)
    assert "2 peaks" in plot.alt
    assert "The true value, 0.310, is inside the interval." in plot.alt
    plot.show(GRID, bump(0.3), None, 0.9)
    assert "1 peak." in plot.alt
    assert "outside" in plot.alt
    assert plot.truth.data["truth"].tolist() == pytest.approx([0.9, 0.9])


def test_kept_reads_the_metrics_at_the_slider() -> None:
    plot = RejectionCurvePlot()
    plot.show(np.array([[0.5, 1.0], [0.1, 0.2], [2, 1], [100, 90], [95, 80], [0, 0.01]], float))
    plot.at(0.75)
    assert "The 75% most confident rows: RMSE 0.1500, mean log-likelihood 1.500" in plot.alt
    assert all(mark.location == 0.75 for mark in plot.marks)


def test_figures_of_what_a_run_lacks_are_hidden_until_another_has_it() -> None:
    plot = ScatterPlot("value", outlier=None)
    view = base.array_view(plot, "y", "mean", "std", needs="y", without="No row was held out.")
    nothing, some = np.empty(0), np.array([1.0, 2.0])
    view.update(Report((), {"y": nothing, "mean": nothing, "std": nothing}), {})
    assert plot.alt == "No row was held out."
    assert not plot.figures[0].visible
    view.update(Report((), {"y": some, "mean": some, "std": some}), {})
    assert plot.figures[0].visible


def test_bins_leave_out_empty_ones() -> None:
    plot = BinsPlot()
    plot.show(np.array([[0, 0.5], [0.5, 1], [0.1, np.nan], [0.01, np.nan], [0, np.nan], [5, 0.0]]))
    assert plot.alt.startswith("1 bin,")
    assert len(plot.rows.data["left"]) == 1


def test_bins_that_are_all_too_small_leave_a_frame_and_a_sentence() -> None:
    plot = BinsPlot()
    plot.show(np.array([[0, 0.5], [0.5, 1], [0.1, 0.2], [0.01, 0.02], [0, 0], [5, 7.0]]))
    plot.show(np.empty((6, 0)))
    assert len(plot.rows.data["left"]) == 0
    assert len(plot.corners.data["x"]) == 2  # Bokeh cannot frame a figure without data
    assert "twenty held-out rows" in plot.alt


def test_pit_tells_over_from_under_confidence() -> None:
    plot = PitPlot()
    plot.show(np.full(100, 0.5))
    assert "too large" in plot.alt
    plot.show(np.tile([0.01, 0.99], 50))
    assert "too small" in plot.alt


def test_scatter_tells_the_page_which_point_was_clicked() -> None:
    picked: list[int] = []
    plot = ScatterPlot(pick=picked.append)
    plot.show(TRUE, MEAN, STD)
    plot.points.selected.indices = [7]
    assert picked == [7]
    plot.select(3)
    assert plot.chosen.data["true"] == pytest.approx([TRUE[3]])


def test_same_length_is_patched_so_that_a_selection_survives() -> None:
    source = columns("x")
    update_source(source, x=[1.0, 2.0])
    held = source.data["x"]
    update_source(source, x=[3.0, 4.0])
    assert source.data["x"] is held
    assert list(held) == [3.0, 4.0]
    update_source(source, x=[1.0])
    assert list(source.data["x"]) == [1.0]
    assert source.data["x"].dtype == np.float32


def test_fed_passes_on_what_the_page_chose() -> None:
    plot = BasisPlot()
    view = DataView(plot, lambda told, metadata: plot.show(told.arrays[metadata["which"]]))
    view.update(SimpleNamespace(arrays={"a": np.array([1.0])}), {"which": "a"})
    assert view.alt == "90% of the signal comes from 1 of 1 basis functions."


@pytest.mark.parametrize("color", [*theme.GROUPS, theme.GRAY, *theme.DEVIATION])
def test_colors_stand_out_from_light_and_dark_pages(color: str) -> None:
    for page in (theme.PAPER, theme.INK):
        light, dark = sorted((luminance(color), luminance(page)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3


def luminance(color: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))
