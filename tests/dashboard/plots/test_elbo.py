"""The objective's curve: streamed, broken at restarts, marked where it is not finite, thinned."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scant.events import Progress
from scant_dashboard.live.decimate import LIMIT, keep
from scant_dashboard.live.run_state import TraceBuffer
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.plots.elbo import ElboPlot, extent


def plot() -> ElboPlot:
    return ElboPlot("log marginal likelihood (nats a row)", "validation score (nats a row)")


def trace(values: list[float], restarts: list[int] | None = None) -> TraceBuffer:
    made = TraceBuffer()
    for i, value in enumerate(values):
        restart = restarts[i] if restarts else 0
        made.append(Progress(i + 1, value, 0.1 * i, value, value - 0.5, restart))
    return made


def test_new_points_are_streamed_and_no_point_twice() -> None:
    shown, run = plot(), trace([1.0, 2.0, 3.0])
    shown.update(run, 0)
    held = shown.curve.data["elbo"]
    for value in (4.0, 5.0):
        run.append(Progress(len(run) + 1, value, 0, value, value))
    shown.update(run, 3)
    shown.update(run, 5)
    assert list(shown.curve.data["elbo"]) == [1, 2, 3, 4, 5]
    assert list(held) == [1, 2, 3]
    assert shown.alt.startswith("Step 5: log marginal likelihood 5.000, validation score 5.000")


def test_points_missed_in_between_are_drawn_all_the_same() -> None:
    shown, run = plot(), trace([1.0, 2.0])
    shown.update(run, 0)
    for value in (3.0, 4.0):
        run.append(Progress(len(run) + 1, value, 0, value, value))
    shown.update(run, 3)
    assert list(shown.curve.data["step"]) == [1, 2, 3, 4]


def test_start_over_after_points_were_voided() -> None:
    shown, run = plot(), trace([1.0, 2.0, 3.0])
    shown.update(run, 0)
    run.cut(1)
    shown.update(run, 0)
    assert list(shown.curve.data["step"]) == [1]


def test_a_restart_breaks_the_line_whole_or_streamed() -> None:
    values, restarts = [1.0, 2.0, 0.0, 1.0], [0, 0, 1, 1]
    whole, streamed, run = plot(), plot(), trace(values, restarts)
    whole.update(run, 0)
    streamed.update(run.upto(2), 0)
    streamed.update(run, 2)
    for shown in (whole, streamed):
        assert np.isnan(shown.curve.data["elbo"]).tolist() == [False, False, True, False, False]
    assert whole.alt.startswith("Restart 2, step 4: ")


def test_what_is_not_finite_is_marked_at_its_step() -> None:
    shown = plot()
    shown.update(trace([1.0, 2.0, float("nan")]), 0)
    assert list(shown.broken.data["step"]) == [3]
    assert list(shown.broken.data["height"]) == [2]
    assert "not finite at step 3" in shown.alt
    shown.update(trace([1.0]), 0)
    assert len(shown.broken.data["step"]) == 0


def test_a_long_curve_is_thinned_and_keeps_its_spike() -> None:
    values = np.linspace(0, 1, 10 * LIMIT)
    values[12_345] = -50.0
    shown = plot()
    shown.update(trace(values.tolist()), 0)
    drawn = shown.curve.data["elbo"]
    assert len(drawn) <= 2.2 * LIMIT
    assert drawn.min() == -50
    assert drawn[-1] == 1


def test_nothing_yet() -> None:
    shown = plot()
    shown.update(TraceBuffer(), 0)
    assert shown.alt == NOTHING


def test_the_view_leaves_out_the_climb_of_the_first_steps() -> None:
    steps = np.arange(200)
    curve = 1 - 1000 * np.exp(-steps / 2)
    low, high = extent(curve, curve)
    assert high == curve.max()
    assert -20 < low < high


@pytest.mark.slow
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=400),
    st.integers(4, 60),
)
def test_thinning_keeps_extremes_ends_and_all_that_is_not_finite(
    values: list[float], limit: int
) -> None:
    curve = np.array(values, dtype=float)
    kept = keep(curve, limit)
    assert np.all(np.diff(kept) > 0)
    assert kept[0] == 0
    assert kept[-1] == len(curve) - 1
    finite = curve[np.isfinite(curve)]
    if len(finite):
        drawn = curve[kept][np.isfinite(curve[kept])]
        assert drawn.min() == finite.min()
        assert drawn.max() == finite.max()
    assert np.isfinite(curve).sum() - np.isfinite(curve[kept]).sum() == len(curve) - len(kept)
    assert np.isfinite(curve[kept]).sum() <= limit + 3 or len(curve) <= limit


def test_estimates_from_batches_are_points_around_the_line_of_the_whole() -> None:
    shown = ElboPlot("estimate (nats a row)", "bound (nats a row)", noisy=True)
    kinds = {
        (type(r.glyph).__name__, r.glyph.y)
        for r in shown.figures[0].renderers
        if getattr(r, "data_source", None) is shown.curve
    }
    assert kinds == {("Scatter", "elbo"), ("Line", "score")}
    drawn = np.random.default_rng(0).normal(0, 0.1, 300)
    shown.update(trace(list(drawn)), 0)
    assert re.search(r"Estimates scatter by ± 0\.(09|1|11)\d* from batch to batch", shown.alt)
    shown.update(trace([1.0, 2.0]), 0)
    assert "scatter" not in shown.alt


def test_where_the_objective_itself_chooses_it_is_said_once() -> None:
    shown = ElboPlot("bound (nats a row)", "bound (nats a row)")
    shown.update(trace([1.0, 3.0, 2.0]), 0)
    assert shown.alt == "Step 3: bound 2.000, best 2.500."
