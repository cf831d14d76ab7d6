"""A person's session of the clamp study: what is asked, what is learned, when to stop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scant.events import Finished, Note, State
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
    assert isinstance(events[-1], Finished)
    assert events[-1].state is State.FINISHED
    assert any(isinstance(e, Note) and "Waiting for your labels" in e.text for e in events)
    return study


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
    assert "only one class" in none["advice"][0]


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
    assert told["advice"][0].startswith("You may stop: F1 has not risen")
    study.explore("ask", labels=labels[:12])
    assert sorted(study.present.heard) == [0, 1]  # what was undone is forgotten


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
