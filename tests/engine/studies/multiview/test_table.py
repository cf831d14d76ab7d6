"""Tables of rows in views: what is read, what is learned of it, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scant.errors import BadInput
from scant.studies.multiview.table import TABLE, of
from scant.tables.read import read_table
from tests.engine.files import csv

N = 14
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 4)).round(3), columns=["a.x", "b.x", "a.y", "pm2.5"])
CLASSES = X.assign(label=["u", "v", "v", "v"] * 3 + ["u", "v"], group=list("ggggggghhhhhhh"))
VALUES = X.assign(y=np.arange(N) * 1.0)
LIVES = X.assign(
    time=np.repeat([3.0, 5.0, 8.0, 13.0], [4, 4, 3, 3]),
    event=np.repeat([1, 0, 1, 1], [4, 4, 3, 3]),
    patient=np.repeat(["p", "q", "r", "s"], [4, 4, 3, 3]),
)


def test_columns_are_gathered_in_views() -> None:
    data = of(read_table(csv(CLASSES), TABLE).frame)
    assert data.task == "classification"
    assert data.names == ["a", "b", "features"]  # pm2.5 has a decimal point, and is no view
    assert data.features == ["a.x", "a.y", "b.x", "pm2.5"]
    assert data.view.tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal(data.x, X[data.features].to_numpy())
    assert data.classes == ["v", "u"]
    assert data.target[:5].tolist() == [1, 0, 0, 0, 1]
    assert data.groups == ["g", "h"]
    assert data.group.tolist() == [0] * 7 + [1] * 7
    some = data.take(np.array([7, 0]))
    assert some.group.tolist() == [1, 0]
    assert some.x.tolist() == data.x[[7, 0]].tolist()
    fewer = data.only(["features", "a"])
    assert fewer.names == ["a", "features"]
    assert fewer.features == ["a.x", "a.y", "pm2.5"]
    assert fewer.view.tolist() == [0, 0, 1]
    for names, message in ((["a", "c"], "no view 'c'"), ([], "no view named")):
        with pytest.raises(BadInput, match=message):
            data.only(names)


def test_values_and_lives() -> None:
    values = of(VALUES)
    assert (values.task, values.classes) == ("regression", [])
    assert values.target.tolist() == VALUES["y"].tolist()
    assert len(values.groups) == N
    for frame in (LIVES, read_table(csv(LIVES), TABLE).frame):
        lives = of(frame)
        assert lives.task == "survival"
        assert lives.patients == ["p", "q", "r", "s"]
        assert lives.group.tolist() == lives.patient.tolist()
        assert lives.event.tolist() == [True] * 4 + [False] * 4 + [True] * 6
    assert of(LIVES.drop(columns="event")).event.all()
    assert len(of(LIVES.drop(columns="patient")).patients) == N


def test_classes_in_question() -> None:
    three = CLASSES.assign(label=["u", "v", "w", "w"] * 3 + ["u", "v"])
    both = of(three, positive="u, v")
    assert both.classes == ["w", "u or v"]
    assert both.target.mean() == 8 / N
    one = of(three, positive="w")
    assert one.classes == ["others", "w"]
    assert np.isnan(of(CLASSES.assign(label=["u", "v", None] + ["v"] * 11)).target[2])
    for frame, positive, message in (
        (three, "", r"3 classes \(u, v, w\), and the model separates two"),
        (three, "x", "names 'x', but the classes are u, v, w"),
        (three, "u,v,w", "names all classes"),
        (CLASSES.assign(label="u"), "", "only one class, 'u'"),
    ):
        with pytest.raises(BadInput, match=message):
            of(frame, positive=positive)


@pytest.mark.parametrize(
    ("frame", "task", "said"),
    [
        (X, "auto", "no values in any of the columns label, y and time"),
        (CLASSES.assign(y=1.0), "auto", "has label and y; set 'task'"),
        (CLASSES, "survival", "needs a column 'time', but the table has none"),
        (CLASSES[["label", "group"]], "auto", "no feature column"),
        (VALUES.assign(**{"a.x": np.nan}), "auto", "'a.x', row 0: the cell has no finite number"),
        (LIVES.assign(time=np.arange(N) + 1.0), "auto", "patient 'p' has another time or event"),
        (LIVES.assign(event=[1, 0] * 7), "auto", "row 1: patient 'p' has another"),
        (LIVES.assign(time=0.0), "auto", "got 0, but times must be above zero"),
    ],
)
def test_tables_that_cannot_be_are_said(frame: pd.DataFrame, task: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        of(frame, task)


def test_several_targets_are_allowed_where_one_is_chosen() -> None:
    both = CLASSES.assign(y=np.arange(N) * 1.0)
    assert of(both, "regression").target.tolist() == both["y"].tolist()
    assert of(both, "classification").features == of(CLASSES).features


def test_a_table_to_predict() -> None:
    trained = of(CLASSES)
    query = X.iloc[:3][["pm2.5", "b.x", "a.y", "a.x"]].assign(more=1.0)
    read = read_table(csv(query), TABLE, purpose="predict")
    result = of(read.frame, "classification", features=trained.features, classes=trained.classes)
    assert result.features == trained.features
    np.testing.assert_array_equal(result.x, trained.x[:3])
    assert np.isnan(result.target).all()
    with pytest.raises(BadInput, match=r"lacks the column 'b\.x' that the model was trained on"):
        of(query.drop(columns="b.x"), "classification", features=trained.features)


def test_names_that_people_give() -> None:
    theirs = LIVES.rename(
        columns={"time": "Survival_months", "event": "status", "patient": "Patient ID"}
    )
    for name in ("Survival_months", "months"):
        named = theirs.rename(columns={"Survival_months": name})
        assert of(read_table(csv(named), TABLE).frame).patients == ["p", "q", "r", "s"]
    assert of(read_table(csv(CLASSES.rename(columns={"label": "class"})), TABLE).frame).classes
