"""A person's session of the clamp study: what is asked, what is learned, when to stop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from scant.events import Note, State
from scant.studies.clamp.session_scores import f1_interval
from scant.studies.clamp.study import Study
from scant.training.loop import train
from tests.engine.studies.clamp.pools import CPU, clouds, settings
from tests.engine.studies.studying import run


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return clouds()


@pytest.fixture
def mine(table: pd.DataFrame) -> Study:
    study = Study(settings(expert="you"), table.assign(label=None), CPU)
    events = list(train(study))
    assert events[-1].state is State.FINISHED
    assert any(isinstance(e, Note) and "Waiting for your labels" in e.text for e in events)
    return study


@pytest.mark.slow
def test_a_person_is_asked_and_learnt_from(mine: Study, table: pd.DataFrame) -> None:
    truth = (table["label"] == "clamp").to_numpy().astype(int)
    labels: list[list[int]] = []
    scores = []
    for _ in range(9):
        told = mine.explore("ask", labels=labels, batch=8, f1=scores)
        assert len(told["queue"]) == 8
        assert not set(told["queue"].tolist()) & {row for row, _ in labels}
        scores.append(float(told["f1"][0]))
        labels += [[int(i), int(truth[i])] for i in told["queue"]]
    assert "p = " in told["reason"][0]
    assert told["held_out"][0] == 0
    assert told["advice"][0].startswith(("Go on", "You may stop"))
    assert 0.4 < scores[-1] <= 1
    far = np.abs(told["p"] - 0.5) > 0.3
    assert ((told["p"] > 0.5) == truth)[far].mean() > 0.85
    assert (
        mine.predict(table.drop(columns="label"))["label"]
        .isin(["of interest", "not of interest"])
        .all()
    )


def test_the_same_labels_are_answered_alike_by_another_worker(
    mine: Study, table: pd.DataFrame
) -> None:
    truth = (table["label"] == "clamp").to_numpy().astype(int)
    labels = [[i, int(truth[i])] for i in range(60)]
    tensors, meta = mine.fitted()
    cold = Study.restore(mine.settings, tensors, meta, CPU)
    whole = cold.explore("ask", labels=labels)
    mine.explore("ask", labels=labels[:52])
    warm = mine.explore("ask", labels=labels)
    assert mine.active.rows == cold.active.rows
    np.testing.assert_allclose(warm["p"], whole["p"], atol=0.05)
    assert warm["evidence"][0] == pytest.approx(whole["evidence"][0], abs=0.1)
    undone = mine.explore("ask", labels=[*labels[:30], [5, 1 - labels[5][1]]])
    assert mine.active.labels[5] == 1 - labels[5][1]
    assert len(mine.active.rows) == 30
    assert set(undone["queue"].tolist()).isdisjoint(range(30))
    none = mine.explore("ask", labels=[])
    assert (none["p"] == 0.5).all()
    assert np.isnan(none["evidence"][0])
    assert "all labels are of one class" in none["advice"][0]


@pytest.mark.slow
def test_a_person_is_told_when_to_stop() -> None:
    table = clouds(400)
    table.loc[table["label"] == "clamp", [f"f{i}" for i in range(6)]] += 3
    study = Study(settings(expert="you", patience=3, validation_share=0.3), table, CPU)
    run(study)
    labels: list[list[int]] = []
    stops = []
    for _ in range(20):
        told = study.explore("ask", labels=labels, batch=5)
        stops.append(bool(told["stop"][0]))
        labels += [[int(i), int(study.data.rows.pool.label[i])] for i in told["queue"]]
    assert not any(stops[:6])  # three batches of ten have not passed
    assert stops[-1]
    assert told["advice"][0].startswith("You may stop: a batch changed F1 by about 0.0")
    assert told["remaining"][0] == 0
    study.explore("ask", labels=labels[:12])
    assert max(study.present.predicted_after) == 12  # what was undone is forgotten


def test_a_stop_is_not_advised_after_one_positive_label(table: pd.DataFrame) -> None:
    study = Study(settings(expert="you", patience=3), table.assign(label=None), CPU)
    run(study)
    truth = (table["label"] == "clamp").to_numpy()
    rows = [int(np.flatnonzero(truth)[0]), *np.flatnonzero(~truth)[:60].tolist()]
    for count in range(10, 61, 10):
        told = study.explore("ask", labels=[[r, int(truth[r])] for r in rows[:count]])
        assert told["stop"][0] == 0
        assert np.isnan(told["remaining"][0])


@pytest.mark.slow
def test_checks_are_drawn_at_random_and_not_learned_from(table: pd.DataFrame) -> None:
    study = Study(settings(expert="you", check_share=0.2), table.assign(label=None), CPU)
    run(study)
    truth = (table["label"] == "clamp").to_numpy().astype(int)
    labels: list[list[int]] = []
    for _ in range(10):
        told = study.explore("ask", labels=labels, batch=6)
        assert len(told["queue"]) == len(told["reason"]) == 6
        labels += [[int(i), int(truth[i])] for i in told["queue"]]
    told = study.explore("ask", labels=labels)
    checks = told["held_out_rows"]
    assert len(checks) == 12  # one in five of 60
    assert set(checks.tolist()) == set(study.data.checks[:12].tolist())
    assert set(checks.tolist()).isdisjoint(study.active.rows)
    assert len(study.active.rows) == 48
    wanted = f1_score(truth[checks], told["predicted"][checks])
    assert told["held_out"][0] == 1
    assert told["f1"][0] == pytest.approx(wanted)
    low, high = told["f1_interval"]
    assert low <= wanted <= high
    assert (
        "a check, drawn at random and not learned from"
        in study.explore("ask", labels=labels, batch=8)["reason"]
    )


@pytest.mark.slow
def test_checks_without_the_class_of_interest_say_nothing_of_f1(table: pd.DataFrame) -> None:
    study = Study(settings(expert="you", check_share=0.2), table.assign(label=None), CPU)
    run(study)
    truth = (table["label"] == "clamp").to_numpy().astype(int)
    checks = study.data.checks
    others = np.setdiff1d(np.arange(len(truth)), checks)[:60]
    labels = [[int(i), int(truth[i])] for i in others]
    predicted = study.explore("ask", labels=labels)["predicted"]
    negative = checks[(truth[checks] == 0) & (predicted[checks] == 0)][:3]
    told = study.explore("ask", labels=labels + [[int(i), 0] for i in negative])
    assert len(told["held_out_rows"]) == 3
    assert told["held_out"][0] == 0
    assert 0 < told["f1"][0] <= 1  # by cross-validation


def test_the_interval_of_f1_covers_as_often_as_it_says() -> None:
    rng, hits, tries = np.random.default_rng(0), 0, 400
    truth = rng.uniform(size=(tries, 200)) < 0.2
    predicted = np.where(rng.uniform(size=truth.shape) < 0.15, ~truth, truth)
    true_f1 = 2 * 0.17 / (2 * 0.17 + 0.03 + 0.12)
    for one, other in zip(truth, predicted):
        low, high = f1_interval(one, other)
        hits += low <= true_f1 <= high
    assert 0.91 <= hits / tries <= 0.99
    nothing = np.zeros(5, dtype=bool)
    assert np.isnan(f1_interval(nothing, nothing)).all()
    assert f1_interval(~nothing, ~nothing)[1] == 1


def test_labels_of_the_table_count_from_the_start(table: pd.DataFrame) -> None:
    some = table.assign(label=table["label"].where(np.arange(240) % 2 == 0))
    study = Study(settings(expert="you", validation_share=0.2, test_share=0.2), some, CPU)
    run(study)
    assert len(study.active.rows) == len(study.data.first) > 50
    told = study.explore("ask", labels=[])
    assert set(told["queue"].tolist()).isdisjoint(study.active.rows)
    assert told["held_out"][0] == 1
    mended = study.explore("ask", labels=[[int(study.data.first[0]), 1]])
    assert study.active.labels[study.active.rows.index(int(study.data.first[0]))] == 1
    assert np.isfinite(mended["p"]).all()
