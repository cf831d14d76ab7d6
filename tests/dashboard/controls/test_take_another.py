"""The card "Take another tool when …" says where a rival is ahead, with rows and numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import scant
from scant.events import Finished, Report
from scant.studies.redshift.settings import FIXED
from scant.verdict import RIVAL, Contest, Part, Verdict
from scant_dashboard.controls.take_another import lines, take_another
from scant_dashboard.controls.verdict_card import card

ALL = Part("all", rows=400)
AHEAD = Contest("RMSE", 0.0512, "CatBoost", 0.0487, -0.004, -0.001)
LOST = Part("truth", "z<b", 0.1, 0.3, 120, AHEAD)
WON = Part("missing", start=2, stop=2, rows=500,
           contest=Contest("mean log-likelihood", 1.6, "random forest", 1.2, 0.3, 0.5))  # fmt: skip
EVEN = ALL.told(Contest("CRPS", 0.02, "exact GP", 0.021, -0.001, 0.003))


def test_a_rival_that_is_ahead_is_named_with_place_rows_and_numbers() -> None:
    made = Verdict(parts=(EVEN, LOST, WON))
    assert lines(made) == [
        "Take another tool when …",
        "with z<b from 0.1 to 0.3 (120 rows): CatBoost is ahead in RMSE (0.0487 against 0.0512, by "
        "0.0025 ± 0.0007).",
        "with 2 inputs missing (500 rows): this run is ahead of random forest in mean "
        "log-likelihood (1.6 against 1.2, by 0.4 ± 0.05).",
    ]
    html = take_another(made)
    assert "message warning" in html
    assert "with z&lt;b from" in html
    assert "Of 3 scores on 3 parts of the held-out rows" in html
    assert "exact GP" not in html
    assert take_another(made) in card(Report(verdict=Verdict(WON.contest, parts=made.parts)))


def test_where_no_rival_is_ahead_it_says_so() -> None:
    made = Verdict(parts=(EVEN, WON))
    assert lines(made)[1] == (
        "No rival was ahead in any of 2 scores on 2 parts of the held-out rows."
    )
    assert "message info" in take_another(made)
    assert lines(Verdict(parts=(EVEN,)))[1].startswith("Neither this run nor a rival was ahead")


def test_the_first_and_the_last_bin_are_open() -> None:
    edges = (-1e-5, 0.1, 0.3, 0.99)
    made = Verdict(parts=tuple(Part("truth", "z", a, b, 50, AHEAD) for a, b in pairwise(edges)))
    places = [line.partition(" (")[0] for line in lines(made)[1:]]
    assert places == ["with z < 0.1", "with z from 0.1 to 0.3", "with z ≥ 0.3"]


def test_without_parts_there_is_no_card() -> None:
    assert take_another(Verdict(LOST.contest)) == ""
    assert lines(Verdict()) == []
    assert "take-another" not in card(Report(verdict=Verdict(LOST.contest)))


def fitted(table: pd.DataFrame) -> Verdict:
    """Two basis functions of 100 rows."""
    values = {"training_size": 300, "validation_size": 80, "test_size": 400, "n_basis": 2,
              "max_steps": 25, "restarts": 1, "features": "as given"}  # fmt: skip
    *_, end = scant.fit("redshift", table, device="cpu", own=True, **{**FIXED, **values})
    assert isinstance(end, Finished)
    assert end.report.verdict is not None
    return end.report.verdict


@pytest.mark.slow
def test_of_a_table_with_stairs_at_high_values_the_card_names_trees_there() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 1, (2, 800))
    low = 0.3 * a + 0.1 * b  # a plane, and from a half on ten steps in no order
    stairs = 0.5 + 0.1 * np.array([3, 0, 4, 1, 5, 2, 3.5, 0.5, 4.5, 1.5])[(b * 10).astype(int)]
    z = np.where(a < 0.5, low, stairs) + 0.004 * rng.normal(size=800)
    made = fitted(pd.DataFrame({"z": z, "a": a, "b": b}))
    trees = ("random forest", "gradient boosting", "CatBoost")
    high = [line for line in lines(made) if line.startswith(("with z from 0.5", "with z ≥"))]
    assert any(f"{name} is ahead in RMSE" in line for line in high for name in trees)
    assert any(p.winner == RIVAL and p.kind == "truth" and p.start >= 0.5 for p in made.parts)


@pytest.mark.slow
def test_of_a_smooth_table_the_card_says_that_no_rival_is_ahead() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (800, 2))
    wave = np.exp(-2 * ((x - 0.3) ** 2).sum(1)) * (1 + 0.3 * x[:, 0])
    table = pd.DataFrame({"z": wave + 0.02 * rng.normal(size=800), "a": x[:, 0], "b": x[:, 1]})
    made = fitted(table)
    # Whole rows: the exact GP is as good, trees and the line are not.
    assert not any(p.winner == RIVAL for p in made.parts if p.kind == "all")
    assert not any(p.winner == RIVAL and p.contest and p.contest.rival != "exact GP"
                   for p in made.parts if p.kind != "missing")  # fmt: skip
