"""What metrics mean, for who has not met them before."""

from __future__ import annotations

import pytest

from scant.events import Metric
from scant.reproduce.tables import read
from scant_dashboard.plots.metric_glossary import group_by_meaning
from scant_dashboard.plots.table import figure, meanings, table


def told(*names: str) -> str:
    return meanings([Metric("this run", name, 1.0) for name in names])


def test_each_metric_is_explained_by_its_own_sentence_and_twins_by_one() -> None:
    made = told("precision", "average precision", "SMSE", "NMSE")
    assert made.count("<li>") == 3
    assert "<strong>precision</strong>: share of the rows assigned to a class" in made
    assert "<strong>average precision</strong>: the area under" in made
    assert "<strong>SMSE; NMSE</strong>" in made
    of_two = told("coverage of the 50% interval", "coverage of the 95% interval")
    assert of_two.count("coverage") == 1


def test_an_unknown_metric_is_left_out_and_nothing_known_is_no_list() -> None:
    assert told("zeal") == ""
    assert "zeal" not in told("zeal", "F1")


def test_scores_of_densities_are_explained() -> None:
    names = ("CRPS", "CDE loss", "PIT-KS", "outliers beyond 0.15", "outliers beyond 3 sigma")
    made = told(*names)
    assert made.count("<li>") == 4
    assert "<strong>outliers beyond 0.15; outliers beyond 3 σ</strong>: share of rows" in made


SAYS_ITSELF = {"seconds to train"}
STUDIES = ("aggregation", "clamp", "multiview", "genes", "mitosis", "omniglot", "redshift")


@pytest.mark.parametrize("study", STUDIES)
def test_every_measure_of_the_whole_tables_is_explained(study: str) -> None:
    rows = read(study)
    assert rows is not None
    names = {str(name) for name in rows["metric"]}
    assert {name for name in names if not group_by_meaning([name])} <= SAYS_ITSELF


def test_per_cent_is_said_and_a_count_has_no_decimals() -> None:
    rows = [Metric("this run", "coverage of the 95% interval", 93.7),
            Metric("this run", "F_0.05", 82.25), Metric("forest", "F_0.05", 64.65)]  # fmt: skip
    made = table([*rows, Metric("this run", "labels", 190.0)])
    assert "coverage of the 95% interval 93.70%" in made
    assert "F<sub>0.05</sub> (%)" in made
    assert "labels 190<" not in made
    assert "labels 190" in made
    assert "190.0" not in made
    assert figure(Metric("a", "F1", 100.0)) == "100"


def test_the_group_alone_says_that_a_method_is_published() -> None:
    made = table([Metric("DFGP (published, films)", "F1", 0.8, 0.09, "published")])
    assert "DFGP (films)" in made
