"""The heads of the wizard's table say what each kind of column holds."""

from __future__ import annotations

import pytest

from scant.studies import STUDIES, entry
from scant.tables.read import inspect_table
from scant_dashboard.controls.column_table import holds

TABLE = b"""id;day;height [m];soil;nothing;nitrate
1;01.01.2024;451,5;sand;;25,2
2;02.01.2024;493,9;clay;;19,6
3;03.01.2024;;sand;;21,4
4;04.01.2024;420,1;sand;;20,9
"""


@pytest.mark.parametrize("study", STUDIES)
def test_numbers_words_dates_and_nothing(study: str) -> None:
    preview = inspect_table(TABLE, entry(study).table, name="water.csv")
    words = {column.name: holds(column) for column in preview.columns}
    assert words["height [m]"] == "420.1 to 493.9, 1 empty"
    assert words["soil"] == "text, 2 values"
    assert words["nothing"] == "empty"
    assert "4" in words["day"]
