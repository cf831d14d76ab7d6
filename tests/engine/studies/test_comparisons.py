"""What a study hands to its rivals is the problem that its own report scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import scant
from scant.events import Finished
from scant.rivals.comparison import SCORES
from scant.studies import entry

SMALL: dict[str, dict[str, Any]] = {
    "redshift": {"training_size": 60, "validation_size": 30, "test_size": 60},
    "aggregation": {},
    "genes": {},
    "omniglot": {},
    "mitosis": {},
    "multiview": {},
    "clamp": {"budget": 60},
}


@pytest.mark.slow("engine/scant/studies", "engine/scant/rivals")
@pytest.mark.parametrize("study", SMALL)
def test_scores_of_the_comparison_are_those_of_the_report(study: str) -> None:
    values = entry(study).presets["quick"] | SMALL[study]
    run = scant.fit(study, device="cpu", **values | ({} if study == "clamp" else {"max_steps": 4}))
    end = [event for event in run if isinstance(event, Finished)][-1]
    c = run.study.comparison(end.report)
    assert len(c.x) == len(c.y)
    assert len(c.x_test) == len(c.y_test) == len(c.own.value)
    assert c.x.shape[1] == c.x_test.shape[1]
    every = np.arange(len(c.y_test))
    told = {m.name: m.value for m in end.report.metrics if m.source == "run"}
    shared = [name for name in c.scores if name in told]
    assert len(shared) >= 2, c.scores
    for name in shared:
        assert SCORES[name](c, c.own, every) == pytest.approx(told[name], rel=1e-6), name
    assert end.report.verdict.tested == len(c.y_test)
