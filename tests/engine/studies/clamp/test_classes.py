"""More than two classes: a session, its report and predictions; a person's labels of any class."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, f1_score

from scant.errors import BadInput
from scant.events import Report
from scant.models.laplace.classifier import LaplaceGPC, Prior
from scant.models.laplace.one_vs_rest import OneVsRest, built, probabilities
from scant.studies.clamp.entry import ENTRY
from scant.studies.clamp.settings import ACQUISITIONS, COMPARED
from scant.studies.clamp.study import Study
from tests.engine.studies.clamp.pools import CPU, NAMES, clouds, settings, three
from tests.engine.studies.studying import run, value

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session() -> tuple[Study, Report]:
    study = Study(settings(budget=80, n_components=6), three(), CPU)
    return study, run(study)


def test_one_against_the_rest_is_normalized() -> None:
    table = three()
    x = torch.tensor(table[[f"f{i}" for i in range(6)]].to_numpy())
    label = torch.tensor([NAMES.index(w) for w in table["label"]])
    model = built(x, label, 3, prior=Prior())
    assert isinstance(model, OneVsRest)
    assert float(model.fit(20)) < 0
    p = probabilities(model, x)
    torch.testing.assert_close(p.sum(1), torch.ones(300).double())
    each = [LaplaceGPC.build(x, (label == c).long(), prior=Prior()) for c in range(3)]
    alone = []
    for one in each:
        one.fit(20)
        alone.append(one.probability(x))
    whole = torch.stack(alone, 1)
    torch.testing.assert_close(p, whole / whole.sum(1, keepdim=True))
    assert (p.argmax(1) == label).double().mean() > 0.8
    two = built(x, (label == 2).long(), 2)
    assert isinstance(two, LaplaceGPC)
    assert probabilities(two, x).shape == (300, 2)


def test_a_session_of_three_classes_ends_in_a_report(session: tuple[Study, Report]) -> None:
    study, report = session
    assert study.metadata["classes"] == NAMES
    assert study.metadata["positive"] == 2
    assert any("clamp is the class of interest" in note for note in study.notes)
    assert set(report.arrays) == {a.name for a in ENTRY.report}
    at, truth = report.arrays["test_row"], report.arrays["test_label"]
    predicted = report.arrays["predicted"][at]
    np.testing.assert_array_equal(report.arrays["confusion"], confusion_matrix(truth, predicted))
    scores = f1_score(truth, predicted, average=None)
    np.testing.assert_allclose(report.arrays["class_f1"], scores)
    assert value(report, "F1") == pytest.approx(scores[2])
    assert value(report, "F1 of soil") == pytest.approx(scores[0])
    assert value(report, "mean F1 of the classes") == pytest.approx(scores.mean())
    assert scores.mean() > 0.65
    for name in COMPARED:
        assert 0 <= value(report, "F1", name) <= 1
    assert study.comparison(report).problem.classes == 3
    np.testing.assert_allclose(report.arrays["test_p"], report.arrays["pool_p"][at])


def test_it_is_kept_and_predicts(session: tuple[Study, Report]) -> None:
    study, report = session
    restored = Study.restore(study.settings, *study.fitted(), CPU)
    told = restored.predict(three())
    assert [f"p({name})" in told for name in NAMES] == [True] * 3
    each = told[[f"p({name})" for name in NAMES]].to_numpy()
    np.testing.assert_allclose(each.sum(1), 1)
    assert (told["predicted"] == np.array(NAMES)[each.argmax(1)]).all()
    np.testing.assert_allclose(told["p(clamp)"], report.arrays["pool_p"], atol=1e-9)
    assert (told["predicted"] == three()["label"]).mean() > 0.7
    assert (told["entropy"] <= np.log(3) + 1e-9).all()


@pytest.mark.parametrize("method", ACQUISITIONS[1:])
@pytest.mark.parametrize("diverse", ["distance", "determinant"])
def test_every_acquisition_asks(method: str, diverse: str) -> None:
    chosen = settings(acquisition=method, delta=0.2, diverse=diverse, start=40, budget=50)
    study = Study(chosen, three(), CPU)
    study.start_restart(0, 0, None)
    study.step()
    asked = study.active.pending
    assert 0 < len(asked) <= 10
    assert set(asked).isdisjoint(study.active.rows)
    if method == "band, strict":
        two = np.sort(study.active.each.numpy()[asked], 1)[:, -2:]
        assert ((two[:, 1] - two[:, 0]) / 2 <= 0.2).all()


def test_a_rare_class_is_found_first() -> None:
    rare = clouds(600)
    wanted = np.flatnonzero(rare["label"] == "clamp")
    rare = rare.drop(index=wanted[40:]).reset_index(drop=True)
    found = {}
    for method in ("rare class first", "random"):
        study = Study(settings(acquisition=method, repeats=1, baselines=False), rare, CPU)
        run(study)
        found[method] = study.active.counts[1]
    assert found["rare class first"] > 1.5 * found["random"]


def test_a_person_labels_any_class() -> None:
    table = three().assign(label=None)
    names = "clamp, pipe, soil"
    study = Study(settings(expert="you", class_names=names, check_share=0.2), table, CPU)
    run(study)
    assert study.metadata["classes"] == ["pipe", "soil", "clamp"]
    truth = [study.metadata["classes"].index(w) for w in three()["label"]]
    labels: list[list[int]] = []
    for _ in range(8):
        told = study.explore("ask", labels=labels, batch=10)
        labels += [[int(i), truth[int(i)]] for i in told["queue"]]
    assert set(told) == {a.name for a in ENTRY.explore["ask"]}
    assert (told["predicted"] == np.array(truth)).mean() > 0.7
    assert told["p"].max() <= 1
    assert 0 < told["f1"][0] <= 1
    with pytest.raises(BadInput, match="from 0 to 2"):
        study.explore("ask", labels=[[0, 3]])
    whole = study.explore("picture", row=0, labels=labels)
    assert whole["verdict"][0] == whole["p"].max()
