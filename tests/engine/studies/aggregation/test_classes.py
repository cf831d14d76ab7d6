"""Categorical tasks of the aggregation study: from codes in a table to class probabilities."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from scant.errors import BadInput
from scant.events import Report
from scant.studies.aggregation import classes
from scant.studies.aggregation.study import Study
from scant.studies.aggregation.table import TABLE, of
from scant.tables.read import read_table
from tests.engine.studies import studying
from tests.engine.studies.studying import run, value

CPU = torch.device("cpu")
CODES = np.array([10, 20, 41])  # of land cover
settings = partial(studying.settings, "aggregation", likelihoods="cover=categorical")


def _probabilities(x: np.ndarray) -> np.ndarray:
    """Of three classes, the first of which is rare."""
    odds = np.exp(np.column_stack([3 * np.sin(x) - 1.5, 3 * np.sin(x + 2), 0 * x]))
    return np.asarray(odds / odds.sum(1, keepdims=True))


@pytest.fixture(scope="module")
def cover() -> pd.DataFrame:
    """Classes of 360 short boxes, and a height whose curve is that of the first class."""
    draws = np.random.default_rng(0)
    lo = draws.uniform(0, 10, 360)
    p = _probabilities(lo + 0.1)
    y = CODES[[draws.choice(3, p=row) for row in p]]
    classes = pd.DataFrame({"task": "cover", "x_lo": lo, "x_hi": lo + 0.2, "y": y.astype(float)})
    at = draws.uniform(0, 10, 60)
    heights = {"task": "height", "x_lo": at, "x_hi": at, "y": np.sin(at)}
    return pd.concat([classes, pd.DataFrame(heights)], ignore_index=True)


@pytest.fixture(scope="module")
def fitted(cover: pd.DataFrame) -> tuple[Study, Report]:
    study = Study(settings(scarce="cover", max_steps=30, n_inducing=15, test_share=0.5), cover, CPU)
    return study, run(study)


@pytest.mark.slow
def test_codes_are_classes_from_the_rarest_to_the_most_frequent(
    fitted: tuple[Study, Report], cover: pd.DataFrame
) -> None:
    study, _ = fitted
    assert study.metadata["likelihoods"] == ["categorical", "gaussian"]
    train = study.data.train
    own = train.observed.y[train.rows & (train.observed.task == 0)]
    values = study.metadata["classes"]["cover"]
    assert sorted(values) == CODES.tolist()
    counts = [(own == v).sum() for v in values]
    assert counts == sorted(counts)
    assert len(study.model.functions[0]) == 2
    assert any("Classes of task cover, the rarest first" in note for note in study.notes)
    shown = study.metadata["observed"]
    assert {y for y, t in zip(shown["y"], shown["task"]) if t == 0} == {0.0, 1.0}


@pytest.mark.slow
def test_held_out_classes_are_told_better_than_by_their_shares(
    fitted: tuple[Study, Report],
) -> None:
    study, report = fitted
    score = value(report, "mean log probability (nats)")
    trivial = study.problem.scored(study.problem.trivial())
    # Shares get -1.13, the probabilities that the rows were drawn by -.55; half of it is learned.
    assert score > trivial.log_density.mean() + 0.29
    assert value(report, "accuracy") > float(np.mean(trivial.correct))
    rarest = study.problem.y_test == 0
    np.testing.assert_array_equal(report.arrays["test_y"], rarest.astype(float))
    mean = report.arrays["test_mean"]  # probability of the rarest class
    assert mean[rarest].mean() > mean[~rarest].mean() + 0.1
    assert study.comparison(report).problem.classes == 3
    task, *_, inside = report.arrays["check"]  # classes have no intervals
    percent = value(report, "observed averages inside their 95% interval")
    assert percent == pytest.approx(100 * inside[task == 1].mean())


@pytest.mark.slow
def test_predictions_have_a_column_for_each_class(fitted: tuple[Study, Report]) -> None:
    study, _ = fitted
    x = np.linspace(0.5, 9.5, 40)
    query = pd.DataFrame({"task": "cover", "x_lo": x - 0.1, "x_hi": x + 0.1})
    told = study.predict(pd.concat([query, query.assign(task="height")], ignore_index=True))
    covers, heights = told[:40], told[40:]
    p = covers[[f"p({code})" for code in CODES]].to_numpy(float)
    np.testing.assert_allclose(p.sum(1), 1)
    # Shares are wrong by .27 and the run by .06.
    assert np.abs(p - _probabilities(x)).mean() < 0.13
    assert list(covers["label"]) == [str(CODES[i]) for i in p.argmax(1)]
    np.testing.assert_allclose(covers["probability"].astype(float), p.max(1))
    rarest = f"{study.metadata['classes']['cover'][0]:g}"
    np.testing.assert_allclose(covers["mean"], covers[f"p({rarest})"].astype(float))
    assert covers["lo95"].isna().all()
    assert heights["lo95"].notna().all()
    assert heights[[f"p({code})" for code in CODES]].isna().all(None)
    assert {"label", "p(class)"} <= {spec.name for spec in study.further}
    with pytest.raises(BadInput, match="task 'cover' has classes"):
        study.explore("retrain", n=20)


def test_what_is_no_class_is_refused(cover: pd.DataFrame) -> None:
    with pytest.raises(BadInput, match=r"row 0: got 20\.5.*'cover' needs the whole number"):
        Study(settings(), cover.assign(y=cover["y"] + 0.5), CPU)
    with pytest.raises(
        BadInput, match="task 'cover': 1 in the training rows and 0 more; between 2 and 20"
    ):
        Study(settings(), cover.assign(y=cover["y"].where(cover["task"] == "height", 3.0)), CPU)


def test_the_rarest_class_has_training_rows_and_truth_is_its_indicator() -> None:
    """A class of held-out rows alone, such as a mistyped label, is not what figures show."""
    y = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 3.0])
    frame = pd.DataFrame({"task": "cover", "x_lo": range(6), "x_hi": range(1, 7), "y": y})
    observed = of(frame.assign(truth=y))
    trained = np.array([True] * 5 + [False])
    found = classes.classes_of(observed, trained, ["categorical"])
    assert found == {"cover": [2.0, 3.0, 1.0]}
    _, guess = classes.notes(observed, trained, found)
    assert guess == "Class 3 of task cover has no training row; its probability is a guess."
    shown = classes.as_indicators(observed, found)
    np.testing.assert_array_equal(shown.y, y == 2)
    np.testing.assert_array_equal(shown.truth, y == 2)
    with pytest.raises(BadInput, match="'cover': 1 in the training rows and 2 more"):
        classes.classes_of(observed, np.array([True] * 3 + [False] * 3), ["categorical"])


def test_each_label_has_one_code_and_each_code_one_label() -> None:
    frame = pd.DataFrame(
        {"task": "cover", "x_lo": range(4), "x_hi": range(1, 5), "y": [1.0, 2.0, 3.0, 3.0]}
    )
    for labels, told in (
        (["low", "low", "high", "high"], "row 1: code 2 is 'low', as another code is"),
        (["low", "mid", "high", "higher"], "row 3: code 3 is 'higher', but 'high' in a row above"),
    ):
        with pytest.raises(BadInput, match=told):
            of(frame.assign(y_label=labels))
    observed = of(frame.assign(y_label=["2", None, "high", "high"]))
    with pytest.raises(BadInput, match="are called '2'"):
        classes.names_of(observed, {"cover": [1.0, 2.0, 3.0]})


@pytest.mark.slow
def test_a_stored_run_predicts_as_before(fitted: tuple[Study, Report], cover: pd.DataFrame) -> None:
    study, _ = fitted
    tensors, meta = study.fitted()
    back = Study.restore(study.settings, tensors, json.loads(json.dumps(meta)), CPU)
    query = cover.drop(columns="y")
    pd.testing.assert_frame_equal(back.predict(query), study.predict(query))


@pytest.mark.slow
def test_labels_of_classes_in_a_file_name_the_columns_of_predictions(cover: pd.DataFrame) -> None:
    words = dict(zip(CODES, ("bare", "forest", "water")))
    labels = [words.get(y, f"{y:.3f}") for y in cover["y"]]
    file = cover.assign(y=labels).to_csv(index=False).encode()
    table = read_table(file, TABLE, name="cover.csv")
    assert any("3 labels were read as classes" in note for note in table.notes)
    assert not any("read as an empty cell" in note for note in table.notes)
    study = Study(settings(likelihoods="", max_steps=1, n_inducing=8), table.frame, CPU)
    assert study.metadata["likelihoods"] == ["categorical", "gaussian"]
    assert sorted(study.metadata["class_names"]["cover"]) == sorted(words.values())
    run(study)
    told = study.predict(cover.drop(columns="y")[:5])
    assert set(told["label"]) <= set(words.values())
    assert {f"p({word})" for word in words.values()} <= set(told)
    with pytest.raises(BadInput, match="'cover' are labels of classes"):
        Study(settings(likelihoods="cover=poisson"), table.frame, CPU)
    two = table.frame.assign(y_label=["bare", "sand"] * (len(cover) // 2))
    with pytest.raises(BadInput, match=r"column 'y_label', row .* give each class one code"):
        Study(settings(likelihoods=""), two, CPU)


def test_a_word_among_numbers_is_no_class(cover: pd.DataFrame) -> None:
    typed = cover.astype({"y": object})
    typed.loc[3, "y"] = "forest"
    with pytest.raises(BadInput, match=r"'forest', which is not a number; .* 2 to 20 classes"):
        read_table(typed.to_csv(index=False).encode(), TABLE, name="cover.csv")
