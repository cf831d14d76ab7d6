"""The authors' own draw of the Poisson toy: the second task fills the gap of the first."""

from __future__ import annotations

import pytest

from scant.studies.aggregation.published_data import poisson_draw
from scant.studies.aggregation.settings import FIXED
from scant.training.api import fit
from tests.paths import REAL_DATA

FOLDER = REAL_DATA / "poisson_toy"


@pytest.mark.skipif(not FOLDER.is_dir(), reason="SCANT_REAL_DATA names no folder poisson_toy")
@pytest.mark.parametrize(("without", "low", "high"), [("", 0.3, 0.6), ("support 2", 0.9, 1.1)])
def test_published_errors_of_the_gap(without: str, low: float, high: float) -> None:
    # Published: SMSE 0.464 ± 0.136 with both tasks, 0.970 ± 0.016 with the first alone.
    values = {**FIXED, "fine_rows": 1000, "n_inducing": 125, "max_steps": 300, "leave_out": without}
    *_, last = fit("aggregation", poisson_draw(FOLDER), device="cpu", **values)
    smse = next(m.value for m in last.report.metrics if m.name == "SMSE" and m.source == "run")
    assert low < smse < high
