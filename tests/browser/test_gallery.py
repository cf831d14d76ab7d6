"""A table that is dropped on the gallery finds the page that suits it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, drop


@pytest.mark.usefixtures("nothing_complains")
def test_a_dropped_table_is_taken_to_the_page_that_suits_it(page: Page, app_url: str) -> None:
    draw = np.random.default_rng(0)
    columns = {name: draw.normal(size=80) for name in ("wing", "beak", "tail")}
    table = pd.DataFrame({**columns, "species": draw.choice(["finch", "wren"], 80)})
    page.goto(app_url)
    dialog = page.get_by_role("dialog")
    drop(page, "broken.csv", b"\x00\x01\x02")
    expect(dialog.get_by_text("broken.csv holds binary data")).to_be_visible(timeout=PATIENCE)
    drop(page, "birds.csv", table.to_csv(index=False).encode())
    expect(dialog.get_by_role("status")).to_contain_text("suits birds.csv", timeout=PATIENCE)
    expect(dialog.locator("ol > li")).to_have_text(["Mitosis: 'species' holds 2 classes."])
    dialog.locator("ol").get_by_role("link").click()
    page.wait_for_url(lambda url: "/mitosis?file=" in url)
    expect(dialog).to_contain_text("birds.csv: 80 rows, 4 columns", timeout=PATIENCE)
    expect(page.get_by_label("Use species as")).not_to_have_value("")
