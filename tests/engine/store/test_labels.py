"""Labels that stand, and how far two labelers agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scant.errors import NotAllowed
from scant.store import Store
from scant.store.label_agreement import (
    by_labeler,
    clean_name,
    kappa,
    shown_as,
    shown_names,
    standing,
)
from scant.store.records import Label
from sklearn.metrics import cohen_kappa_score


def given(*labels: tuple[int, str, str]) -> list[Label]:
    return [Label(item, label, who, float(i)) for i, (item, label, who) in enumerate(labels)]


def test_the_latest_label_stands_and_one_that_was_taken_back_does_not() -> None:
    labels = given((3, "clamp", "ada"), (5, "no", "ada"), (3, "no", "bo"), (5, "", "ada"))
    assert {row: label.label for row, label in standing(labels).items()} == {3: "no"}
    assert by_labeler(labels) == {"ada": {3: "clamp"}, "bo": {3: "no"}}


def test_labels_stand_in_the_order_in_which_they_were_given() -> None:
    labels = given((3, "no", "ada"), (5, "no", "ada"), (3, "clamp", "ada"))
    assert list(standing(labels)) == [5, 3]


def by(*labels: tuple[str, str, int, str]) -> list[Label]:
    """Labels by visitor, typed name, item and class."""
    return [
        Label(item, label, name, float(i), who) for i, (who, name, item, label) in enumerate(labels)
    ]


def test_a_name_is_nobodys_and_two_visitors_who_type_it_are_two() -> None:
    labels = by(
        ("one", "Ada", 1, "clamp"), ("two", "ada", 2, "no"), ("three", "Ada (2)", 3, "no"),
        ("one", "Bo", 4, "no"), ("user:eve", "Ada", 5, "no"), ("user:eve", "me", 6, "no"),
    )  # fmt: skip
    names = shown_names(labels)
    assert list(names.values()) == ["Ada", "ada (2)", "Ada (2) (2)", "Bo", "Ada (eve)", "eve"]
    assert by_labeler(shown_as(labels, names))["Ada"] == {1: "clamp"}
    assert shown_names(labels, "four", "Ada")["four", "Ada"] == "Ada (3)"
    assert shown_names(labels, "one", "Ada") == names


def test_a_name_is_one_line_that_can_be_seen() -> None:
    assert clean_name("  A\u200bd\x00a \n Bo\u202e ") == "Ada Bo"
    assert clean_name("\u200b") == clean_name("") == "me"
    assert clean_name("\uff21da") == "Ada"
    assert len(clean_name("x" * 99)) == 60


def test_taking_back_leaves_what_others_gave() -> None:
    labels = by(("one", "a", 7, "clamp"), ("two", "a", 7, "no"), ("one", "a", 7, ""))
    assert {row: (v.label, v.visitor) for row, v in standing(labels).items()} == {7: ("no", "two")}
    labels += by(("two", "a", 7, ""))
    assert standing(labels) == {}


def test_only_ones_own_label_can_be_taken_back(tmp_path: object) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/labels.db")
    store.add_label("run", 4, "clamp", "Ada", "one")
    for visitor, name in (("two", "Ada"), ("", "Ada"), ("one", "Bo")):
        with pytest.raises(NotAllowed, match="by whoever gave it"):
            store.add_label("run", 4, "", name, visitor)
    (label,) = store.labels("run")
    assert (label.labeler, label.visitor) == ("Ada", "one")
    store.add_label("run", 4, "", "Ada", "one")
    assert standing(store.labels("run")) == {}
    store.close()


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5, 1.0])
def test_kappa_is_scikit_learns(noise: float) -> None:
    rng = np.random.default_rng(0)
    first = rng.random(60) < 0.3
    second = np.where(rng.random(60) < noise, ~first, first)
    a, b = ({i: str(v) for i, v in enumerate(who)} for who in (first, second))
    b[99] = "only b"
    many, agreed, result = kappa(a, b)
    assert many == 60
    assert agreed == pytest.approx(np.mean(first == second))
    assert result == pytest.approx(cohen_kappa_score(first, second))


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
