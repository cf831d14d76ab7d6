"""Labels that stand, and how far two labellers agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from engine.labels import by_labeller, kappa, standing
from engine.store import Store
from engine.store.records import Label


def given(*labels: tuple[int, str, str]) -> list[Label]:
    return [Label(item, label, who, float(i)) for i, (item, label, who) in enumerate(labels)]


def test_the_latest_label_stands_and_one_that_was_taken_back_does_not() -> None:
    labels = given((3, "clamp", "ada"), (5, "no", "ada"), (3, "no", "bo"), (5, "", "ada"))
    assert {row: label.label for row, label in standing(labels).items()} == {3: "no"}
    assert by_labeller(labels) == {"ada": {3: "clamp"}, "bo": {3: "no"}}


def test_labels_stand_in_the_order_in_which_they_were_given() -> None:
    labels = given((3, "no", "ada"), (5, "no", "ada"), (3, "clamp", "ada"))
    assert list(standing(labels)) == [5, 3]


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5, 1.0])
def test_kappa_is_scikit_learns(noise: float) -> None:
    rng = np.random.default_rng(0)
    first = rng.random(60) < 0.3
    second = np.where(rng.random(60) < noise, ~first, first)
    a, b = ({i: str(v) for i, v in enumerate(who)} for who in (first, second))
    b[99] = "only b"
    many, agreed, found = kappa(a, b)
    assert many == 60
    assert agreed == pytest.approx(np.mean(first == second))
    assert found == pytest.approx(cohen_kappa_score(first, second))


def test_kappa_of_nothing_in_common_is_not_known() -> None:
    assert kappa({1: "a"}, {2: "a"})[0] == 0
    assert math.isnan(kappa({1: "a"}, {2: "a"})[2])
    assert kappa({1: "a"}, {1: "a"})[1] == 1.0
    assert math.isnan(kappa({1: "a"}, {1: "a"})[2])  # chance alone would agree as far


def test_every_label_is_in_the_store_when_it_says_so(tmp_path: object) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/labels.db")
    store.add_label("run", 4, "clamp", "ada")
    other = Store.open(f"sqlite:///{tmp_path}/labels.db")
    assert {row: v.label for row, v in standing(other.labels("run")).items()} == {4: "clamp"}
    store.close()
    other.close()
