"""Conclusions and printed scores of publications against our results."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from scant.reproduce import claims, items
from scant.reproduce.claims import Claim, Comparison, MeanScore
from scant.reproduce.items import Status, reaches
from scant.studies import STUDIES

NAN, REPEATS = math.nan, 5


def comparison(
    relation: str,
    better: float,
    worse: float,
    metric: str = "F1",
    spread: float = 0.0,
    factor: float = NAN,
) -> Comparison:
    ours = MeanScore(better, spread, REPEATS), MeanScore(worse, spread, REPEATS)
    return Comparison("experiment", "data", metric, relation, factor, "A", "B", ours)


@pytest.mark.parametrize(
    ("one", "holds"),
    [
        (comparison("better", 0.8, 0.7), True),
        (comparison("better", 0.7, 0.8), False),
        (comparison("better", 0.8, 0.8), None),
        (comparison("better", 0.7, 0.8, "RMSE"), True),
        # The deviation of a mean is .1 / 2, that of the difference .0707.
        (comparison("better", 0.79, 0.8, spread=0.1), None),
        (comparison("better", 0.66, 0.8, spread=0.1), None),
        (comparison("better", 0.65, 0.8, spread=0.1), False),
        (comparison("better", 0.8, 0.65, spread=0.1), True),
        (comparison("better", 0.9, 0.1, spread=NAN), None),  # one repeat tells nothing of chance
        (comparison("not worse", 0.79, 0.8, spread=0.1), True),
        (comparison("not worse", 0.5, 0.8, spread=0.1), False),
        (comparison("equal", 0.79, 0.8, spread=0.1), True),
        (comparison("equal", 0.9, 0.6, spread=0.1), False),  # .3 and not .28: 2 * .1 * sqrt(2)
        (comparison("equal", 0.88, 0.6, spread=0.1), True),
        (comparison("times", 10, 56, "seconds to train", factor=6), True),
        (comparison("times", 10, 54, "seconds to train", factor=6), False),
        (comparison("times", 56, 10, "seconds to train", factor=6), False),
        (comparison("about", 0.66, 0.6, factor=1.1), True),
        (comparison("about", 0.62, 0.6, factor=1.1), False),
        (comparison("about", 0.9, 0.6, factor=1.1), False),
    ],
)
def test_a_comparison_holds_where_our_scores_agree(one: Comparison, holds: bool | None) -> None:
    assert one.holds is holds


def test_a_conclusion_needs_all_its_comparisons() -> None:
    yes, no = comparison("better", 2, 1), comparison("better", 1, 2)
    absent = yes._replace(ours=None)

    def holds(*comparisons: Comparison) -> bool | None:
        return Claim("A17", "redshift", "text", "Table 1", comparisons).holds

    assert absent.holds is None
    assert holds(yes, yes) is True
    assert holds(yes, absent) is None
    assert holds(yes, absent, no) is False
    claim = Claim("A17", "redshift", "text", "Table 1", (yes, no, absent))
    assert claim.with_verdict(False) == (no,)
    assert claim.with_verdict(None) == ()  # nothing was measured
    assert not claim.measured


@pytest.mark.parametrize(
    ("ours", "spread", "published_spread", "expected"),
    [
        (0.6, NAN, NAN, True),  # better
        (0.49, NAN, NAN, False),  # nothing says how much repeats differ
        (0.4, 0.03, 0.04, True),  # .1 worse, and .05 is one deviation
        (0.39, 0.03, 0.04, False),
    ],
)
def test_a_printed_score_is_reached_within_two_deviations(
    ours: float, spread: float, published_spread: float, expected: bool
) -> None:
    row = SimpleNamespace(metric="F1", published=0.5, ours=ours)
    row.spread, row.published_spread = spread, published_spread
    assert reaches(row) is expected
    row.metric, row.ours, row.published = "RMSE", -ours, -0.5
    assert reaches(row) is expected


def test_a_conclusion_belongs_to_the_items_that_its_place_names() -> None:
    claim = Claim("Y21", "aggregation", "text", "5.3, Figure 5.2; YSA19, Figure 2", ())
    assert items._concerns(claim, "Y21", "Figure 5.2")
    assert items._concerns(claim, "YSA19", "Figure 2")
    for publication, name in (("Y21", "Figure 2"), ("YSA19", "Figure 5.2"), ("Y21", "Figure 5")):
        assert not items._concerns(claim, publication, name)
    assert not items._concerns(claim._replace(where="Figure 5.20"), "Y21", "Figure 5.2")


def test_every_conclusion_of_a_table_or_figure_is_found_there() -> None:
    placed = {claim for item in items.items() for claim in item.claims}
    for claim in claims.every_claim():
        if "Table" in claim.where or "Figure" in claim.where:
            assert claim in placed, claim.where
    assert {claim.study for claim in placed} == set(STUDIES)


def test_items_have_the_status_that_their_results_give() -> None:
    for item in items.items():
        reached, printed = item.reached
        if item.status in (Status.REPRODUCED, Status.CONCLUSIONS_HOLD):
            assert reached == printed
            assert all(claim.holds for claim in item.claims)
            assert item.experiments
            assert printed or item.claims
        if item.status in (Status.DIFFERS, Status.UNCLEAR):
            assert item.experiments
        if item.status == Status.SHOWN:
            assert not printed
            assert not item.claims
        if item.status == Status.DIFFERS:
            assert reached < printed or any(claim.holds is False for claim in item.claims)
        assert item.reason or item.status == Status.REPRODUCED


def test_only_what_was_made_alike_is_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason says: with one it is a remark."""
    score = {"metric": "F1", "ours": 0.6, "published": 0.5, "spread": NAN, "published_spread": NAN}
    rows = pd.DataFrame([{"experiment": "cells", "data": "theirs", "method": "A", **score}])
    monkeypatch.setattr(items, "read", lambda study: rows)
    monkeypatch.setattr(items, "claims", lambda study: ())

    def status(alike: str, reason: str) -> tuple[Status, str]:
        item = items._item("Y21", "Table 9", "3", "Scores", "mitosis", "cells", alike, reason)
        return item.status, item.reason

    assert status("yes", "") == (Status.REPRODUCED, "")
    assert status("yes", "on another machine") == (Status.REPRODUCED, "On another machine.")
    assert status("", "fewer steps") == (Status.CONCLUSIONS_HOLD, "Fewer steps.")
    assert status("", "") == (Status.CONCLUSIONS_HOLD, "")
    rows["ours"] = 0.4
    assert status("yes", "")[0] == Status.DIFFERS


def test_results_without_anything_to_compare_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame({"experiment": ["cells"], "data": ["ours"], "ours": [0.6]})
    rows["published"] = NAN
    monkeypatch.setattr(items, "read", lambda study: rows)
    assert items._compared("mitosis", ("cells",), (), alike=False) == (Status.SHOWN, (0, 0))
    # The other experiment of the item has not been run
    names = ("cells", "more cells")
    assert items._compared("mitosis", names, (), alike=False) == (Status.NOT_YET, (0, 0))
    claim = Claim("Y21", "mitosis", "text", "Table 9", (comparison("better", 2, 1),))
    assert items._compared("mitosis", ("cells",), (claim,), alike=False) == (
        Status.CONCLUSIONS_HOLD,
        (0, 0),
    )
