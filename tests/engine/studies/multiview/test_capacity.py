"""Sizes that were left to the program, and the average that own tables are predicted by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from sklearn.metrics import f1_score

import scant
from scant.events import Finished, Fitted
from scant.inference.censored import uncensored
from scant.studies.auto import CHOSEN
from scant.studies.multiview.capacity import LEAST_STEPS, SHARE
from scant.studies.multiview.entry import ENTRY
from scant.studies.multiview.partners import FOLDS, behind, folds
from scant.studies.multiview.settings import MultiviewSettings
from scant.studies.multiview.study import Study
from scant.tables.schema import counts
from scant.training.api import restore
from tests.engine.studies.multiview.views import CPU, classes, lives, settings, values

SIZES = {"neurons", "n_inducing", "n_components", "restarts", "repeats", "max_steps"}


@pytest.mark.slow
@limited(deadline=None, max_examples=40)
@given(
    st.integers(16, 100_000), st.integers(1, 3000), st.integers(1, 12), st.floats(5, 3600),
    st.sampled_from(["label", "y", "time"]),
)  # fmt: skip
def test_every_size_is_chosen_and_within_the_budget(
    rows: int, columns: int, views: int, budget: float, target: str
) -> None:
    known = {f"view{v}.f{i}": {} for v in range(views) for i in range(1 + columns // views)}
    made_of = (rows, len(known), {target: {}, **known})
    given_ = MultiviewSettings(time_budget=budget)
    made, chosen = ENTRY.settled(given_, *made_of)
    assert set(chosen) == SIZES
    assert chosen == ENTRY.settled(given_, *made_of)[1]
    seconds, _ = ENTRY.estimate(made, *made_of)
    assert seconds <= SHARE * budget + 0.1 or (made.repeats == 1 and made.max_steps == LEAST_STEPS)


@pytest.mark.parametrize(
    "table", [classes(), values(), lives()], ids=["classes", "values", "lives"]
)
def test_a_fit_as_published_learns_from_the_rows_that_its_time_is_estimated_for(
    table: pd.DataFrame,
) -> None:
    study = Study(settings(training_share=0.0), table, CPU)
    known = counts(table, ENTRY.table)
    assert ENTRY.parts is not None
    assert ENTRY.parts(study.settings, len(table), known).train == len(study.data.train)
    assert len(study.data.train) < 0.6 * len(table)


def test_a_view_with_more_columns_than_rows_is_learned_by_components() -> None:
    known = {"label": {}, **{f"wide.{i}": {} for i in range(500)}, "small.a": {}}
    made, _ = ENTRY.settled(MultiviewSettings(), 100, 502, known)
    assert 0 < made.n_components < 100
    made, _ = ENTRY.settled(MultiviewSettings(), 5000, 502, known)
    assert made.n_components == 0


@pytest.mark.slow
@pytest.mark.parametrize("table", [classes(), values()], ids=["classes", "values"])
def test_an_own_table_is_predicted_by_an_average_that_comes_back(table: pd.DataFrame) -> None:
    few = {"max_steps": 15, "baselines": False}
    run = scant.fit("multiview", table, own=True, device="cpu", **few)
    blob, end = b"", None
    for event in run:
        blob = event.blob if isinstance(event, Fitted) else blob
        end = event
    assert set(run.study.metadata[CHOSEN]) == SIZES - {"max_steps"}
    assert "an average" in end.report.limits[0]
    present = run.study.present
    assert present.average is not None
    x = present.data.observed.x[present.data.test]
    alone = replace(present, average=None)
    assert not np.allclose(present.ask(x)[0], alone.ask(x)[0])
    whole, part = present.doubt(x)
    assert (part <= whole + 1e-9).all()
    assert (part >= 0).all()
    back = restore("multiview", MultiviewSettings(**few).values(), blob, "cpu")
    pd.testing.assert_frame_equal(
        back.predict(table.head(20)), run.study.predict(table.head(20)), rtol=1e-6
    )


def test_an_average_is_weighed_by_whole_groups() -> None:
    study = Study(settings(), classes(), CPU)
    train = study.data.train
    group = study.data.observed.group[train]
    if len(np.unique(group)) < FOLDS:
        study = Study(settings(training_share=0.8), classes(), CPU)
        train = study.data.train
        group = study.data.observed.group[train]
    for inner, left in folds(study.data, train):
        assert not set(group[inner]) & set(group[left])


def test_times_are_averaged_with_members_that_know_of_the_censored() -> None:
    run = scant.fit("multiview", lives(), own=True, device="cpu", max_steps=4, baselines=False)
    *_, end = run
    assert "an average" in end.report.limits[0]
    present = run.study.present
    y, late = present.data.y[present.data.train], ~present.data.observed.event[present.data.train]
    assert late.any()
    assert present.average.partners.mean > y.mean()


def test_censored_values_are_expected_by_what_their_row_tells() -> None:
    """Expectations that know no inputs draw slopes towards zero; those of lines do not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(250, 2))
    true = x @ [1.0, -0.5] + 0.3 * rng.normal(size=250)
    end = rng.normal(0, 1, 250)
    y, late = np.minimum(true, end), true > end
    *_, value, rest = uncensored(y, late)
    made, left = behind([x], y, late, value, rest)
    assert ((made - true)[late] ** 2).mean() < 0.4 * ((value - true)[late] ** 2).mean()
    assert (made[late] > end[late]).all()
    np.testing.assert_array_equal(made[~late], true[~late])
    assert left[late].mean() == pytest.approx(((made - true)[late] ** 2).mean(), rel=0.4)


@pytest.mark.slow
def test_classes_are_named_from_the_threshold_of_the_average() -> None:
    run = scant.fit("multiview", classes(), own=True, device="cpu", max_steps=4, baselines=False)
    *_, end = run
    assert isinstance(end, Finished)
    present = run.study.present
    assert present.average is not None
    assert 0 < present.threshold <= 0.5
    p, _ = present.ask(present.data.observed.x[present.data.test])
    y = present.data.observed.target[present.data.test]
    told = next(m.value for m in end.report.metrics if m.name == "F1")
    assert told == pytest.approx(f1_score(y, p >= present.threshold))
    named = run.study.predict(classes())["predicted"].to_numpy()[present.data.places]
    whole, _ = present.ask(present.data.observed.x)
    assert (
        named == np.array(present.data.observed.classes)[(whole >= present.threshold).astype(int)]
    ).all()
