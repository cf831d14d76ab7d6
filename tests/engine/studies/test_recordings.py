"""The recorded demonstrations are those of today's code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scant import verdict
from scant.events import Report
from scant.store import Store
from scant.studies import STUDIES
from scripts import record_demo
from scripts.demo_spread import recorded

TRUTHS = ("test_y", "test_truth", "test_label", "test_class", "z_true")  # what is held out
# Another processor changes the last digits of simulated rows, and moves a score by less (mitosis by
# 0.13 of its standard error, redshift by 0.005); a change of model or data usually by more.
MOST = 0.5  # standard errors over the held-out rows


def differences(old: Report, new: Report) -> list[str]:
    """How a stored report differs from one that was made today; nothing where it does not."""
    found = []
    names = [[(m.method, m.name, m.source) for m in report.metrics] for report in (old, new)]
    if names[0] != names[1]:
        found.append("methods or scores")
    shapes = [{n: a.ndim for n, a in report.arrays.items()} for report in (old, new)]
    if shapes[0] != shapes[1]:
        found.append("arrays")
    for name in (n for n in TRUTHS if n in old.arrays and n in new.arrays):
        pair = [np.asarray(report.arrays[name], np.float32) for report in (old, new)]
        if pair[0].shape != pair[1].shape or not np.allclose(*pair, rtol=1e-5, equal_nan=True):
            found.append(f"held-out rows ({name})")
    now = {(m.method, m.name): m.value for m in new.metrics}
    for m in old.metrics:
        value = now.get((m.method, m.name), m.value)
        if m.source == "run" and m.spread and abs(value - m.value) > MOST * m.spread:
            found.append(f"{m.name} ({m.value:.4g} recorded, {value:.4g} today)")
    if len(old.limits) != len(new.limits):
        found.append("limits")
    return found


@pytest.mark.slow("engine/scant/studies", "engine/scant/models", "data/recordings")
@pytest.mark.parametrize("study", STUDIES)
def test_a_demonstration_recorded_today_is_the_recorded_one(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCANT_DATA_DIR", str(tmp_path))
    store = Store.open()
    _, end = record_demo.record(study, store)
    store.close()
    found = differences(recorded(study), end.report)
    assert not found, (
        f"The recording of {study} differs from today's code in {', '.join(found)}; record again "
        f"by python scripts/record_demo.py {study}, and run scripts/demo_spread.py {study}."
    )


@pytest.mark.parametrize("study", STUDIES)
def test_a_recorded_verdict_is_that_of_its_own_report(study: str) -> None:
    report = recorded(study)
    stored, today = report.verdict, verdict.of_metrics(report.metrics)
    assert stored is not None
    assert stored.contests
    for one, other in zip(stored.contests, today.contests, strict=True):
        assert (one.score, one.rival) == (other.score, other.rival)
        assert (one.ours, one.theirs) == pytest.approx((other.ours, other.theirs))
        assert one.low is None or one.low <= one.gain <= (one.high or 0)
    held_out = next(report.arrays[name] for name in TRUTHS if name in report.arrays)
    assert stored.tested == len(held_out)
    if stored.headline.startswith("On these"):
        assert f" {stored.tested:,} held-out rows" in stored.headline


def test_a_report_of_other_code_is_found_to_differ() -> None:
    genes, other = recorded("genes"), recorded("multiview")
    assert not differences(genes, genes)
    assert differences(genes, other)[:2] == ["methods or scores", "arrays"]
