"""The multiview study: what it makes of a table, what it learns, what it answers once fitted."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.events import Finished, Note, Progress
from scant.studies.multiview import baselines
from scant.studies.multiview.entry import ENTRY
from scant.studies.multiview.settings import MODELS
from scant.studies.multiview.study import Study
from scant.training.loop import train
from tests.engine.studies.multiview.views import CPU, settings
from tests.engine.studies.studying import resumed, run, value

TABLES = ("classes", "values", "lives")


# --- rows ---------------------------------------------------------------------------------------


def test_whole_groups_are_held_out_and_fewer_rows_are_among_more(classes: pd.DataFrame) -> None:
    studies = [Study(settings(training_size=n), classes, CPU) for n in (0, 40, 12)]
    group = studies[0].data.observed.group
    assert not set(group[studies[0].data.train]) & set(group[studies[0].data.test])
    assert len(set(group[studies[0].data.train])) == 3
    for more, fewer in pairwise(studies):
        assert set(fewer.data.train) < set(more.data.train)
        assert np.array_equal(fewer.data.test, more.data.test)
        assert len(np.unique(fewer.data.observed.target[fewer.data.train])) == 2
    assert [len(s.data.train) for s in studies[1:]] == [40, 12]
    other = Study(settings(seed=1), classes, CPU)
    assert not np.array_equal(other.data.test, studies[0].data.test)


def test_rows_are_drawn_class_by_class_without_groups(classes: pd.DataFrame) -> None:
    study = Study(settings(training_share=0.3), classes.drop(columns="group"), CPU)
    shares = [
        study.data.observed.target[rows].mean() for rows in (study.data.train, study.data.test)
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.02)
    assert len(study.data.train) == pytest.approx(0.3 * 180, abs=1)
    one = Study(settings(), classes.assign(group="all"), CPU)
    assert any("one group only" in note for note in one.notes)
    assert len(one.data.train) == pytest.approx(90, abs=1)


def test_patients_are_held_out_whole_and_censored_ones_are_not_learnt_from(
    lives: pd.DataFrame,
) -> None:
    study = Study(settings(bound="published"), lives, CPU)
    observed = study.data.observed
    assert not set(observed.patient[study.data.train]) & set(observed.patient[study.data.test])
    assert observed.event[study.data.train].all()
    assert not observed.event[study.data.test].all()
    assert any("are censored: their rows are not trained on" in n for n in study.notes)
    held = list(dict.fromkeys(observed.patient[study.data.test].tolist()))
    assert study.metadata["patients"] == [observed.patients[p] for p in held]
    late = Study(settings(), lives, CPU)
    assert not late.data.observed.event[late.data.train].all()
    assert not any("not trained on" in n for n in late.notes)
    late.start_restart(0, 0, None)
    assert int(late.learner.model.censored.sum()) == int(
        (~late.data.observed.event[late.data.train]).sum()
    )
    simple = Study(settings(bound="stochastic", model="dfgp-wp"), lives, CPU)
    assert not simple.data.observed.event[simple.data.train].all()


def test_views_and_neurons(classes: pd.DataFrame, values: pd.DataFrame) -> None:
    assert Study(settings(), classes, CPU).metadata["neurons"] == ["shape", "colour", "noise"]
    some = Study(settings(views="noise, shape"), classes, CPU)
    assert some.metadata["neurons"] == ["shape", "noise"]
    assert some.metadata["views"] == ["shape", "colour", "noise"]
    more = Study(settings(neurons=4), classes, CPU)
    assert more.metadata["neurons"] == ["shape 1", "colour 1", "noise 1", "shape 2"]
    alone = values.rename(columns=lambda c: c.replace(".", "_"))
    study = Study(settings(), alone, CPU)
    assert study.metadata["neurons"] == ["features 1", "features 2", "features 3"]
    for one in (some, more, study):
        one.start_restart(0, 0, None)
        assert one.snapshot()["hidden"].shape[1] == len(one.metadata["neurons"])
    assert Study(settings(model="sgp"), classes, CPU).metadata["neurons"] == []


def test_components_are_of_the_rows_that_are_learnt_from(classes: pd.DataFrame) -> None:
    study = Study(settings(n_components=2), classes, CPU)
    shape, color, _ = study.data.transforms.of(study.data.observed.x[study.data.train], CPU)
    assert shape.shape[1] == color.shape[1] == 2
    assert shape.mean(0).abs().max() < 1e-9
    assert abs(float((shape[:, 0] * shape[:, 1]).mean())) < 1e-9
    assert float(shape[:, 0].var()) >= float(shape[:, 1].var())


@pytest.mark.parametrize(
    ("kind", "change", "given", "said"),
    [
        ("classes", lambda t: t.assign(label="event"), {}, "only one class, 'event'"),
        ("classes", lambda t: t, {"model": "student-t"}, "learns values, and this table has"),
        ("classes", lambda t: t, {"views": "shape,smell"}, "no view 'smell'"),
        ("classes", lambda t: t.assign(group=t["label"]), {}, "No split of the groups has both"),
        ("classes", lambda t: t, {"training_size": 4}, "Only 4 rows are left to learn from"),
        ("classes", lambda t: t, {"task": "survival"}, "learns a column 'time'"),
        ("values", lambda t: t.assign(y=t["y"] - 3), {"log_target": "yes"}, "at least zero"),
        ("values", lambda t: t.assign(y=[1.0] * 9 + [None] * 151), {}, "Only 9 rows have a target"),
        (
            "lives",
            lambda t: t.assign(event=0),
            {"bound": "closed"},
            "Only 0 rows are left to learn from",
        ),
    ],
)
def test_tables_and_settings_that_cannot_be_are_said(
    request: pytest.FixtureRequest, kind: str, change: Any, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        Study(settings(**given), change(request.getfixturevalue(kind)), CPU)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "student-t", "task": "classification"}, "predicts values but no classes"),
        ({"model": "sgp", "bound": "stochastic"}, "networks of two layers, and sgp has one"),
        ({"task": "classification", "log_target": "yes"}, "classes have no logarithm"),
        ({"task": "survival", "positive_class": "event"}, "'positive_class' names a class"),
        ({"n_inducing": 1}, "one point makes no function"),
    ],
)
def test_settings_that_do_not_fit_together_are_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        settings(**given)


def test_what_settings_leave_open_follows_from_what_is_learnt(
    classes: pd.DataFrame, values: pd.DataFrame, lives: pd.DataFrame
) -> None:
    free = {"n_inducing": 0}
    results = [Study(settings(**free), table, CPU).settings for table in (classes, values, lives)]
    assert [s.task for s in results] == ["classification", "regression", "survival"]
    assert [s.bound for s in results] == ["published", "published", "stochastic"]
    assert [s.n_inducing for s in results] == [50, 10, 10]
    assert [s.inducing_init for s in results] == ["learnt", "fixed", "fixed"]
    assert [s.log_target for s in results] == ["no", "yes", "no"]
    plain = Study(settings(), values.assign(y=np.log(values["y"])), CPU)
    assert plain.settings.log_target == "no"
    assert Study(settings(model="sgp"), lives, CPU).settings.bound == "published"
    chosen = {"bound": "closed", "log_target": "no", "inducing_init": "learnt"}
    own = Study(settings(**chosen), values, CPU).settings
    assert {name: getattr(own, name) for name in chosen} == chosen


def test_a_view_in_which_nothing_varies_teaches_nothing_and_breaks_nothing(
    classes: pd.DataFrame,
) -> None:
    flat = classes.assign(**{"noise.a": 1.0, "noise.b": 2.0})
    study = Study(settings(n_components=1), flat, CPU)
    assert any("Nothing varies in noise" in note for note in study.notes)
    run(study)
    assert np.isfinite(study.snapshot()["predicted"]).all()


# --- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("kind", TABLES)
def test_every_model_trains_and_says_what_the_catalog_promises(
    request: pytest.FixtureRequest, model: str, kind: str
) -> None:
    if model == "student-t" and kind == "classes":
        pytest.skip("a Student-t process learns no classes")
    study = Study(settings(model=model), request.getfixturevalue(kind), CPU)
    events = list(train(study))
    curve = [e.elbo for e in events if isinstance(e, Progress)]
    assert curve[-1] > curve[0]
    last = events[-1]
    assert isinstance(last, Finished)
    arrays = last.report.arrays
    assert {spec.name for spec in ENTRY.report} == set(arrays)
    assert {spec.name for spec in ENTRY.snapshot} == set(study.snapshot())
    for spec in (*ENTRY.report, *ENTRY.snapshot):
        assert arrays[spec.name].ndim == len(spec.shape.split()), spec.name
    neurons = len(study.metadata["neurons"])
    assert arrays["influence"].shape == (neurons,)
    assert arrays["hidden"].shape == (len(arrays["shown"]), neurons)
    assert np.isfinite(arrays["predicted"]).all()
    assert (arrays["km_time"].size > 0) == (kind == "lives")
    assert len(arrays["patient_time"]) == len(study.metadata["patients"])


@pytest.mark.parametrize("bound", ["published", "closed", "stochastic"])
def test_every_bound_trains(classes: pd.DataFrame, bound: str) -> None:
    curve = [
        e.elbo
        for e in train(Study(settings(bound=bound, adam_steps=8), classes, CPU))
        if isinstance(e, Progress)
    ]
    assert curve[-1] > curve[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("classes", {"adam_steps": 4, "restarts": 2}),
        ("lives", {"bound": "stochastic", "model": "dfgp-wp"}),
        ("values", {"model": "sgp"}),
        ("values", {"model": "student-t", "max_steps": 8}),
    ],
)
def test_a_resumed_run_ends_bit_by_bit_where_an_uninterrupted_one_ends(
    request: pytest.FixtureRequest, kind: str, given: dict[str, Any]
) -> None:
    table = request.getfixturevalue(kind)
    resumed(lambda: Study(settings(**{"max_steps": 10, **given}), table, CPU), 6)


def test_snapshots_and_other_peoples_draws_do_not_change_a_run(classes: pd.DataFrame) -> None:
    for given in ({"bound": "stochastic"}, {"model": "sgp"}):
        curves = []
        for often in (False, True):
            torch.manual_seed(int(often))
            study = Study(settings(**given), classes, CPU)
            study.start_restart(0, 0, None)
            curves.append([])
            for _ in range(4):
                curves[-1].append(study.step().elbo)
                if often:
                    study.snapshot()
        assert curves[0] == curves[1]


# --- tables of each kind -------------------------------------------------------------------------


def test_a_density_of_the_logarithm_is_told_as_one_of_the_value(values: pd.DataFrame) -> None:
    """By hand: y = exp(s) - 1 with s Gaussian has p(y) = N(s) / (1 + y)."""
    study = Study(settings(log_target="yes"), values, CPU)
    report = run(study)
    mean, variance = study.present.ask(study.data.observed.x[study.data.test])
    y = study.data.observed.target[study.data.test]
    density = np.exp(-0.5 * (np.log1p(y) - mean) ** 2 / variance)
    density /= np.sqrt(2 * np.pi * variance) * (1 + y)
    assert value(report, "NLPD") == pytest.approx(-np.log(density).mean())


@pytest.mark.slow
def test_censored_patients_make_predicted_times_longer(lives: pd.DataFrame) -> None:
    """Nobody is seen for longer than so: who lives on teaches only where that is learned."""
    short = lives.assign(event=(lives["event"] == 1) & (lives["time"] < 15))
    short["event"] = short["event"].astype(int)
    short["time"] = short["time"].clip(upper=15)
    results = []
    for bound in ("closed", "stochastic"):
        study = Study(settings(bound=bound, max_steps=150, learning_rate=0.03), short, CPU)
        run(study)
        results.append(study.snapshot()["patient_pred"])
    assert np.median(results[1]) > 1.2 * np.median(results[0])


def test_what_compared_methods_do_not_learn_from_is_said(
    values: pd.DataFrame, lives: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert baselines.notes(Study(settings(baselines=True), values, CPU).data) == ()
    monkeypatch.setattr("scant.studies.multiview.splits.MOST_PROCESS", 50)
    monkeypatch.setattr(baselines, "MOST_ROWS", 30)
    study = Study(settings(baselines=True), values, CPU)
    assert "Student-t" not in study.metadata["methods"]
    n = len(study.data.train)
    some, gone = baselines.notes(study.data)
    assert some.startswith(f"ridge, averaged kernels and linear learn from 30 of {n} rows, drawn")
    assert gone.startswith("Student-t is left out of the comparison")
    assert len(baselines.teaching(study.data, study.data.train)) == 30
    dead = Study(settings(baselines=True), lives, CPU)
    known = int(dead.data.observed.event[dead.data.train].sum())
    assert any(f"the {known} of" in note for note in baselines.notes(dead.data))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("classes", {"n_components": 2, "views": "shape,noise"}),
        ("classes", {"model": "sgp"}),
        ("values", {"model": "student-t", "log_target": "yes"}),
        ("lives", {"bound": "stochastic"}),
    ],
)
def test_a_restored_study_is_the_same(
    request: pytest.FixtureRequest, kind: str, given: dict[str, Any]
) -> None:
    table = request.getfixturevalue(kind)
    study = Study(settings(**given), table, CPU)
    run(study)
    tensors, meta = study.fitted()
    back = Study.restore(study.settings, {k: v.clone() for k, v in tensors.items()}, meta, CPU)
    pd.testing.assert_frame_equal(study.predict(table.head(30)), back.predict(table.head(30)))
    for name, array in study.snapshot().items():
        assert np.array_equal(array, back.snapshot()[name], equal_nan=True), name
    query = {"names": study.data.observed.names[0]}
    first, second = study.explore("views", **query), back.explore("views", **query)
    assert first["score"] == second["score"]


def test_nothing_is_warned_of(lives: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = Study(settings(max_steps=3), lives, CPU)
        notes = [e.text for e in train(study) if isinstance(e, Note)]
    assert not any("jitter" in note for note in notes)
