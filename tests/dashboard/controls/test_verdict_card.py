"""The card above a result: advice, scores, cost, and code where another tool is better."""

from __future__ import annotations

from zipfile import ZipFile

import pytest

from scant.events import Finished, Metric, Report, decode
from scant.studies import STUDIES
from scant.verdict import Contest, Verdict
from scant_dashboard.controls.verdict_card import card
from tests.paths import ROOT

LOST = Contest("RMSE", 1.0, "<b>ridge", 0.5, -0.6, -0.4)
CODE = "from a import B\nB().fit(X, y).predict(X_new)"


def test_another_tool_is_named_with_the_code_for_it() -> None:
    seconds = {"this run": 12.0, "<b>ridge": 0.25}
    made = card(Report(verdict=Verdict(LOST, seconds=seconds, code=CODE)))
    assert "message warning" in made
    assert "Take another tool: &lt;b&gt;ridge is better on these data." in made
    assert "(&lt;b&gt;ridge better by 0.4 to 0.6, 90% interval)" in made
    assert "Cost: this run 12 s, &lt;b&gt;ridge 0.2 s." in made
    assert "B().fit(X, y)" in made
    assert "<b>" not in made


def test_a_run_that_wins_shows_no_other_tool_s_code() -> None:
    won = Contest("RMSE", 0.4, "ridge", 0.5, 0.05, 0.2)
    made = card(Report(verdict=Verdict(won, code=CODE)))
    assert "message info" in made
    assert "On these held-out rows, this run is better than every other method tried." in made
    assert "(this run better by 0.05 to 0.2, 90% interval)" in made
    assert "fit(X" not in made


def test_what_learned_nothing_is_an_error() -> None:
    made = card(Report(verdict=Verdict(nothing="its predictions are the same.")))
    assert "message error" in made
    assert "Learned nothing: its predictions are the same." in made


def test_a_recording_has_a_card_from_its_figures_and_a_run_alone_has_none() -> None:
    own = Metric("this run", "F1", 0.9)
    other = Metric("SVM", "F1", 0.7, source="baseline")
    made = card(Report((own, other)), 37.2)
    assert "F1: this run 0.9, SVM 0.7 (no interval)." in made
    assert "Cost: this run 37 s; that of the others was not measured." in made
    assert "Cost" not in card(Report((own, other)))
    assert card(Report((own,)), 37.2) == ""


def test_a_recording_whose_scores_have_deviations_has_an_interval() -> None:
    own = Metric("this run", "RMSE", 0.9, 0.03)
    made = card(Report((own, Metric("ridge", "RMSE", 1.2, 0.04, "baseline"))))
    assert "RMSE: this run 0.9, ridge 1.2 (this run better by 0.218 to 0.382, 90%" in made
    made = card(Report((own, Metric("ridge", "RMSE", 0.95, source="baseline"))))
    assert "may be chance: -0.0198 to 0.12, 90%" in made


@pytest.mark.parametrize("study", STUDIES)
def test_every_demonstration_s_recording_has_a_card(study: str) -> None:
    with ZipFile(ROOT / "data" / "recordings" / f"{study}.scant") as recording:
        [end] = [e for e in decode(recording.read("end.safetensors")) if isinstance(e, Finished)]
    made = card(end.report, 12.0)
    assert "Cost: this run" in made
    assert "interval)." in made
