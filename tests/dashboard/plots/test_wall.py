"""The figure of a wall: thin and bold curves, the dot plot, the posterior means, the caption."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scant.events import Finished, Metric, Progress, Report, Started, State
from scant_dashboard.plots.wall import BINS, WallPlot, stacked
from scant_dashboard.room.wall import Wall
from scant_dashboard.room.wall_presets import HIGHEST, PRESETS, Variation, _by_redshift


def redshifts(shift: float) -> dict[str, Any]:
    truth = np.linspace(0, HIGHEST, 500)
    return {"z_true": truth, "z_mean": truth + shift}


def trained(scores: list[float], variation: Variation) -> Wall:
    """A wall whose runs have ended with these scores, but for the last one, which trains."""
    made = Wall(variation)
    for k, score in enumerate([*scores, None]):
        made.join("" if k == 0 else f"phone {k}")
        run = made.take(lambda token: True)
        assert run is not None
        run.run = f"run {k}"
        made.apply(run.run, [Started("cpu", 9), Progress(1, -2.0 - k, 0.1, 0.0, 0.0),
                             Progress(2, -1.0 - k, 0.2, 0.0, 0.0)])  # fmt: skip
        if score is not None:
            metric = Metric("this run", made.preset.metric, score)
            report = Report((metric,), redshifts(0.01 * k))
            made.apply(run.run, [Finished(State.FINISHED, "", report)])
    return made


def test_all_runs_are_drawn_and_a_click_makes_one_bold() -> None:
    wall = trained([0.06, 0.05, 0.04, 0.08], Variation("redshift", "sample"))
    clicks: list[int] = []
    plot = WallPlot(wall, lambda: clicks.append(1))
    assert [list(ys) for ys in plot.lines.data["ys"]] == [[-2.0 - k, -1.0 - k] for k in range(5)]
    assert list(plot.dots.data["title"]) == [f"sample {k}" for k in range(1, 5)]
    assert len(plot.means.data["ys"]) == 4
    assert plot.alt == (
        "Runs that have ended: 4 of 5. RMSE from 0.04 to 0.08. Half of them lie between 0.0475 and "
        "0.065. Bold: run 1, sample 1, the presenter's: RMSE 0.06. Dashed: the true values."
    )
    plot.dots.selected.indices = [2]
    assert clicks == [1]
    assert list(plot.bold.data["y"]) == [-4.0, -3.0]
    np.testing.assert_allclose(plot.bold_dot.data["x"], [0.04], rtol=1e-6)
    np.testing.assert_allclose(plot.bold_mean.data["y"], plot.means.data["ys"][2], rtol=1e-6)
    assert "Bold: run 3, sample 3: RMSE 0.04." in plot.alt
    assert plot.dots.selected.indices == []


def test_news_of_a_run_are_sent_alone() -> None:
    wall = trained([0.06, 0.05], Variation("redshift", "sample"))
    plot = WallPlot(wall, lambda: None)
    first = plot.lines.data["ys"][0]
    wall.apply("run 2", [Progress(3, -0.5, 0.3, 0.0, 0.0)])
    plot.show()
    assert list(plot.lines.data["ys"][2]) == [-4.0, -3.0, -0.5]
    assert plot.lines.data["ys"][0] is first  # patched, not replaced
    wall.fail(wall.runs[2], "why")
    plot.show()
    assert plot.alt.startswith("2 runs have ended. 1 failed. RMSE from 0.05 to 0.06.")


def test_a_setting_is_an_axis_and_its_effect_is_said() -> None:
    wall = trained([0.2, 0.1, 0.12, 0.19], Variation("redshift", "training_size", 30, 1000))
    plot = WallPlot(wall, lambda: None)
    assert list(plot.dots.data["x"]) == [30, 1000, 515, 272]
    np.testing.assert_allclose(plot.dots.data["y"], [0.2, 0.1, 0.12, 0.19], rtol=1e-6)
    sentence = "The median is 0.195 for training size below 515 and 0.11 above it."
    assert sentence in plot.alt


def test_a_wall_that_begins_has_ranges_and_says_where_it_is() -> None:
    wall = Wall(Variation("clamp"))
    wall.join("")
    plot = WallPlot(wall, lambda: None)
    assert (
        plot.alt == "Runs that have ended: 0 of 1. Bold: run 1, seed 0, the presenter's: waiting."
    )
    assert [len(corners.data["x"]) for corners in plot.unfilled] == [2]
    assert len(plot.figures) == 2  # a study without a posterior mean
    assert len(PRESETS["genes"].axes) == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80))
def test_dots_of_a_bin_are_stacked_without_gaps(scores: list[float]) -> None:
    values = np.array(scores)
    heights = stacked(values)
    assert (heights >= 1).all()
    width = max(np.ptp(values) / BINS, 1e-12)
    bins = np.floor((values - values.min()) / width)
    for one in np.unique(bins):
        assert sorted(heights[bins == one]) == list(range(1, np.sum(bins == one) + 1))


def test_means_by_redshift_leave_out_bins_with_few_galaxies() -> None:
    posterior = _by_redshift(Report(arrays=redshifts(0.1)), {})
    np.testing.assert_allclose(posterior.mean - posterior.truth, 0.1, atol=2e-3)
    few = {name: values[:2] for name, values in redshifts(0.0).items()}
    assert np.isnan(_by_redshift(Report(arrays=few), {}).mean).all()
