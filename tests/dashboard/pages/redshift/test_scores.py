"""The scores of a redshift run as numbers."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bokeh.document import Document
from panel.io.state import set_curdoc

from scant.store import Store
from scant_dashboard.pages.redshift.scores import OF_BINS, OF_MISSING, ScoreTables, score_tables
from scant_dashboard.plots.base import NOTHING
from scant_dashboard.static_page.markup import Markup

BINS = np.array([
    [0.1, 0.2], [0.2, 0.3], [-0.01, 0.02], [0.03, 0.04], [0.05, 0.062], [1200, 40],
])  # fmt: skip
BIN_SCORES = np.array([
    *BINS[:2], [1.5, 1.25], [0.011, 0.022], [-4.5, -3.5], [0.07, 0.08], [0.01, 0.02], [0.03, 0.04],
])  # fmt: skip
MISSING = np.array([[0, 1, 2], [0.05, 0.06, 0.075], *np.full((11, 3), 9.5)])
MISSING_SCORES = np.array([
    [0, 1, 2], [0.031, 0.032, 0.033], [0.004, 0.01, 0.123], [1.6, 1.4, 1.1],
    [0.012, 0.013, 0.014], [-5.5, -5.0, -4.75], [0.061, 0.052, 0.053], [-0.001, 0.002, 0.003],
    [0.021, 0.022, 0.023],
])  # fmt: skip
BANDS = ("u", "<g>", "r")
PATTERNS = np.array([
    [0, 1], [0, 0], [0, 1], [1500, 40], *[[k / 10, k / 5] for k in range(1, 10)],
])  # fmt: skip


def rows(made: str) -> list[list[list[str]]]:
    """Of each table the rows of its body: label and cells."""
    bodies = re.findall(r"<tbody.*?</tbody>", made, re.DOTALL)
    return [
        [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr.*?</tr>", body)]
        for body in bodies
    ]


def test_every_score_stands_in_its_row() -> None:
    view = ScoreTables()
    view.show(BINS, BIN_SCORES, MISSING, MISSING_SCORES)
    by_band, by_bin = rows(view.panel.object)
    assert by_bin == [
        ["0.1 to 0.2", "1,200", "-0.01000", "0.03000", "5.0", "1.500", "0.01100", "-4.500",
         "0.07000", "1.0", "3.0"],
        ["0.2 to 0.3", "40", "0.02000", "0.04000", "6.2", "1.250", "0.02200", "-3.500", "0.08000",
         "2.0", "4.0"],
    ]  # fmt: skip
    assert [row[0] for row in by_band] == ["none", "1 input", "2 inputs"]
    assert by_band[2][1:] == ["0.07500", "0.03300", "12.3", "1.100", "0.01400", "-4.750", "0.05300",
                              "0.003000", "2.3"]  # fmt: skip
    assert view.alt == (
        "From none to 2 inputs missing: RMSE 0.05000 to 0.07500, σ_MAD 0.03100 to 0.03300, CRPS "
        "0.01200 to 0.01400, PIT-KS 0.06100 to 0.05300. In 2 bins of the true z: σ_MAD 0.03000 to "
        "0.04000, CRPS 0.01100 to 0.02200, PIT-KS 0.07000 to 0.08000."
    )
    assert "before runs kept" not in view.panel.object
    view.clear()
    assert (view.alt, view.panel.object) == (NOTHING, "")


def test_rows_that_lack_the_same_inputs_have_a_row() -> None:
    view = ScoreTables()
    view.show(BINS, BIN_SCORES, MISSING, MISSING_SCORES, PATTERNS, BANDS)
    _, by_pattern, _ = rows(view.panel.object)
    assert [row[:3] for row in by_pattern] == [
        ["none", "1,500", "0.1000"], ["u, r", "40", "0.2000"],
    ]  # fmt: skip
    assert by_pattern[1][-1] == "180.0"
    assert "<g>" not in view.panel.object
    view.show(BINS, BIN_SCORES, MISSING, MISSING_SCORES, PATTERNS[:, :1], BANDS)  # a complete table
    assert len(rows(view.panel.object)) == 2


def test_a_run_of_before_says_what_it_has_not_kept() -> None:
    view = ScoreTables()
    view.show(BINS, None, MISSING[:3], None)
    by_band, by_bin = rows(view.panel.object)
    assert by_bin[1] == ["0.2 to 0.3", "40", "0.02000", "0.04000", "6.2"]
    assert by_band[1] == ["1 input", "0.06000"]
    assert view.panel.object.count("An earlier version made this run") == 2
    assert "CRPS" not in view.panel.object + view.alt


def test_too_few_rows_for_a_bin_and_no_band_to_miss() -> None:
    view = ScoreTables()
    view.show(BINS[:, :0], BIN_SCORES[:, :0], MISSING[:, :1], MISSING_SCORES[:, :1])
    assert view.alt == (
        "No input can be missing. No bin has the twenty held-out rows that scores need."
    )


def test_names_of_columns_are_no_markup() -> None:
    view = ScoreTables()
    view.show(BINS, BIN_SCORES, MISSING, MISSING_SCORES, target="<b>z</b>")
    assert "<b>" not in view.panel.object


@pytest.fixture(scope="module")
def demo() -> Any:
    store = Store.open("sqlite://")
    store.import_shipped(["redshift"])
    return SimpleNamespace(
        report=store.report("demo-redshift"), metadata=store.run("demo-redshift").metadata
    )


def test_the_recorded_run_has_them_all_also_on_a_page_without_a_session(demo: Any) -> None:
    with set_curdoc(Document()):
        view = score_tables()
        view.update(demo.report, demo.metadata)
        made = Markup().of(view.panel)
    by_band, by_bin = rows(view.panel.object)
    assert len(by_bin) == demo.report.arrays["bins"].shape[1]
    assert {len(row) for row in by_bin} == {2 + len(OF_BINS)}
    assert {len(row) for row in by_band} == {1 + len(OF_MISSING)}
    assert "nan" not in view.alt
    assert by_bin[0][0] in made
