"""Settings that are `auto`: what they take, how they are chosen, what a time budget does."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import param
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scant.errors import BadInput
from scant.events import State
from scant.runs.limits import Size, cost_of
from scant.studies import STUDIES, entry
from scant.studies.auto import (
    AUTO,
    CHOSEN,
    TRAINING_SHARE,
    AutoInteger,
    Choice,
    listed,
    read,
    training_seconds,
)
from scant.studies.base import Settings
from scant.studies.protocol import study_class
from scant.studies.split import SplitSettings
from scant.training.loop import train


class Sized(SplitSettings):
    n_basis = AutoInteger(AUTO, bounds=(1, 50), doc="Size.")
    noise = AutoInteger(AUTO, bounds=(0, 1), doc="Level.")
    max_steps = AutoInteger(AUTO, bounds=(1, 100), doc="Steps.")
    kind = param.Selector(default=AUTO, objects=[AUTO, "a", "b"])

    def check(self) -> None:
        if self.n_basis != AUTO and self.kind == "b" and self.n_basis > 10:
            raise BadInput("too many")


def choose(settings: Sized, rows: int, columns: int, counts: object) -> dict[str, Choice]:
    return {
        "n_basis": Choice(min(50, rows // 10), "one for ten rows"),
        "kind": Choice("a", "few rows"),
    }


SPEC = replace(entry("redshift"), settings=Sized, capacity=choose)


def test_words_and_numbers_are_taken() -> None:
    assert Sized.parse({"n_basis": "auto"}).n_basis == AUTO
    assert Sized.parse({"n_basis": "7", "noise": "1"}).values()["n_basis"] == 7
    assert Sized().changed() == {}
    assert Sized(n_basis=3).changed() == {"n_basis": 3}


@given(st.integers() | st.text("auton.e-7", max_size=6))
def test_other_words_are_refused_with_what_is_allowed(word: str | int) -> None:
    allowed = "whole number at least 1 and at most 50, or auto"
    if str(word).strip() == AUTO or (str(word).strip().isdigit() and 1 <= int(word) <= 50):
        assert Sized.parse({"n_basis": word}).n_basis in {AUTO, *range(1, 51)}
    else:
        with pytest.raises(BadInput, match=allowed):
            Sized.parse({"n_basis": word})


def test_only_what_is_auto_is_chosen() -> None:
    made, chosen = SPEC.settled(Sized(n_basis=9), 200, 3, {})
    assert (made.n_basis, made.kind, made.noise) == (9, "a", AUTO)
    assert set(chosen) == {"kind"}
    made, chosen = SPEC.settled(Sized(), 200, 3, {})
    assert made.n_basis == 20
    assert (
        listed(chosen) == "Chosen from the data: n_basis 20 (one for ten rows); kind a (few rows)."
    )
    assert read({CHOSEN: {"n_basis": [20, "one for ten rows"]}})["n_basis"].value == 20


def test_a_choice_that_does_not_fit_what_was_set_is_refused() -> None:
    with pytest.raises(BadInput, match="too many"):
        SPEC.settled(Sized(kind="b"), 500, 3, {})


@pytest.mark.parametrize("study", STUDIES)
def test_presets_leave_nothing_to_the_program(study: str) -> None:
    spec = entry(study)
    for preset in spec.presets.values():
        if preset.get("expert") != "you":  # a person's session is nobody's result to repeat
            assert spec.settled(spec.settings(**preset), 600, 402, {})[1] == {}


def test_a_cost_is_within_the_budget_and_of_the_chosen_sizes() -> None:
    seen: list[Any] = []

    def estimate(settings: Settings, rows: int, columns: int, counts: object) -> Any:
        seen.append(settings)
        return 1000.0, 1.0

    spec = replace(SPEC, estimate=estimate)
    cost = cost_of(spec, Sized(time_budget=30.0), Size(200, 3, {}))
    assert cost.seconds == 30.0
    assert seen[0].n_basis == 20
    cost = cost_of(spec, Sized(max_steps=5), Size(200, 3, {}))
    assert cost.seconds == 1000.0


def test_training_ends_with_its_budget_and_keeps_the_best(toy: str) -> None:
    assert training_seconds(Sized(time_budget=100.0)) == pytest.approx(70.0)
    assert training_seconds(Sized(max_steps=5)) is None
    ticks = count()
    settings = entry(toy).settings(max_steps=500, patience=0)
    study = study_class(toy)(settings, None, torch.device("cpu"))
    events = list(train(study, clock=lambda: float(next(ticks)), budget=1 + 30 / TRAINING_SHARE))
    end = events[-1]
    assert end.state is State.HIT_LIMIT
    assert "time budget" in end.reason
    assert "30 s" in end.reason
    assert end.report.metrics
