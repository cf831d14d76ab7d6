"""Contracts of `scant.studies.protocol.Study`, kept by every study, model and kind of table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import scant
from scant.errors import BadInput
from scant.evaluate.scores import scores_of
from scant.events import Event, Finished, Phase, Progress, Results
from scant.studies import STUDIES, entry
from scant.studies.protocol import study_class
from scant.training.control import Control
from scant.training.loop import train
from tests.engine.studies import cases, studying
from tests.engine.studies.cases import CASES, CPU, FIRST
from tests.engine.studies.studying import resumed

slow = {name for name in CASES if name not in FIRST.values()}  # of each study one case is quick


def every_case(*quick: str) -> Any:
    """All cases; beside the first of each study, those of these studies are of the must tier."""
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(name, marks=pytest.mark.slow if own.study not in quick else ())
            if name in slow
            else name
            for name, own in CASES.items()
        ],
    )


every_study = pytest.mark.parametrize("study", STUDIES)
RETRAINED = {"imbalance", "hide", "retrain", "scarcity", "shots"}  # of the first cases alone
# Questions that a kind of table has no answer to.
UNASKED = {"births": "polygon", "counts": "polygon", "features": "draw", "classes": "patient",
           "values": "patient", "pool": "patches", "three": "patches"}  # fmt: skip


def questions(case: str) -> list[str]:
    own = CASES[case]
    skipped = {UNASKED.get(own.table), "model"}  # which is a file of a person's labels
    skipped |= RETRAINED if case in slow else set()
    return [question for question in entry(own.study).explore if question not in skipped]


def of_genes(study: Any, arrays: dict[str, np.ndarray]) -> None:
    assert arrays["mean"].shape == arrays["std_y"].shape == (6, 6, 64)
    assert np.isfinite(arrays["mean"]).all()
    assert np.isfinite(arrays["shared_mean"]).all()
    assert (arrays["std_y"] > arrays["std_f"]).all()
    assert arrays["share"].sum(1) == pytest.approx(np.ones(6))
    assert np.diag(arrays["K"]) == pytest.approx(np.ones(6))
    places = (6, 2) if study.settings.model in ("hmogp-lv", "lvmogp") else (0, 0)
    assert arrays["latent"].shape == arrays["latent_std"].shape == places


def of_omniglot(study: Any, arrays: dict[str, np.ndarray]) -> None:
    c = int(study.data.sizes.sum())
    assert arrays["shown_B"].shape[1:] == arrays["correlation"].shape == (c, c)
    assert np.diag(arrays["correlation"]) == pytest.approx(np.ones(c))
    assert sorted(arrays["order"].tolist()) == list(range(c))
    assert arrays["global"].shape == (2, 2)
    assert (arrays["test_p"] > 0).all()
    assert (arrays["test_information"] <= arrays["test_entropy"] + 1e-9).all()
    assert np.nansum(arrays["confusion"], axis=1) == pytest.approx(np.ones(c))
    assert arrays["confusion_across"].sum(1) == pytest.approx(np.ones(2))
    if study.settings.model in ("g-m", "g-a"):  # whose outputs share nothing
        assert arrays["global"][0, 1] == 0.0
    if study.metadata["size"]:
        assert arrays["patches"].shape[1:] == (3, 3)
        assert (np.diff(arrays["patches_weight"]) <= 0).all()


def of_mitosis(study: Any, arrays: dict[str, np.ndarray]) -> None:
    q = study.metadata["n_shared"] + study.metadata["n_private"]
    assert arrays["latent_mean"].shape == arrays["latent_std"].shape == (len(study.data.train), q)
    assert arrays["relevance"].shape == (q,)
    assert (np.diff(arrays["latent_class"]) >= 0).all()
    shared, private, whole = arrays["covariance"]
    np.testing.assert_allclose(shared + private, whole, atol=2e-3)
    apart = arrays["covariance_class"][:, None] != arrays["covariance_class"]
    assert (private[apart] == 0).all()
    assert (private[~apart] > 0).any() == (study.settings.model == "sclvm")
    assert arrays["test_p"].shape == (len(study.data.test), study.data.n_classes)
    assert arrays["test_p"].sum(1) == pytest.approx(np.ones(len(study.data.test)))
    if study.data.image:
        assert arrays["generated"].shape == (16, 10, 10)
        assert arrays["real_class"].tolist() == arrays["generated_class"].tolist()
        assert 0 <= arrays["generated"].min() <= arrays["generated"].max() <= 1
    else:
        assert arrays["generated"].size == arrays["real"].size == 0


def of_multiview(study: Any, arrays: dict[str, np.ndarray]) -> None:
    neurons = len(study.metadata["neurons"])
    assert arrays["influence"].shape == (neurons,)
    assert arrays["hidden"].shape == (len(arrays["shown"]), neurons)
    assert np.isfinite(arrays["predicted"]).all()
    assert (arrays["km_time"].size > 0) == (study.data.observed.task == "survival")
    assert len(arrays["patient_time"]) == len(study.metadata["patients"])


OWN = {"genes": of_genes, "omniglot": of_omniglot, "mitosis": of_mitosis, "multiview": of_multiview}


@pytest.mark.parametrize("case", [name for study, name in FIRST.items() if study != "clamp"])
def test_own_results_come_before_other_methods_and_change_nothing(case: str) -> None:
    _, alone, _ = cases.fitted(case)  # without anybody who waits for them
    control, told = Control(), list[Event]()
    control.tell = told.append
    for event in train(CASES[case].make(), control):
        told.append(event)
    [early] = [event.report for event in told if isinstance(event, Results)]
    end = told[-1]
    assert isinstance(end, Finished)
    assert end.report.metrics == alone.metrics
    for name in alone.arrays:
        ours, theirs = end.report.arrays[name], alone.arrays[name]
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    own = {(m.name, m.value) for m in early.metrics if m.source == "run"}
    assert own
    assert own <= {(m.name, m.value) for m in end.report.metrics}
    assert early.arrays.keys() == end.report.arrays.keys()
    phases = [k for k, event in enumerate(told) if isinstance(event, Phase) and event.total]
    first = next(k for k, event in enumerate(told) if isinstance(event, Results))
    assert all(k > first for k in phases if "comparing" in told[k].name)


@every_case("omniglot", "multiview")
def test_a_run_gives_what_the_catalog_promises(case: str) -> None:
    study, report, events = cases.fitted(case)
    name, arrays, shown = CASES[case].study, report.arrays, study.snapshot()
    spec = entry(name)
    steps = [e for e in events if isinstance(e, Progress) and e.restart == 0]
    if name != "clamp" and study.settings.values().get("optimizer") != "natural":
        first, *rest = steps
        assert any(e.elbo > first.elbo or e.score > first.score for e in rest)
    for promised, given in ((spec.report, arrays), (spec.snapshot, shown)):
        assert {a.name for a in promised} == set(given)
        for array in promised:
            assert given[array.name].ndim == len(array.shape.split()), array.name
    for question in questions(case):
        told = study.explore(question, **cases.query(study, question))
        assert {a.name for a in spec.explore[question]} == set(told), question
    assert all(np.isfinite(m.value) for m in report.metrics if m.source == "run")
    if name in OWN:
        OWN[name](study, arrays)


@every_case()
def test_a_restored_study_is_the_same(case: str) -> None:
    study, *_ = cases.fitted(case)
    tensors, meta = study.fitted()
    own = {k: v.clone() for k, v in tensors.items()}
    back = study_class(CASES[case].study).restore(study.settings, own, meta, CPU)
    rows = CASES[case].rows().head(30)
    pd.testing.assert_frame_equal(study.predict(rows), back.predict(rows))
    for question in questions(case):
        given = cases.query(study, question)
        one, other = study.explore(question, **given), back.explore(question, **given)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=f"{question}: {name}")


@every_case()
def test_a_resumed_run_ends_bit_by_bit_where_an_uninterrupted_one_ends(case: str) -> None:
    study = CASES[case].make()
    steps = 2 if CASES[case].study == "clamp" else 5
    resumed(CASES[case].make, steps if study.restarts == 1 else study.max_steps + 2)


@every_case()
def test_snapshots_and_other_peoples_draws_change_no_run(case: str) -> None:
    curves = []
    for often in (False, True):
        torch.manual_seed(int(often))
        study = CASES[case].make()
        study.start_restart(0, 0, None)
        curve = []
        for _ in range(3):
            curve.append(study.step().elbo)
            if often:
                study.snapshot()
        curves.append(curve)
    assert curves[0] == curves[1]


@every_study
def test_predictions_keep_the_rows_whatever_their_order(study: str) -> None:
    own, *_ = cases.fitted(FIRST[study])
    rows = CASES[FIRST[study]].rows().head(6)
    turned = rows.iloc[::-1].assign(note="kept")
    told, whole = own.predict(turned), own.predict(rows)
    assert list(told.index) == list(turned.index)
    assert list(told)[: len(turned.columns)] == list(turned)
    assert (told["note"] == "kept").all()
    pd.testing.assert_frame_equal(told[list(whole)].iloc[::-1], whole, rtol=1e-6)


REFUSED: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "aggregation": [
        ("retrain", {"n": 1}, "Between 2 and"),
        ("box", {"lo": [1], "hi": [2]}, "A box needs a lower and an upper bound of age, year"),
        ("box", {"lo": [1, 2], "hi": [2, 3], "task": "x"}, "There is no task 'x'"),
    ],
    "redshift": [
        ("without", {"off": ["x"]}, "no input 'x'"),
        ("without", {"off": [f"mag_{b}" for b in "ugriz"]}, "At least one input"),
        ("density", {"row": 10**6}, "no test row"),
    ],
    "genes": [
        ("curves", {"outputs": ""}, "Ask for 1 to 12 outputs at once; got 0"),
        ("curves", {"outputs": ["gene A"] * 13}, "Ask for 1 to 12 outputs at once; got 13"),
        ("hide", {"output": "gene A", "replica": "x"}, "There is no replica 'x' of gene A"),
        ("new", {"output": "gene Z"}, "There is no output 'gene Z'; the outputs are"),
    ],
    "omniglot": [
        ("draw", {"pixels": "1,2"}, "got 2 and the model's images have 12 x 12 = 144"),
        ("draw", {"pixels": "=cmd"}, "no list of numbers"),
        ("draw", {"pixels": ["nan"] * 144}, "all finite"),
        ("response", {"row": "x"}, "send a whole number from 0 to 69"),
        ("response", {"row": 0, "label": "Anu/Bel 1"}, "no class 'Bel 1' of 'Anu'"),
        ("response", {"row": 0, "output": "Cor"}, "no output 'Cor'"),
        ("block", {"outputs": "Cor"}, "no output 'Cor'"),
        ("block", {"latent": 99}, "from 0 to 2"),
        ("shots", {"k": 0}, "from 1 to 8"),
    ],
    "mitosis": [
        ("place", {"pixels": "1,2"}, "got 2 and the model's images have 10 x 10 = 100"),
        ("place", {"pixels": "a,b"}, "no list of numbers"),
        ("place", {"pixels": ["inf"] * 100}, "all finite"),
        ("row", {"index": "x"}, "send a whole number from 0 to"),
        ("row", {"index": 0, "of": "weather"}, "of 'test' or of 'shown'"),
        ("decode", {"x": [1.0]}, "got 1 and the latent space has as many dimensions"),
        ("decode", {"x": [0, 0, 0], "label": "cancer"}, "no class 'cancer'"),
        ("generate", {"label": "other", "count": 0}, "from 1 to 64"),
        ("redraw", {"label": "other", "count": 99}, "from 1 to 16"),
        ("imbalance", {"ratio": 0.2}, "ask for 1 to 300"),
        ("imbalance", {"ratio": "many"}, "no list of numbers"),
    ],
    "multiview": [
        ("views", {"names": "shape,smell"}, "no view 'smell'"),
        ("views", {"names": ""}, "no view named"),
        ("row", {"index": 9999}, "got '9999'; send the number of a row"),
        ("patient", {"name": "1"}, "not trained on survival"),
        ("scarcity", {"n": 4}, "send a whole number from 1 to 3"),
    ],
    "clamp": [
        ("ask", {"labels": [[999, 0]]}, "labels: got '999'; send a whole number from 0 to 239"),
        ("ask", {"labels": [[1, 2]]}, "class: got '2'"),
        ("ask", {"labels": "x"}, "list of pairs"),
        ("ask", {"labels": [], "batch": 0}, "batch: got '0'"),
        ("patch", {}, "row: got 'None'"),
        ("picture", {"row": -1}, "row: got '-1'"),
    ],
}


@every_study
def test_what_cannot_be_asked_is_refused(study: str) -> None:
    own, *_ = cases.fitted(FIRST[study])
    for question, given, said in [*REFUSED[study], ("weather", {}, "no question 'weather'")]:
        with pytest.raises(BadInput, match=said):
            own.explore(question, **given)
    fresh = CASES[FIRST[study]].make()
    fresh.start_restart(0, 0, None)
    if study == "mitosis":  # nothing of whose model can be asked before its end
        with pytest.raises(BadInput, match="has not ended yet"):
            fresh.predict(CASES[FIRST[study]].rows())


@pytest.mark.parametrize(
    ("study", "values", "said"),
    [
        ("omniglot", {"patch": 8, "size": 6}, "'patch' is 8, but images are resized to 6 x 6"),
        ("omniglot", {"n_classes": 1}, "a classifier needs two classes"),
        ("omniglot", {"model": "mg-m", "covariance": "dropped as published"}, "another bound"),
        ("omniglot", {"test_share": 1.0}, "must be a number at least 0 and at most 0.8"),
        ("mitosis", {"n_shared_dims": 0, "n_private_dims": 0}, "latent space needs a dimension"),
        ("mitosis", {"imbalance": 0.5}, "1 or more, or to 0"),
        ("mitosis", {"n_components": 3, "n_shared_dims": 5}, "raise 'n_components'"),
        ("mitosis", {"n_private_dims": 0}, "choose bgplvm"),
        ("mitosis", {"max_steps": 0}, "at least 1"),
        ("mitosis", {"prior": "mine"}, "one of as in training"),
        ("multiview", {"model": "student-t", "task": "classification"}, "values but no classes"),
        ("multiview", {"model": "sgp", "bound": "stochastic"}, "networks of two layers, but sgp"),
        ("multiview", {"task": "classification", "log_target": "yes"}, "have no logarithm"),
        ("multiview", {"task": "survival", "positive_class": "event"}, "'positive_class' names"),
        ("multiview", {"n_inducing": 1}, "a function needs two inducing points"),
        ("genes", {"model": "dhgp", "batch_size": 2}, "dhgp takes all outputs at once"),
        ("genes", {"batch_size": 2}, "L-BFGS takes all outputs at once; set it to 0"),
        ("clamp", {"class_names": "clamp"}, "give two different names"),
        ("clamp", {"start": 51}, "'start' already takes 51"),
    ],
)
def test_settings_that_do_not_fit_together(study: str, values: dict[str, Any], said: str) -> None:
    own = cases.table(CASES[FIRST[study]].table)
    with pytest.raises(BadInput, match=said):
        study_class(study)(studying.settings(study, **values), own, CPU)


def no(column: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda t: t.drop(columns=column)


def same(t: pd.DataFrame) -> pd.DataFrame:
    return t


@pytest.mark.parametrize(
    ("table", "change", "values", "said"),
    [
        (
            "births",
            same,
            {"leave_out": "third births"},
            "no task 'third births' for .* 'leave_out'",
        ),
        ("births", same, {"scarce": "deaths"}, "no task 'deaths' for the setting 'scarce'"),
        (
            "births",
            same,
            {"leave_out": "first births"},
            "is the scarce task and cannot be left out",
        ),
        ("births", same, {"likelihoods": "deaths=poisson"}, "give TASK=LIKELIHOOD"),
        ("births", same, {"likelihood": "poisson"}, "poisson likelihood of task 'first births'"),
        *(
            ("births", same, {"inference": "exact", **own}, f"but this run has {said}")
            for own, said in (
                ({"batch_size": 30}, "batch_size 30. Choose auto or variational."),
                ({"likelihood": "heteroscedastic"}, "a heteroscedastic likelihood"),
                ({"kernel": "matern32"}, "kernel matern32"),
            )
        ),
        ("genes", same, {"hidden": "gene Z/embryo 1"}, "there is no output 'gene Z'"),
        ("genes", same, {"hidden": "gene A/embryo 9"}, "gene A has no replica 'embryo 9'"),
        ("genes", same, {"hidden": "gene A"}, "write output/replica"),
        ("genes", lambda t: t[:3], {}, "Too few rows are left to learn from"),
        ("drawings", lambda t: t[t["label"] != "Bel 1"][:50].assign(label="x"), {}, "only one cl"),
        ("drawings", no("p7"), {}, "no column 'p7'"),
        ("drawings", no("p143"), {}, "143 pixels do not form a square image"),
        ("drawings", same, {"width": 7}, "do not fit 144 pixels"),
        ("features", same, {"kernel": "patch"}, "no pix"),
        (
            "drawings",
            lambda t: t.assign(p3=np.nan),
            {},
            "column 'p3', row 0: the cell has no finite",
        ),
        ("drawings", no("output"), {}, "no column 'output'"),
        ("patches", lambda t: t.assign(label="x"), {}, "only one class"),
        ("patches", lambda t: t.assign(label=["x", *["y"] * (len(t) - 1)]), {}, "'x' has 1 row, t"),
        ("patches", same, {"positive_class": "cancer"}, "classes are other, mitosis"),
        ("patches", no("p7"), {}, "no column 'p7'"),
        ("patches", no("p99"), {}, "99 pixels do not form a square image"),
        ("patches", same, {"width": 7}, "do not fit 100 pixels"),
        ("patches", lambda t: t.assign(p3=np.nan), {}, "No training row has a value in feature 4"),
        ("patches", lambda t: t.assign(p3=np.inf), {}, "column 'p3', row 0: got 'inf'"),
        ("patches", lambda t: t.assign(**{f"p{i}": 0.5 for i in range(100)}), {}, "are the same"),
        ("patches", lambda t: t[["label", "group"]], {}, "0 columns of numbers"),
        ("classes", lambda t: t.assign(label="event"), {}, "only one class, 'event'"),
        ("classes", same, {"model": "student-t"}, "learns values, but this table has"),
        ("classes", same, {"views": "shape,smell"}, "no view 'smell'"),
        ("classes", lambda t: t.assign(group=t["label"]), {}, "No split of the groups has both"),
        ("classes", same, {"training_size": 4}, "left to learn from: 4, and"),
        ("classes", same, {"task": "survival"}, "needs a column 'time'"),
        ("values", lambda t: t.assign(y=t["y"] - 3), {"log_target": "yes"}, "at least zero"),
        (
            "values",
            lambda t: t.assign(y=[1.0] * 9 + [None] * 151),
            {},
            "Too few rows have a target: 9",
        ),
        (
            "lives",
            lambda t: t.assign(event=0),
            {"bound": "closed"},
            "left to learn from: 0, and",
        ),
        (
            "pool",
            lambda t: t.assign(label=None),
            {"expert": "simulated"},
            "no labels, but a simulated expert",
        ),
        ("pool", lambda t: t.assign(label="clamp"), {"expert": "simulated"}, "only labels 'clamp'"),
        ("pool", lambda t: t.assign(label=[f"c{i % 13}" for i in range(240)]), {}, "13 classes"),
        ("pool", same, {"feature_extractor": "InceptionV3"}, "the table has no images"),
        ("pool", lambda t: t[["label", "picture"]], {}, "neither images nor feature columns"),
        ("pool", same, {"positive_class": "leak"}, "Setting 'positive_class' is 'leak'"),
        (
            "pool",
            same,
            {"test_share": 0.6, "validation_share": 0.5, "count_validation": False},
            "leave no pictures",
        ),
        (
            "pool",
            lambda t: t.assign(picture=t["label"]),
            {"test_share": 0.6},
            "No row of class 'no clam",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    table: str,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    values: dict[str, Any],
    said: str,
) -> None:
    study = next(case.study for case in CASES.values() if case.table == table)
    with pytest.raises(BadInput, match=said):
        study_class(study)(studying.settings(study, **values), change(cases.table(table)), CPU)


SMALL: dict[str, dict[str, Any]] = {
    "redshift": {"training_size": 60, "validation_size": 30, "test_size": 60},
    "aggregation": {},
    "genes": {},
    "omniglot": {},
    "mitosis": {},
    "multiview": {},
    "clamp": {"budget": 60},
}


@pytest.mark.slow("engine/scant/studies", "engine/scant/evaluate", "engine/scant/learners")
@pytest.mark.parametrize("study", SMALL)
def test_scores_of_the_comparison_are_those_of_the_report(study: str) -> None:
    values = entry(study).presets["quick"] | SMALL[study]
    run = scant.fit(study, device="cpu", **values | ({} if study == "clamp" else {"max_steps": 4}))
    end = [event for event in run if isinstance(event, Finished)][-1]
    comparison = run.study.comparison(end.report)
    c = comparison.problem
    assert len(c.x) == len(c.y)
    assert len(c.x_test) == len(c.y_test) == len(comparison.own)
    assert c.x.shape[1] == c.x_test.shape[1]
    told = {m.name: m.value for m in end.report.metrics if m.source == "run"}
    shared = [name for name in c.scores if name in told]
    assert len(shared) >= 2, c.scores
    for name in shared:
        [value] = scores_of(c, comparison.scored, [name])
        assert value == pytest.approx(told[name], rel=1e-6), name
    assert end.report.verdict.tested == len(c.y_test)
