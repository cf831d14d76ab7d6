"""Where a rival is ahead is told where it is, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from scant.events import Finished, Metric, Report, State, decode, encode
from scant.rivals.by_part import bins, everywhere, part
from scant.rivals.compare import compared
from scant.rivals.comparison import Comparison, Prediction, gaussian
from scant.verdict import NOBODY, OURS, RIVAL, Part, Verdict

RNG = np.random.default_rng(11)
Y = RNG.uniform(0, 1, 400)


def off(y: np.ndarray, error: np.ndarray | float) -> Prediction:
    """A prediction of these deviations, which it knows."""
    std = np.broadcast_to(np.asarray(error, float), y.shape)
    return gaussian(y, y + std * RNG.normal(size=len(y)), std**2)


def test_a_rival_that_is_better_at_low_values_is_ahead_there_only() -> None:
    own = off(Y, 0.1)
    parts = everywhere(Y, own, {"ridge": off(Y, np.where(Y < 0.25, 0.03, 0.3))}, "z")
    assert {p.kind for p in parts} == {"all", "truth"}
    assert len(parts) == 3 * 5
    for p in parts:
        low = p.kind == "truth" and p.stop < 0.3
        assert p.winner == (RIVAL if low else OURS), p
        assert p.contest.rival == "ridge"
    assert {p.of for p in parts if p.kind == "truth"} == {"z"}


def test_of_several_rivals_the_best_is_met_and_chance_counts_for_nobody() -> None:
    own = off(Y, 0.1)
    twin = own._replace(value=own.value + 1e-4 * RNG.normal(size=len(Y)))
    found = part(Part("all", rows=400), Y, own, {"twin": twin, "bad": off(Y, 0.5)})
    assert [p.contest.rival for p in found if p.contest] == ["twin"] * 3
    assert {p.winner for p in found} == {NOBODY}


def test_the_error_of_a_difference_is_that_of_the_bootstrap() -> None:
    own, other = off(Y, 0.1), off(Y, 0.12)
    told = part(Part("all", rows=400), Y, own, {"other": other})[0].contest
    assert told.high is not None
    draws = RNG.integers(400, size=(3000, 400))
    roots = [np.sqrt(((Y - p.value)[draws] ** 2).mean(1)) for p in (other, own)]
    assert (told.high - told.gain) / 2 == pytest.approx(np.std(roots[0] - roots[1]), rel=0.1)


def test_few_rows_and_rivals_without_a_density_are_told_as_far_as_they_go() -> None:
    some = slice(0, 29)
    assert part(Part("all"), Y[some], off(Y[some], 0.1), {"r": off(Y[some], 0.1)}) == []
    found = part(Part("all"), Y, off(Y, 0.1), {"line": Prediction(Y + 0.2)})
    assert [p.contest.score for p in found if p.contest] == ["RMSE"]


@pytest.mark.parametrize("y", [Y, Y[:70], Y[:40], np.ones(100), np.repeat([0.0, 1.0], 50)])
def test_bins_hold_every_row_once(y: np.ndarray) -> None:
    edges = bins(y)
    if len(y) < 60 or np.ptp(y) == 0:
        assert len(edges) == 0
        return
    assert edges[0] == y.min()
    assert edges[-1] == y.max()
    parts = everywhere(y, off(y, 0.1), {"r": off(y, 0.1)}, "z")
    told = {(p.start, p.stop): p.rows for p in parts if p.kind == "truth"}
    assert sum(told.values()) <= len(y)
    if np.ptp(np.diff(edges)) < 0.5 and len(y) == 400:
        assert sum(told.values()) == len(y)


def test_a_comparison_tells_its_parts_and_keeps_what_the_report_knew_of_gaps() -> None:
    x = RNG.uniform(-1, 1, size=(600, 2))
    y = x[:, 0]  # a line, which any rival knows
    error = np.where(y[300:] < 0, 0.2, 1e-6)
    own = off(y[300:], error)
    c = Comparison(x[:300], y[:300], x[300:], y[300:], own, ("RMSE", "CRPS"), by="z")
    gap = part(Part("missing", start=2, stop=2, rows=300), y[300:], own, {"r": off(Y[:300], 1.0)})
    stale = part(Part("all", rows=300), y[300:], own, {"old": own})
    report = Report((Metric("this run", "RMSE", 0.1),), verdict=Verdict(parts=(*stale, *gap)))
    made = compared(report, c, 1.0, own=True, rivals=True).verdict
    assert tuple(p for p in made.parts if p.kind == "missing") == tuple(gap)
    by_bin = {p.stop: p.winner for p in made.parts if p.kind == "truth" and p.contest is not None
              and p.contest.score == "RMSE"}  # fmt: skip
    assert by_bin[min(by_bin)] == RIVAL
    assert by_bin[max(by_bin)] == OURS
    assert "old" not in {p.contest.rival for p in made.parts if p.contest}
    [back] = decode(encode([Finished(State.CONVERGED, "", Report(verdict=made))]))
    assert back.report.verdict == made


@pytest.mark.slow
def test_rows_with_gaps_are_asked_of_rivals_that_have_seen_gaps() -> None:
    truth = RNG.uniform(0, 1, 500)
    x = truth[:, None] + 0.05 * RNG.normal(size=(500, 2))
    gaps = x[300:].copy()
    gaps[np.arange(200), RNG.integers(2, size=200)] = np.nan
    own = off(truth[300:], 1.0)
    errors = []
    for blocks in (None, np.arange(2)):
        c = Comparison(x[:300], truth[:300], gaps, truth[300:], own, ("RMSE",), blocks=blocks)
        report = compared(Report(), c, 1.0, own=True, rivals=True)
        errors.append({m.method: m.value for m in report.metrics if m.source == "rival"})
    for name in ("random forest", "gradient boosting"):
        assert errors[1][name] < 0.6 * errors[0][name]
