"""The table that a full run of `scant reproduce` left, on the page of its study."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pandas as pd
import pytest

from scant.reproduce.tables import STAND_IN, read
from scant.studies import STUDIES
from scant_dashboard.page_parts import published_table


@pytest.mark.parametrize("study", STUDIES)
def test_every_figure_of_the_file_stands_on_the_page(study: str) -> None:
    rows = read(study)
    assert rows is not None
    markup = published_table.whole_table(study)
    message = unescape(re.sub("<[^>]+>", " ", markup))
    for row in rows.itertuples():
        assert str(row.method) in message
        assert str(row.experiment) in message
    tables = unescape(re.sub("<[^>]+>", " ", markup[markup.index("<details>") :]))
    spreads = rows[["spread", "published_spread"]].notna().to_numpy().sum()
    assert len(re.findall(r"\d\s+± [\d.e-]+", tables)) == spreads
    assert len(re.findall(r"published -?[\d.]+ ", tables)) == rows["published"].notna().sum()
    assert len(re.findall(r"other program -?[\d.]+ ", tables)) == rows["theirs"].notna().sum()
    for data in rows["data"].unique():
        assert str(data) in message
        if STAND_IN in str(data):
            assert message.index("Not the publication's own data") < message.index(str(data))
    assert str(rows["machine"].iloc[0]) in message
    assert str(pd.Timestamp(rows["date"].iloc[0]).year) in message


def test_a_study_without_a_file_shows_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(published_table, "_whole_table", published_table._whole_table.__wrapped__)
    monkeypatch.setattr(published_table, "read", lambda study: None)
    assert published_table.whole_table("genes") == ""
