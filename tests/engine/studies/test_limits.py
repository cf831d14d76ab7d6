"""Every study names what predicts: its model alone, or an average with weights."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from scant.events import Finished, Fitted, Report, State
from scant.studies import STUDIES, entry
from scant.studies.genes import stacking
from scant.training.api import restore
from scant.training.everything import refitted
from scant.training.loop import train
from scant.training.model_card import Card, markdown
from tests.engine.studies.cases import CASES, FIRST

OWN = {
    "aggregation": "MTGPA", "redshift": "GPz", "genes": "HMOGP-LV", "omniglot": "MOGPs-AR",
    "mitosis": "SCLVM", "multiview": "DFGP", "clamp": "the GP classifier",
}  # fmt: skip
AVERAGED: dict[str, dict[str, Any]] = {
    "aggregation": {"stack": True, "inference": "exact", "batch_size": 0},
    "redshift": {"stack": True},
    "genes": {"model": "stack"},
    "omniglot": {"stack": True, "calibrate": True},
    "mitosis": {"classifier": "both"},
    "multiview": {"stack": True},
}
ALONE: dict[str, dict[str, Any]] = {"multiview": {"stack": False}}
EITHER = [(study, False) for study in STUDIES] + [(study, True) for study in AVERAGED]
every = pytest.mark.parametrize(("study", "averages"), EITHER)


@cache
def run(study: str, averages: bool) -> tuple[Any, Report, bytes]:
    """A fitted study, its report and its model."""
    case, values = CASES[FIRST[study]], (AVERAGED if averages else ALONE).get(study, {})
    made = case.make(**values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacking, "LEAST_STEPS", 1)
        patch.setattr(stacking, "STEPS", 1)
        events = list(train(made))
    [*_, blob] = (event.blob for event in events if isinstance(event, Fitted))
    assert isinstance(events[-1], Finished)
    return made, events[-1].report, blob


def weights(study: Any) -> list[float]:
    """Weights of the fitted methods."""
    match study.settings.study:
        case "redshift":
            return list(study.posterior.ensemble.average.weights.values())
        case "genes":
            return list(study.model.weights.tolist())
        case "mitosis":
            share = study.present.chances.share
            return [share, 1 - share]
        case _:
            return list(study.average.ensemble.weights.values())


@every
def test_the_first_limit_names_what_predicts(study: str, averages: bool) -> None:
    made, report, _ = run(study, averages)
    first = report.limits[0]
    if not averages:
        assert first == f"Predictions come from {OWN[study]} alone."
        return
    expected = sorted(f"{w:.2f}" for w in weights(made) if w)
    if len(expected) == 1:
        assert "alone, chosen by" in first
    else:
        assert "an average" in first
        assert sorted(re.findall(r" (\d\.\d\d)[,)]", first)) == expected
        assert (OWN[study] in first) == (weights(made)[0] > 0)


@every
def test_card_and_restored_study_say_the_same(study: str, averages: bool) -> None:
    made, report, blob = run(study, averages)
    again = restore(study, made.settings.values(), blob, "cpu")
    assert again.limits() == made.limits() == report.limits
    card = Card(
        entry(study), {}, "a table", report, "finished",
        "", made.metadata, None, "", "", "0", "cpu",
    )  # fmt: skip
    limits = markdown(card).partition("## Limits\n\n")[2]
    assert limits.startswith(f"- {report.limits[0]}\n".replace("_", r"\_"))


@pytest.mark.parametrize(("model", "expected"), [(Fitted(b""), "second"), (None, "first")])
def test_after_a_fit_on_everything_they_are_of_the_fit_that_predicts(
    model: Fitted | None, expected: str
) -> None:
    first, second = (Report(limits=(name,)) for name in ("first", "second"))
    events = [model] if model else []
    *_, end = refitted(iter([*events, Finished(State.CONVERGED, "", second)]), 9, 4, 1, 1.0, first)
    assert end.report.limits == (expected,)
