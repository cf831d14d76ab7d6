"""A small table is cross-validated: every row held out once, and all of them judged."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

import scant
from scant import verdict
from scant.evaluate import compare
from scant.events import Note, State
from scant.learners.general import general_tools, ridge
from scant.predictive import MixturePredictive
from scant.problem import Comparison, Problem
from scant.studies import Settings, entry
from scant.studies.protocol import Study, study_class
from scant.training import loop
from scant.training.control import Control
from scant.training.folds import further_folds, pooled

RNG = np.random.default_rng(4)
X = RNG.normal(size=(100, 3))


def galaxies(**columns: object) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=["u", "g", "r"])
    return frame.assign(z=1 + X[:, 0] + 0.3 * np.sin(3 * X[:, 1]), **columns)


def made(study: str, settings: Settings, table: pd.DataFrame) -> Study:
    return study_class(study)(settings, table, torch.device("cpu"))


def folds_of(study: str, table: pd.DataFrame, **values: object) -> list[Study]:
    settings, _ = entry(study).settled(entry(study).settings.parse(values), *table.shape, {})
    first = made(study, settings, table)
    return [first, *further_folds(first, settings, table, partial(made, study))]


def test_every_row_is_held_out_once() -> None:
    folds = folds_of("redshift", galaxies())
    held = np.array([study.roles == "test" for study in folds])
    assert len(held) == 5
    assert (held.sum(0) == 1).all()
    assert all((study.roles == "validation").any() for study in folds)


@pytest.mark.parametrize("rows", range(10, 17))
def test_of_ten_rows_each_is_held_out_once(rows: int) -> None:
    folds = folds_of("redshift", galaxies()[:rows])
    assert len(folds) > 2
    assert (np.array([study.roles == "test" for study in folds]).sum(0) == 1).all()


def test_classes_have_their_share_of_every_fold() -> None:
    label = np.where(np.arange(100) % 5, "other", "rare")
    folds = folds_of("mitosis", galaxies(label=label).drop(columns="z"), baselines=False)
    held = np.array([study.roles == "test" for study in folds])
    assert (held.sum(0) == 1).all()
    assert {int((label[row] == "rare").sum()) for row in held} == {4}


def test_only_the_task_that_is_asked_about_is_folded() -> None:
    t = np.arange(50.0)
    boxes = pd.DataFrame({"t_lo": [*t, *t[:20]], "t_hi": [*t + 2, *t[:20] + 1]})
    table = boxes.assign(task=["dense"] * 50 + ["scarce"] * 20, y=RNG.normal(size=70))
    folds = folds_of("aggregation", table)
    held = np.array([study.roles == "test" for study in folds])
    assert held[:, :50].sum() == 0
    assert (held[:, 50:].sum(0) == 1).all()


@pytest.mark.parametrize(
    "columns",
    [{"split": ["test"] * 20 + ["train"] * 80}, {"group": [f"site {i % 8}" for i in range(100)]}],
    ids=["marked", "groups"],
)
def test_a_split_that_somebody_chose_stays(columns: dict[str, list[str]]) -> None:
    assert len(folds_of("redshift", galaxies(**columns))) == 1


def test_many_held_out_rows_need_no_folds() -> None:
    assert len(folds_of("redshift", pd.concat([galaxies()] * 2, ignore_index=True))) == 1


def test_folds_are_pooled_and_each_learns_from_its_own_rows() -> None:
    first, second = (
        Comparison(Problem(X[:n], X[:n, 0], X[n:], X[n:, 0], ("RMSE",)), own)
        for n in (80, 90)
        for own in [MixturePredictive.gaussian(X[n:, 1], None)]
    )
    narrow = Comparison(Problem(X[:, :2], X[:, 0], X[:, :2], X[:, 0], ()), first.own)
    c = pooled([first, second, narrow])
    assert [(len(mine), len(asked)) for _, mine, asked in c.problem.parts()] == [(80, 20), (90, 10)]
    np.testing.assert_array_equal(c.own.point, np.concatenate([X[80:, 1], X[90:, 1]]))
    assert not c.scored.dense
    assert c.problem.table_rows.tolist() == list(range(20))


def test_folds_are_scored_on_the_scale_that_each_has_chosen() -> None:
    y = np.exp(X[:, 0])
    mean, variance = X[:, 0] + 0.1, np.full(len(X), 0.2)
    own = MixturePredictive.gaussian(np.exp(mean), variance)
    plain = Comparison(Problem(X, y, X, y, ("CRPS",)), own)
    log = replace(plain, own=MixturePredictive.gaussian(mean, variance, log=True))
    c = pooled([plain, log])
    for name in ("value", "log_density", "crps"):
        each = [getattr(fold.scored, name) for fold in (plain, log)]
        np.testing.assert_allclose(getattr(c.scored, name), np.concatenate(each))


@pytest.fixture
def one_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "general_tools", lambda classes: general_tools(classes)[:1])


QUICK = {"n_basis": 5, "max_steps": 4, "own": True, "target": "z"}


@pytest.mark.slow
@pytest.mark.usefixtures("one_rival")
def test_the_card_is_of_all_folds_and_the_table_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "SECONDS", 1e6)  # a slow machine would leave folds out
    *_, end = scant.fit("redshift", galaxies(), **QUICK)
    report, result = end.report, end.report.verdict
    assert (result.trained, result.tested, result.folds) == (80, 100, 5)
    assert any(line.startswith("By cross-validation: 100 rows") for line in result.sentences())
    shown = {(m.method, m.name): m.value for m in report.metrics}
    assert shown["ridge regression", "RMSE"] != result.point.theirs
    table = galaxies()
    errors = []
    for study in folds_of("redshift", table, **{k: v for k, v in QUICK.items() if k != "own"}):
        test = study.roles == "test"
        features = table[["u", "g", "r"]].to_numpy()
        mean, _ = ridge(features[~test], table["z"][~test].to_numpy(), features[test])
        errors += [*(mean - table["z"][test])]
    assert result.point.theirs == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("one_rival")
def test_a_stop_ends_the_folds() -> None:
    control = Control()
    for event in scant.fit("redshift", galaxies(), control=control, **QUICK):
        if isinstance(event, Note) and event.text.startswith("Training has ended"):
            control.stop()
    assert event.state is State.STOPPED
    assert event.report.verdict.folds == 1


def test_few_held_out_rows_are_told() -> None:
    contest = verdict.Contest("RMSE", 1.0, "ridge", 1.1, -0.1, 0.3)
    few = verdict.Verdict(contest, tested=12, trained=50)
    assert few.sentences()[-1] == "Only 12 rows were held out: another split may say otherwise."
    assert "Only" not in verdict.Verdict(contest, tested=300).sentences()[-1]


def replicas(each: int) -> pd.DataFrame:
    """Three outputs, the last with one replica fewer."""
    index = pd.MultiIndex.from_product([["a", "b", "c"], range(each), range(4)])
    frame = index.to_frame(index=False).set_axis(["output", "replica", "x"], axis=1)
    frame = frame[(frame["output"] != "c") | (frame["replica"] > 0)].astype({"x": float})
    return frame.assign(y=RNG.normal(size=len(frame)), replica=frame["replica"].astype(str))


def test_replicas_are_held_out_whole() -> None:
    table = replicas(4)
    folds = folds_of("genes", table, model="independent")
    held = np.array([study.roles == "test" for study in folds])
    assert len(held) == 4
    assert (held.sum(0) == 1).all()
    for row in held:
        pairs = table.assign(held=row).groupby(["output", "replica"])["held"].mean()
        assert set(pairs) <= {0.0, 1.0}
        assert (pairs.groupby("output").sum() <= 1).all()
    assert len(folds_of("genes", replicas(2), model="independent")) > 2
    for chosen in ({"hidden": "a/1"}, {"split": "half of the points"}):
        assert len(folds_of("genes", table, model="independent", **chosen)) == 1
    marked = table.assign(test=(table["replica"] == "1").astype(int))
    assert len(folds_of("genes", marked, model="independent")) == 1
