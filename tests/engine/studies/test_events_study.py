"""The events study: what it makes of a table, what it learns, what it answers once fitted."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from engine.catalog.events import ENTRY, MODELS, EventsSettings
from engine.errors import BadInput
from engine.events import Finished, Note, Progress, Report
from engine.studies.events import Study
from engine.training import train
from tests.engine.studies.studying import resumed, run, value

CPU = torch.device("cpu")
QUICK: dict[str, Any] = {"max_steps": 15, "inducing_points": 8, "baselines": False, "repeats": 1}


def settings(**values: Any) -> EventsSettings:
    made = EventsSettings.parse({**QUICK, **values})
    assert isinstance(made, EventsSettings)
    return made


def looks(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three views: of two hidden numbers one each, bent, and of nothing."""
    hidden = rng.uniform(-1.5, 1.5, (n, 2))
    shape = np.stack([hidden[:, 0], hidden[:, 0] ** 2, rng.normal(size=n)], 1)
    colour = np.stack([np.sin(2 * hidden[:, 1]), hidden[:, 1]], 1)
    x = np.concatenate([shape, colour, rng.normal(size=(n, 2))], 1)
    names = ["shape.a", "shape.b", "shape.c", "colour.a", "colour.b", "noise.a", "noise.b"]
    x[:, :5] += rng.normal(0, 0.1, (n, 5))
    return pd.DataFrame(x.round(4), columns=names), hidden


@pytest.fixture(scope="module")
def classes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, hidden = looks(rng, 180)
    p = 1 / (1 + np.exp(-6 * (hidden[:, 0] ** 2 + hidden[:, 1] - 1.3)))
    label = np.where(rng.uniform(size=180) < p, "event", "other").astype(object)
    return x.assign(label=label, group=[f"film {i % 6}" for i in range(180)])


@pytest.fixture(scope="module")
def values() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x, hidden = looks(rng, 160)
    y = np.exp(0.6 * hidden[:, 0] ** 2 + 0.5 * hidden[:, 1] + rng.normal(0, 0.15, 160))
    return x.assign(y=y)


@pytest.fixture(scope="module")
def lives() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    stage = rng.uniform(-1.5, 1.5, 40)
    owner = np.repeat(np.arange(40), 5)
    x = np.stack([stage[owner], np.sin(stage[owner]), rng.normal(size=200)], 1)
    x[:, :2] += rng.normal(0, 0.5, (200, 2))
    lived = np.exp(3 - 0.8 * stage + rng.normal(0, 0.25, 40))
    seen = rng.uniform(5, 120, 40)
    head = {
        "patient": [f"patient {i}" for i in owner],
        "time": np.minimum(lived, seen)[owner].round(1),
        "event": (lived <= seen).astype(int)[owner],
    }
    return pd.DataFrame({**head, "cell.a": x[:, 0], "cell.b": x[:, 1], "dye.a": x[:, 2]})


TABLES = ("classes", "values", "lives")


@pytest.fixture(scope="module")
def fitted(request: pytest.FixtureRequest) -> dict[str, tuple[Study, Report]]:
    """A run with every comparison, of each task."""
    found = {}
    for kind in TABLES:
        study = Study(
            settings(max_steps=40, baselines=True, repeats=3, bound="published", log_y="no"),
            request.getfixturevalue(kind),
            CPU,
        )
        found[kind] = study, run(study)
    return found


# --- rows ---------------------------------------------------------------------------------------


def test_whole_groups_are_held_out_and_fewer_rows_are_among_more(classes: pd.DataFrame) -> None:
    studies = [Study(settings(train_rows=n), classes, CPU) for n in (0, 40, 12)]
    group = studies[0].seen.group
    assert not set(group[studies[0].learnt]) & set(group[studies[0].test])
    assert len(set(group[studies[0].learnt])) == 3
    for more, fewer in pairwise(studies):
        assert set(fewer.learnt) < set(more.learnt)
        assert np.array_equal(fewer.test, more.test)
        assert len(np.unique(fewer.seen.target[fewer.learnt])) == 2
    assert [len(s.learnt) for s in studies[1:]] == [40, 12]
    other = Study(settings(seed=1), classes, CPU)
    assert not np.array_equal(other.test, studies[0].test)


def test_rows_are_drawn_class_by_class_without_groups(classes: pd.DataFrame) -> None:
    study = Study(settings(train_share=0.3), classes.drop(columns="group"), CPU)
    shares = [study.seen.target[rows].mean() for rows in (study.learnt, study.test)]
    assert shares[0] == pytest.approx(shares[1], abs=0.02)
    assert len(study.learnt) == pytest.approx(0.3 * 180, abs=1)
    one = Study(settings(), classes.assign(group="all"), CPU)
    assert any("one group only" in note for note in one.notes)
    assert len(one.learnt) == pytest.approx(90, abs=1)


def test_patients_are_held_out_whole_and_censored_ones_are_not_learnt_from(
    lives: pd.DataFrame,
) -> None:
    study = Study(settings(bound="published"), lives, CPU)
    seen = study.seen
    assert not set(seen.patient[study.learnt]) & set(seen.patient[study.test])
    assert seen.event[study.learnt].all()
    assert not seen.event[study.test].all()
    assert any("last seen alive: their rows are not learnt from" in n for n in study.notes)
    held = list(dict.fromkeys(seen.patient[study.test].tolist()))
    assert study.words["patients"] == [seen.patients[p] for p in held]
    late = Study(settings(), lives, CPU)
    assert not late.seen.event[late.learnt].all()
    assert not any("not learnt from" in n for n in late.notes)
    late.begin(0, 0, None)
    assert int(late.learner.model.censored.sum()) == int((~late.seen.event[late.learnt]).sum())
    simple = Study(settings(bound="stochastic", model="dfgp-wp"), lives, CPU)
    assert not simple.seen.event[simple.learnt].all()


def test_views_and_neurons(classes: pd.DataFrame, values: pd.DataFrame) -> None:
    assert Study(settings(), classes, CPU).words["neurons"] == ["shape", "colour", "noise"]
    some = Study(settings(views="noise, shape"), classes, CPU)
    assert some.words["neurons"] == ["shape", "noise"]
    assert some.words["views"] == ["shape", "colour", "noise"]
    more = Study(settings(neurons=4), classes, CPU)
    assert more.words["neurons"] == ["shape 1", "colour 1", "noise 1", "shape 2"]
    alone = values.rename(columns=lambda c: c.replace(".", "_"))
    study = Study(settings(), alone, CPU)
    assert study.words["neurons"] == ["features 1", "features 2", "features 3"]
    for one in (some, more, study):
        one.begin(0, 0, None)
        assert one.snapshot()["hidden"].shape[1] == len(one.words["neurons"])
    assert Study(settings(model="sgp"), classes, CPU).words["neurons"] == []


def test_components_are_of_the_rows_that_are_learnt_from(classes: pd.DataFrame) -> None:
    study = Study(settings(components=2), classes, CPU)
    shape, colour, _ = study.looks.of(study.seen.x[study.learnt], CPU)
    assert shape.shape[1] == colour.shape[1] == 2
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
        ("classes", lambda t: t, {"train_rows": 4}, "Only 4 rows are left to learn from"),
        ("classes", lambda t: t, {"task": "survival"}, "learns a column 'time'"),
        ("values", lambda t: t.assign(y=t["y"] - 3), {"log_y": "yes"}, "never below zero"),
        ("values", lambda t: t.assign(y=[1.0] * 9 + [None] * 151), {}, "Only 9 rows say what"),
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
        ({"model": "student-t", "task": "classification"}, "learns values and no classes"),
        ({"model": "sgp", "bound": "stochastic"}, "networks of two layers, and sgp has one"),
        ({"task": "classification", "log_y": "yes"}, "classes have no logarithm"),
        ({"task": "survival", "positive": "event"}, "'positive' names a class"),
        ({"inducing_points": 1}, "one point makes no function"),
    ],
)
def test_settings_that_do_not_fit_together_are_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        settings(**given)


def test_what_settings_leave_open_follows_from_what_is_learnt(
    classes: pd.DataFrame, values: pd.DataFrame, lives: pd.DataFrame
) -> None:
    free = {"inducing_points": 0}
    found = [Study(settings(**free), table, CPU).settings for table in (classes, values, lives)]
    assert [s.task for s in found] == ["classification", "regression", "survival"]
    assert [s.bound for s in found] == ["published", "published", "stochastic"]
    assert [s.inducing_points for s in found] == [20, 10, 10]
    assert [s.inducing_inputs for s in found] == ["learnt", "fixed", "fixed"]
    assert [s.log_y for s in found] == ["no", "yes", "no"]
    plain = Study(settings(), values.assign(y=np.log(values["y"])), CPU)
    assert plain.settings.log_y == "no"
    assert Study(settings(model="sgp"), lives, CPU).settings.bound == "published"
    chosen = {"bound": "closed", "log_y": "no", "inducing_inputs": "learnt"}
    own = Study(settings(**chosen), values, CPU).settings
    assert {name: getattr(own, name) for name in chosen} == chosen


def test_a_view_in_which_nothing_varies_teaches_nothing_and_breaks_nothing(
    classes: pd.DataFrame,
) -> None:
    flat = classes.assign(**{"noise.a": 1.0, "noise.b": 2.0})
    study = Study(settings(components=1), flat, CPU)
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
    neurons = len(study.words["neurons"])
    assert arrays["influence"].shape == (neurons,)
    assert arrays["hidden"].shape == (len(arrays["shown"]), neurons)
    assert np.isfinite(arrays["predicted"]).all()
    assert (arrays["km_time"].size > 0) == (kind == "lives")
    assert len(arrays["patient_time"]) == len(study.words["patients"])


@pytest.mark.parametrize("bound", ["published", "closed", "stochastic"])
def test_every_bound_trains(classes: pd.DataFrame, bound: str) -> None:
    curve = [
        e.elbo
        for e in train(Study(settings(bound=bound, adam_steps=8), classes, CPU))
        if isinstance(e, Progress)
    ]
    assert curve[-1] > curve[0]


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
            study.begin(0, 0, None)
            curves.append([])
            for _ in range(4):
                curves[-1].append(study.step().elbo)
                if often:
                    study.snapshot()
        assert curves[0] == curves[1]


# --- what was learnt ----------------------------------------------------------------------------


def test_classes_are_learnt(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, report = fitted["classes"]
    rate = study.seen.target[study.test].mean()
    assert value(report, "F1") > 0.75
    prior = rate * np.log(rate) + (1 - rate) * np.log(1 - rate)
    assert value(report, "mean log probability (nats)") > prior
    share = dict(zip(study.words["neurons"], report.arrays["influence"]))
    assert share["noise"] < 0.1
    assert sum(share.values()) == pytest.approx(1)
    told, truth = report.arrays["test_predicted"], report.arrays["test_truth"]
    assert truth.tolist() == study.seen.target[study.test].tolist()
    named = told >= 0.5
    right = (named & (truth == 1)).sum()
    assert value(report, "precision") == pytest.approx(right / named.sum())
    at_half = report.arrays["pr"][0][:, 50]
    assert at_half == pytest.approx([0.5, value(report, "precision"), value(report, "recall")])
    assert report.arrays["reliability"][2].sum() == len(truth)


def test_what_more_data_would_remove_is_as_sampled(
    fitted: dict[str, tuple[Study, Report]],
) -> None:
    study, report = fitted["classes"]
    a = report.arrays
    views = study.looks.of(study.seen.x[study.test], study.device)
    mean, variance = study.learner.model.latent(views)
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(20_000, len(mean), generator=generator, dtype=torch.float64)
    wide = (1 + study.learner.model.noise.detach()).sqrt()
    p = torch.special.ndtr((mean + variance.sqrt() * draws) / wide)

    def entropy(p: torch.Tensor) -> torch.Tensor:
        return torch.special.entr(p) + torch.special.entr(1 - p)

    whole = entropy(p.mean(0))
    np.testing.assert_allclose(a["test_entropy"], whole, atol=0.01)
    np.testing.assert_allclose(a["test_information"], whole - entropy(p).mean(0), atol=0.02)
    assert not len(a["test_std_model"])
    values = fitted["values"][1].arrays
    squares = values["test_std_model"] ** 2 + values["test_std_noise"] ** 2
    np.testing.assert_allclose(squares, values["test_std"] ** 2)
    assert (values["test_std_model"] > 0).all()
    assert not len(values["test_entropy"])


def test_values_are_learnt_and_intervals_hold_them(
    fitted: dict[str, tuple[Study, Report]], values: pd.DataFrame
) -> None:
    _, report = fitted["values"]
    assert value(report, "NMSE") < 0.4
    a = report.arrays
    inside = (a["test_low"] <= a["test_truth"]) & (a["test_truth"] <= a["test_high"])
    assert inside.mean() == pytest.approx(a["coverage"][1, 2])
    assert inside.mean() > 0.8
    log = Study(settings(log_y="yes", max_steps=60), values, CPU)
    other = run(log)
    assert value(other, "NMSE") < 0.4
    assert value(other, "NLPD") < value(report, "NLPD")  # the noise is multiplicative
    assert (other.arrays["test_low"] > -1).all()
    errors = (other.arrays["test_truth"] - other.arrays["test_predicted"]) ** 2
    assert errors.mean() / other.arrays["test_truth"].var() == pytest.approx(value(other, "NMSE"))


def test_a_density_of_the_logarithm_is_told_as_one_of_the_value(values: pd.DataFrame) -> None:
    """By hand: y = exp(s) - 1 with s Gaussian has p(y) = N(s) / (1 + y)."""
    study = Study(settings(log_y="yes"), values, CPU)
    report = run(study)
    mean, variance = study.ask(study.seen.x[study.test])
    y = study.seen.target[study.test]
    density = np.exp(-0.5 * (np.log1p(y) - mean) ** 2 / variance)
    density /= np.sqrt(2 * np.pi * variance) * (1 + y)
    assert value(report, "NLPD") == pytest.approx(-np.log(density).mean())


def test_lives_are_learnt(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, report = fitted["lives"]
    assert value(report, "concordance") > 0.7
    assert value(report, study.words["score"]) < 0.7
    a = report.arrays
    died = a["patient_event"] == 1
    assert len(a["pit"]) == died.sum()
    assert (a["patient_low"] < a["patient_pred"]).all()
    assert (a["patient_pred"] < a["patient_high"]).all()
    own = study.seen.patients.index(study.words["patients"][3])
    mean, _ = study.ask(study.seen.x[study.seen.patient == own])
    assert a["patient_pred"][3] == pytest.approx(np.exp(mean.mean()))
    for curve in (*a["km_true"], a["km_predicted"], a["km_expected"]):
        assert curve[0] == 1
        assert (np.diff(curve) <= 1e-12).all()


def test_censored_patients_make_predicted_times_longer(lives: pd.DataFrame) -> None:
    """Nobody is seen for longer than so: who lives on teaches only where that is learnt."""
    short = lives.assign(event=(lives["event"] == 1) & (lives["time"] < 15))
    short["event"] = short["event"].astype(int)
    short["time"] = short["time"].clip(upper=15)
    found = []
    for bound in ("closed", "stochastic"):
        study = Study(settings(bound=bound, max_steps=150, learning_rate=0.03), short, CPU)
        run(study)
        found.append(study.snapshot()["patient_pred"])
    assert np.median(found[1]) > 1.2 * np.median(found[0])


# --- beside others ------------------------------------------------------------------------------


def test_other_methods_stand_beside_it(fitted: dict[str, tuple[Study, Report]]) -> None:
    wanted = {
        "classes": ["DFGP-WP", "SGP", "SVM, averaged kernels", "best single view"],
        "values": ["DFGP-WP", "SGP", "Student-t", "ridge, averaged kernels", "linear"],
        "lives": ["DFGP-WP", "SGP", "Student-t", "ridge, averaged kernels", "linear"],
    }
    for kind, (study, report) in fitted.items():
        methods = study.words["methods"]
        assert methods == ["this run", *wanted[kind]]
        score = study.words["score"]
        table = report.arrays["scores"]
        assert table.shape == (len(methods), 3)
        assert np.isfinite(table).all()
        own = [value(report, score, m) for m in methods]
        assert table[:, 0].tolist() == own
        assert value(report, f"{score}, 3 splits", "DFGP") == pytest.approx(table[0].mean())
        p = report.arrays["t_test"]
        assert np.isnan(p[0])
        assert ((p[1:] >= 0) & (p[1:] <= 1)).all()
        if kind == "classes":
            assert (table[:4] > 0.6).all()
        else:
            assert (table < 1).all()


def test_published_figures_are_named_as_of_other_data(
    fitted: dict[str, tuple[Study, Report]],
) -> None:
    theirs = {
        kind: [m.method for m in report.metrics if m.source == "published"]
        for kind, (_, report) in fitted.items()
    }
    assert "DFGP (published, osteosarcoma films)" in theirs["classes"]
    assert "Student-t (published, SO2 in Belfast)" in theirs["values"]
    assert theirs["lives"] == []


def test_exact_methods_are_left_out_of_many_rows(
    values: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.studies.events_rows.EXACT_ROWS", 50)
    assert "Student-t" not in Study(settings(baselines=True), values, CPU).words["methods"]


# --- questions ----------------------------------------------------------------------------------


def test_every_question_is_answered_as_the_catalog_promises(
    fitted: dict[str, tuple[Study, Report]],
) -> None:
    for study, report in fitted.values():
        index = int(report.arrays["shown"][5])
        asked = {"names": study.seen.names[0], "index": index, "name": study.seen.patients[1]}
        for question, specs in ENTRY.explore.items():
            if question == "patient" and study.seen.task != "survival":
                continue
            found = study.explore(question, **asked)
            assert {s.name for s in specs} == set(found), question
            for spec in specs:
                assert found[spec.name].ndim == 1


def test_views_on_and_off(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, _ = fitted["classes"]
    both, noise = (study.explore("views", names=n) for n in ("shape,colour", ["noise"]))
    assert both["on"].tolist() == [1, 1, 0]
    assert both["influence"][2] == 0
    assert both["influence"].sum() == pytest.approx(1)
    assert both["score"] > noise["score"] + 0.2
    assert both["averaged"] > noise["averaged"] + 0.2
    again = study.explore("views", names="colour, shape")
    assert again["score"] == both["score"]
    for names, said in (("shape,smell", "no view 'smell'"), ("", "nothing to look through")):
        with pytest.raises(BadInput, match=said):
            study.explore("views", names=names)


def test_a_row_is_told_as_in_the_snapshot(fitted: dict[str, tuple[Study, Report]]) -> None:
    for study, report in fitted.values():
        a = report.arrays
        found = study.explore("row", index=str(a["shown"][7]))
        assert found["predicted"][0] == pytest.approx(a["predicted"][7])
        assert found["truth"][0] == a["truth"][7]
        np.testing.assert_allclose(found["hidden"], a["hidden"][7])
    with pytest.raises(BadInput, match="got '9999'; send the number of a row"):
        study.explore("row", index=9999)
    with pytest.raises(BadInput, match="Nothing is known of 'weather'"):
        study.explore("weather")


def test_a_patient_is_told_as_in_the_snapshot(fitted: dict[str, tuple[Study, Report]]) -> None:
    study, report = fitted["lives"]
    found = study.explore("patient", name=study.words["patients"][2])
    assert found["predicted"][0] == pytest.approx(report.arrays["patient_pred"][2])
    assert found["low"][0] == pytest.approx(report.arrays["patient_low"][2])
    assert np.log(found["rows"]).mean() == pytest.approx(np.log(found["predicted"][0]))
    at = np.searchsorted(found["curve_time"], found["predicted"][0])
    assert found["curve"][at] == pytest.approx(0.5, abs=0.1)
    with pytest.raises(BadInput, match="no patient 'nobody'"):
        study.explore("patient", name="nobody")
    with pytest.raises(BadInput, match="learnt no survival"):
        fitted["values"][0].explore("patient", name="1")


# --- the fitted model ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("classes", {"components": 2, "views": "shape,noise"}),
        ("classes", {"model": "sgp"}),
        ("values", {"model": "student-t", "log_y": "yes"}),
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
    asked = {"names": study.seen.names[0]}
    first, second = study.explore("views", **asked), back.explore("views", **asked)
    assert first["score"] == second["score"]


def test_predictions_keep_the_rows_and_name_what_they_add(
    fitted: dict[str, tuple[Study, Report]],
    classes: pd.DataFrame,
    values: pd.DataFrame,
    lives: pd.DataFrame,
) -> None:
    study, report = fitted["classes"]
    rows = report.arrays["test_index"][[3, 0, 8]]
    bare = classes.iloc[rows][classes.columns[6::-1]].set_index(pd.Index([5, 3, 9]))
    told = study.predict(bare)
    assert list(told.index) == [5, 3, 9]
    assert list(told)[7:] == ["label", "probability", "p(other)", "p(event)"]
    assert told["p(event)"].tolist() == pytest.approx(report.arrays["test_predicted"][[3, 0, 8]])
    best = np.where(told["p(event)"] >= 0.5, "event", "other")
    assert told["label"].tolist() == best.tolist()
    assert (told["probability"] >= 0.5).all()
    assert "predicted" in study.predict(classes.head(3))
    with pytest.raises(BadInput, match=r"lacks the column 'colour\.a'"):
        study.predict(classes.drop(columns="colour.a"))
    with pytest.raises(BadInput, match=r"'colour\.a', row 3: there is no finite number"):
        study.predict(classes.head(4).assign(**{"colour.a": [0.0, np.nan, 1.0, 2.0]}))
    study, report = fitted["values"]
    told = study.predict(values.drop(columns="y"))
    assert list(told)[7:] == ["mean", "std", "low", "high"]
    rows = report.arrays["test_index"]
    assert told["mean"].to_numpy()[rows] == pytest.approx(report.arrays["test_predicted"])
    study, report = fitted["lives"]
    told = study.predict(lives.drop(columns=["time", "event"]))
    assert list(told)[4:] == ["mean", "std", "median", "low", "high"]
    assert (told.groupby("patient")["median"].nunique() == 1).all()
    own = told.groupby("patient", sort=False)["median"].first()
    shown = own[study.words["patients"]].to_numpy()
    assert shown == pytest.approx(report.arrays["patient_pred"])


def test_nothing_is_warned_of(lives: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = Study(settings(max_steps=3), lives, CPU)
        notes = [e.text for e in train(study) if isinstance(e, Note)]
    assert not any("jitter" in note for note in notes)
