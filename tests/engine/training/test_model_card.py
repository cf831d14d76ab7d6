"""The model card says what a run was, and nothing from outside is markup in it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scant.events import Metric, Report
from scant.studies import entry
from scant.training.model_card import Card, markdown, page
from scant.verdict import Contest, Verdict

EVIL = "<script>alert(1)</script> | [x](http://y) `z`"


def card(**changes: object) -> Card:
    report = Report(
        (
            Metric("this run", "RMSE", 0.5, 0.1),
            Metric("this run", "coverage of the 95% interval", 93.0),
            Metric("random forest", "RMSE", 0.4, source="rival"),
            Metric("GPVC", "RMSE", 0.05, source="published"),
        ),
        notes=(EVIL,),
        verdict=Verdict(
            Contest("RMSE", 0.5, "random forest", 0.4, -0.15, -0.05),
            seconds={"this run": 12.0, "random forest": 0.5},
            code="from a import B\nB().fit(X, y).predict(X_new)",
        ),
    )
    table = pd.DataFrame({"g": [1.0, np.nan, 3.0], EVIL: ["a", "b", "b"], "z": [0.1, 0.2, 0.3]})
    spec = entry("redshift")
    values = spec.settings.parse({"n_basis": 7}).values()
    made = Card(
        spec, values, "my table.csv", report, "finished", "All 9 steps are done.",
        {"rows": {"training": 2, "test": 1}}, table, "ab12", "cd34", "0.1.0", "cpu",
    )  # fmt: skip
    return Card(**{**vars(made), **changes})


def test_all_of_a_run_stands_on_the_card() -> None:
    made = markdown(card())
    for words in (
        "3 rows, 3 columns; 1 of 9 cells are missing",
        "| g | float64 | 2 | 1 | 1 to 3, median 2 |",
        "- training: 2 rows",
        "| RMSE | 0.5 | 0.3355 to 0.6645 |",
        "| coverage of the 95% interval | 93 |  |",
        "Take another tool: random forest is better",
        "| this run | 0.5 | 12 |\n| random forest | 0.4 | 0.5 |",
        "| n\\_basis | 7 | {} |".format(entry("redshift").settings.param["n_basis"].default),
        "    scant fit redshift --data 'my table.csv' --set n_basis=7",
        "    scant.fit('redshift', 'my table.csv', n_basis=7)",
        "    B().fit(X, y).predict(X_new)",
        "- SHA-256 of the model: cd34",
        "- SHA-256 of the table: ab12",
        "- scikit-learn: ",
        "## Limits",
    ):
        assert words in made, words
    assert "GPVC" not in made


def test_words_from_outside_stay_words() -> None:
    html = page(markdown(card(data=EVIL, reason=EVIL)))
    assert "<script" not in html
    assert "href" not in html
    assert html.count("<th>column</th>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | [x](http://y) `z`" in html


def test_a_run_without_table_and_rivals_has_a_card_too() -> None:
    bare = Report((Metric("this run", "RMSE", 0.5),))
    made = markdown(card(table=None, report=bare, metadata={}))
    assert "## Data\n\nFitted to my table.csv." in made
    assert "## Other methods" not in made
    assert "## Split" not in made


def test_columns_stand_there_by_the_headers_of_the_file_too() -> None:
    reading = {"reading": {"mapping": {"gap [mm]": "g"}}}
    assert "| g (in the file: gap \\[mm\\]) | float64 | 2 |" in markdown(card(metadata=reading))
