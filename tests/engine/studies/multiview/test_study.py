"""The multiview study: what it makes of a table, what it learns, what it answers once fitted."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from scant.events import Note
from scant.learners import views
from scant.studies.multiview.entry import ENTRY
from scant.studies.multiview.learners import notes
from scant.studies.multiview.study import Study
from scant.training.loop import train
from tests.engine.studies.multiview.views import CPU, settings
from tests.engine.studies.studying import run, value

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
    assert any("only one group" in note for note in one.notes)
    assert len(one.data.train) == pytest.approx(90, abs=1)


def test_patients_are_held_out_whole_and_censored_ones_are_not_learnt_from(
    lives: pd.DataFrame,
) -> None:
    study = Study(settings(bound="published"), lives, CPU)
    observed = study.data.observed
    assert not set(observed.patient[study.data.train]) & set(observed.patient[study.data.test])
    assert observed.event[study.data.train].all()
    assert not observed.event[study.data.test].all()
    assert any("are censored: the model does not learn from their rows" in n for n in study.notes)
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


def test_what_settings_leave_open_follows_from_what_is_learnt(
    classes: pd.DataFrame, values: pd.DataFrame, lives: pd.DataFrame
) -> None:
    free = {"n_inducing": 0}
    results = [Study(settings(**free), table, CPU).settings for table in (classes, values, lives)]
    assert [s.task for s in results] == ["classification", "regression", "survival"]
    assert [s.bound for s in results] == ["published", "published", "stochastic"]
    assert [s.n_inducing for s in results] == [50, 10, 10]
    assert [s.inducing_init for s in results] == ["learned", "fixed", "fixed"]
    assert [s.log_target for s in results] == ["no", "yes", "no"]
    plain = Study(settings(), values.assign(y=np.log(values["y"])), CPU)
    assert plain.settings.log_target == "no"
    assert Study(settings(model="sgp"), lives, CPU).settings.bound == "published"
    chosen = {"bound": "closed", "log_target": "no", "inducing_init": "learned"}
    own = Study(settings(**chosen), values, CPU).settings
    assert {name: getattr(own, name) for name in chosen} == chosen


def test_a_view_in_which_nothing_varies_teaches_nothing_and_breaks_nothing(
    classes: pd.DataFrame,
) -> None:
    flat = classes.assign(**{"noise.a": 1.0, "noise.b": 2.0})
    study = Study(settings(n_components=1), flat, CPU)
    assert any("Nothing varies among the training rows in noise" in note for note in study.notes)
    run(study)
    assert np.isfinite(study.snapshot()["predicted"]).all()


# --- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["dfgp", "dfgp-wp"])
def test_kernels_as_published_reach_the_model_and_what_is_stored(
    values: pd.DataFrame, model: str
) -> None:
    chosen = {"ard": False, "share_kernel": True, "output_ard": False, "output_scale": False}
    study = Study(settings(model=model, neurons=4, views="shape", **chosen), values, CPU)
    run(study)
    hidden, output = study.learner.model.hidden_layer, study.learner.model.output
    assert hidden.log_lengthscale.shape == (1, 1)
    assert len(output.precision) == 4
    assert output.precision.unique().numel() == 1
    assert float((output.outputscale if model == "dfgp" else output.precision[0]).detach()) == 1
    back = Study.restore(study.settings, *study.fitted(), CPU)
    assert np.array_equal(back.snapshot()["predicted"], study.snapshot()["predicted"])


def test_a_full_metric_reaches_the_model_and_what_is_stored(values: pd.DataFrame) -> None:
    study = Study(settings(output_metric=True, bound="closed"), values, CPU)
    run(study)
    assert float(study.learner.model.output.tilt.detach().tril(-1).abs().max()) > 0
    back = Study.restore(study.settings, *study.fitted(), CPU)
    assert np.array_equal(back.snapshot()["predicted"], study.snapshot()["predicted"])


def test_the_preset_of_survival_has_a_quarter_of_the_components_as_neurons(
    lives: pd.DataFrame,
) -> None:
    preset = ENTRY.presets["as published, survival"]
    assert preset["neurons"] == preset["n_components"] // 4
    study = Study(ENTRY.settings.parse({**preset, "max_steps": 3, "baselines": False}), lives, CPU)
    report = run(study)
    assert study.learner.model.hidden_layer.mean.shape == (12, 10)
    assert np.isfinite(value(report, "NMSE by patient"))


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
    assert notes(Study(settings(baselines=True), values, CPU).data) == ()
    monkeypatch.setattr("scant.studies.multiview.metadata.MOST_PROCESS", 50)
    monkeypatch.setattr(views, "MAX_ROWS", 30)
    study = Study(settings(baselines=True), values, CPU)
    assert "Student-t" not in study.metadata["methods"]
    n = len(study.data.train)
    some, gone = notes(study.data)
    assert some.startswith(f"ridge, averaged kernels and linear learn from 30 of {n} rows, drawn")
    assert gone.startswith("Student-t is left out of the comparison")
    assert len(np.unique(views.some(study.data.train, 0))) == 30
    dead = Study(settings(baselines=True), lives, CPU)
    known = int(dead.data.observed.event[dead.data.train].sum())
    assert any(f"the {known} of" in note for note in notes(dead.data))


def test_nothing_is_warned_of(lives: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = Study(settings(max_steps=3), lives, CPU)
        sent = [e.text for e in train(study) if isinstance(e, Note)]
    assert not any("jitter" in note for note in sent)
