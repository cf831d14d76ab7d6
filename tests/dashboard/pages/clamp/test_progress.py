"""What is said of how far a session is."""

from __future__ import annotations

import numpy as np

from scant_dashboard.pages.clamp.progress import progress_of, score_of


def one(value: float) -> np.ndarray:
    return np.array([value])


def test_labels_of_the_budget_and_those_that_are_still_needed() -> None:
    assert progress_of({}, [], 230) == {
        "given": 0, "budget": 230, "lines": ["Labels given: 0 of a budget of 230."],
    }  # fmt: skip
    lines = progress_of({"remaining": one(41.6)}, range(30), 230)["lines"]
    assert lines == [
        "Labels given: 30 of a budget of 230.",
        "About 42 further labels are expected to be needed.",
    ]
    assert progress_of({"remaining": one(0)}, range(30), 230)["lines"][1].startswith("No further")
    assert len(progress_of({"remaining": one(np.nan)}, range(30), 230)["lines"]) == 1
    assert "is used up" in progress_of({}, range(230), 230)["lines"][0]


def test_a_score_says_which_patches_it_is_of() -> None:
    folds = {"f1": one(0.91), "held_out": one(0)}
    assert "F1 0.91 by cross-validation on the labels that the model" in score_of(folds, [1])
    drawn = {
        "f1": one(0.73), "held_out": one(1), "held_out_rows": np.array([4, 5, 6]),
        "f1_interval": np.array([0.6, 0.82]),
    }  # fmt: skip
    said = score_of(drawn, [1, 4, 5])
    assert said.startswith("F1 0.73 (0.60 to 0.82) on 2 rows drawn at random")
    assert "not learned from" in said
    assert "held out, 2 of them drawn at random" in score_of(drawn, [1, 4, 5], tested=40)
    assert "held out" in score_of({"f1": one(0.7), "held_out": one(1)}, [1], tested=40)
    assert score_of({"f1": one(np.nan)}, [1]) == score_of({}, []) == ""
