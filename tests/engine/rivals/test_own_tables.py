"""The script that measures Scant on tables nobody tuned for counts as the issue counts."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pandas as pd
import pytest

from tests.paths import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_tables", ROOT / "scripts" / "own_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(case: str, score: str, ours: float, theirs: float, **more: object) -> dict[str, object]:
    return {"case": case, "point_score": score, "point_ours": ours, "point_theirs": theirs, **more}


def test_errors_and_scores_are_compared_each_in_its_sense(script: ModuleType) -> None:
    likelihood = {"density_score": "NLPD", "density_ours": 1.0, "density_theirs": 1.1}
    calibration = {"calibration_score": "ECE", "calibration_ours": 0.2, "calibration_theirs": 0.1}
    table = pd.DataFrame(
        [
            line("near", "RMSE", 1.019, 1.0, **likelihood),
            line("behind", "RMSE", 1.021, 1.0, **likelihood | {"density_ours": 1.2}),
            line("ahead", "F1", 0.9, 0.5, **calibration),
            line("below", "F1", 0.9, 0.95),
            line("iris", "F1", 0.9, 0.95),  # one table in two forms
            line("no header", "F1", 0.95, 0.95),
            {"case": "refused", "state": "refused"},
        ],
        columns=script.COLUMNS,
    )
    assert script.summary(table).splitlines() == [
        "within 2% of the best rival's point score or better: 50% (2.5 of 5)",
        "first in density: 50% (1.0 of 2)",
        "first in density or calibration: 33% (1.0 of 3)",
        "behind: behind, below, iris",
        "no comparison: refused",
    ]


def test_a_case_that_cannot_be_fitted_is_a_line(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = "a,b,price\n" + "".join(f"{i}.5,{i * i}.25,{1000 + i}.5\n" for i in range(3))
    monkeypatch.setattr(script, "files", lambda: {"few": few.encode(), "none": b"\n"})
    made = script.fitted("few", 0)
    assert (made["study"], made["rows"], made["state"]) == ("redshift", 3, "refused")
    assert "few" in made["note"]
    assert script.fitted("none", 0)["state"] == "refused"
