"""The preset "as published" of each study has the values that its publication states."""

from __future__ import annotations

import re

import pytest

from scant.studies import STUDIES, entry
from scant.studies.auto import AUTO
from scant.studies.published import settings, values

# Settings that say nothing of a publication's model: seeds, time, which rows and columns are whose,
# who gives the labels, and what a run makes beside its model.
OF_RUNS = {
    "data_seed",
    "seed",
    "time_budget",
    "workers",
    "refit",
    "split_by",
    "target",
    "task",
    "expert",
    "pace",
    "baselines",
    "network",
    "picture_width",
    "scarce",
    "leave_out",
    "population_task",
    "covariates",
    "n_groups",
}
PLACE = r"\b(?i:section|chapter|table|figure|equation|theorem|corollary|appendix)s? [0-9A-Z]"
EQUATION = r"\((?:[A-Z]\.)?[0-9]{1,2}(?:\.[0-9]{1,2})?\)"
WHERE = re.compile(rf"(?:authors' program|not stated): .|.*(?:{PLACE}|{EQUATION})")


@pytest.mark.parametrize("study", STUDIES)
def test_every_setting_of_the_model_is_stated(study: str) -> None:
    names, stated = set(entry(study).settings.names()), set(settings(study))
    assert names - OF_RUNS - stated == set()
    assert stated - names == set()


@pytest.mark.parametrize("study", STUDIES)
def test_every_value_is_of_a_place_of_the_publication_or_has_a_reason(study: str) -> None:
    vague = {n: s.where for n, s in settings(study).items() if not WHERE.match(s.where)}
    assert vague == {}
    assert [n for n, s in settings(study).items() if s.value == AUTO] == []


@pytest.mark.parametrize("study", STUDIES)
def test_the_preset_has_exactly_these_values(study: str) -> None:
    preset, stated = entry(study).presets["as published"], values(settings(study))
    assert {name: preset[name] for name in stated} == stated
    assert set(preset) - set(stated) <= OF_RUNS
    parsed = entry(study).settings.parse(preset).values()
    assert {name: parsed[name] for name in stated} == stated


@pytest.mark.parametrize(
    ("where", "has_a_form"),
    [
        ("section 3.3", True),
        ("Corollary 1: one sigma", True),
        ("(4.4)-(4.6); Con-K in Table 4.2", True),
        ("authors' program: 1", True),
        ("not stated: one start", True),
        ("not stated", False),
        ("authors' program:", False),
        ("as in the publication", False),
        ("the table (below)", False),
        ("Yousefi (2021)", False),
    ],
)
def test_vague_places_are_told_from_others(where: str, has_a_form: bool) -> None:
    assert bool(WHERE.match(where)) == has_a_form
