"""Labels that stand, and how far two labelers agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from scant.errors import NotAllowed
from scant.store import Store
from scant.store.label_agreement import (
    by_labeler,
    clean_name,
    disagreements,
    kappa,
    own_answers,
    shown_as,
    shown_names,
    standing,
)
from scant.store.records import ADJUDICATOR, IMPORTED, UNSURE, Label


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


def test_only_ones_own_label_can_be_taken_back(store: Store) -> None:
    store.add_label("run", 4, "clamp", "Ada", "one")
    for visitor, name in (("two", "Ada"), ("", "Ada"), ("one", "Bo")):
        with pytest.raises(NotAllowed, match="only the person who gave a label"):
            store.add_label("run", 4, "", name, visitor)
    (label,) = store.labels("run")
    assert (label.labeler, label.visitor) == ("Ada", "one")
    store.add_label("run", 4, "", "Ada", "one")
    assert standing(store.labels("run")) == {}


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


def test_what_kind_of_label_it_is_survives(store: Store) -> None:
    store.add_label("run", 1, "clamp", "ada", "one")
    store.add_label("run", 1, "", "bo", "two", unsure=True)
    store.add_label("run", 1, "no", "cy", "three", role=ADJUDICATOR)
    kinds = [(v.label, v.role, v.unsure) for v in store.labels("run")]
    assert kinds == [("clamp", "", False), (UNSURE, "", True), ("no", ADJUDICATOR, False)]
    with pytest.raises(NotAllowed):  # a decision is no answer of one's own
        store.add_label("run", 1, "", "cy", "three")
    store.add_label("run", 1, "", "cy", "three", role=ADJUDICATOR)
    assert standing(store.labels("run"))[1].label == "clamp"


def test_many_labels_are_put_down_at_once_or_not_at_all(store: Store) -> None:
    many = [Label(i, "clamp", "ada", float(i), "one", IMPORTED) for i in range(1000)]
    store.add_labels("run", many)
    assert store.labels("run") == many
    with pytest.raises(NotAllowed):
        store.add_labels("run", [many[0], Label(3, "", "bo", 0.0, "two")])
    assert len(store.labels("run")) == 1000


def kind(item: int, label: str, who: str, role: str = "", unsure: bool = False) -> Label:
    return Label(item, label, who, 0.0, who, role, unsure)


def test_a_decision_counts_more_than_answers_and_these_more_than_labels_of_a_file() -> None:
    labels = [
        kind(1, "clamp", "ada"), kind(1, "no", "imported", IMPORTED), kind(2, "no", "ada"),
        kind(2, "no", "cy", ADJUDICATOR), kind(2, "clamp", "bo"),
        kind(3, "no", "imported", IMPORTED), kind(3, UNSURE, "ada", unsure=True),
        kind(4, "no", "bo"), kind(4, UNSURE, "ada", unsure=True),
    ]  # fmt: skip
    stand = standing(labels)
    assert {row: v.label for row, v in stand.items()} == {1: "clamp", 2: "no", 3: UNSURE, 4: "no"}
    assert stand[2].labeler == "cy"
    assert by_labeler(labels)["ada"] == {1: "clamp", 2: "no"}
    assert "cy" not in by_labeler(labels)
    assert list(own_answers(labels)["ada"]) == [1, 2, 3, 4]
    taken_back = [*labels, kind(2, "", "cy", ADJUDICATOR)]
    assert standing(taken_back)[2].label == "clamp"  # the latest answer


def test_labelers_disagree_where_both_were_sure_of_different_classes() -> None:
    labels = [
        kind(1, "clamp", "ada"), kind(1, "no", "bo"), kind(2, "clamp", "ada"),
        kind(2, UNSURE, "bo", unsure=True), kind(3, "no", "imported", IMPORTED),
        kind(3, "clamp", "ada"), kind(4, "no", "bo", IMPORTED), kind(4, "clamp", "bo"),
        kind(5, "no", "bo", IMPORTED), kind(5, "clamp", "ada"), kind(1, "no", "cy", ADJUDICATOR),
    ]  # fmt: skip
    found = disagreements(labels)
    assert {row: {v.labeler: v.label for v in each} for row, each in found.items()} == {
        1: {"ada": "clamp", "bo": "no"}, 5: {"ada": "clamp", "bo": "no"},
    }  # fmt: skip
