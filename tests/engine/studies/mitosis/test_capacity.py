"""Sizes that are chosen for a table: from its size and kind, within the budget, repeatably."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scant
from scant.events import Fitted, Note
from scant.studies.auto import AUTO, read
from scant.studies.mitosis.entry import ENTRY
from scant.studies.mitosis.settings import FIXED, MitosisSettings
from scant.training.api import restore
from tests.engine.studies.mitosis.nuclei import clouds


def settled(rows: int, columns: int, counts: Any, **values: Any) -> MitosisSettings:
    made, _ = ENTRY.settled(MitosisSettings(**values), rows, columns, counts)
    return made


@settings(max_examples=30)
@given(
    st.integers(20, 300_000),
    st.integers(2, 3000),
    st.integers(2, 10),
    st.sampled_from([5.0, 60.0, 600.0]),
)
def test_every_choice_is_allowed_and_repeatable(
    rows: int, columns: int, classes: int, budget: float
) -> None:
    counts = {"label": {str(c): max(2, rows // classes) for c in range(classes)}}
    made = settled(rows, columns, counts, time_budget=budget)
    assert [name for name, value in made.values().items() if value == AUTO] == ["classifier"]
    assert made.values() == settled(rows, columns, counts, time_budget=budget).values()
    more = settled(rows, columns, counts, time_budget=10 * budget)
    assert made.max_steps <= more.max_steps
    assert made.adam_steps <= made.max_steps


def test_columns_are_learned_as_they_are_and_pixels_by_components() -> None:
    label = {"label": {"a": 50, "b": 100}}
    few = settled(150, 5, {**label, **{f"f{i}": {} for i in range(4)}})
    assert few.n_components == 0
    assert few.n_shared_dims + few.n_private_dims <= 4
    pixels = settled(150, 901, {**label, **{f"p{i}": {} for i in range(900)}})
    assert pixels.n_components == FIXED["n_components"]
    assert settled(150, 901, label).n_components > 0
    assert settled(150, 901, label, n_components=3).n_shared_dims <= 3


@pytest.mark.parametrize("name", ["n_inducing", "n_private_dims", "max_steps", "model"])
def test_what_the_user_sets_stays(name: str) -> None:
    values = {"n_inducing": 17, "n_private_dims": 3, "max_steps": 33, "model": "bgplvm"}
    made = settled(200, 9, {}, **{name: values[name]})
    assert made.values()[name] == values[name]


@pytest.mark.slow
def test_an_own_table_is_fitted_with_what_was_chosen() -> None:
    table = clouds({"few": 15, "many": 30}, width=3)
    run = scant.fit("mitosis", table, device="cpu", time_budget=2.0, baselines=False)
    events = list(run)
    chosen = read(run.study.metadata)
    assert chosen["model"].value == "sclvm"
    assert run.study.settings.values()["n_components"] == 0
    assert chosen["classifier"].value in ("GP", "both")
    assert "classifier" in events[-1].report.notes[0]
    said = next(e.text for e in events if isinstance(e, Note) and "Chosen" in e.text)
    assert "model sclvm" in said
    assert "n_components 0 (columns as they are)" in said
    asked = table.drop(columns="label")
    assert (run.study.predict(asked)["label"] == table["label"]).mean() > 0.8
    blob = next(e.blob for e in events if isinstance(e, Fitted))
    again = restore("mitosis", {"baselines": False}, blob, "cpu")
    assert again.predict(asked).equals(run.study.predict(asked))
    assert again.explore("place", features=table.iloc[0, 1:].tolist())["p"].sum() == pytest.approx(
        1
    )
    scores = run.study.explore("imbalance", ratio=1)["scores"]
    assert scores.shape == (2, 4)
    assert np.isfinite(scores).all()
