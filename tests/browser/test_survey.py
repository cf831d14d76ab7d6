"""A survey's own file on the redshift page: dropped, looked at, kept, and training begins."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, button, drop, press, status
from tests.paths import REAL_DATA

RAIL = REAL_DATA / "photoz_rail" / "test_dc2_training_9816.hdf5"
SMALL = "time_budget=5&gap_seconds=0&n_basis=5&restarts=1"
BANDS = [f"mag_{band}_lsst" for band in "ugrizy"]


@pytest.mark.skipif(not RAIL.is_file(), reason="SCANT_REAL_DATA names no photoz_rail galaxies")
@pytest.mark.usefixtures("nothing_complains")
def test_the_file_of_rail_opens_as_it_is_in_three_clicks(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/redshift?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    drop(page, RAIL.name, RAIL.read_bytes())  # the first click opens the dialog
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{RAIL.name}: 10,225 rows, 14 columns", timeout=PATIENCE)
    expect(dialog).to_contain_text(f"6 columns to learn from: {', '.join(BANDS)}.")
    expect(dialog).to_contain_text("Column 'id': left out, because it appears to be a row number")
    for band, count, limit in (("u", 714, 26.62), ("g", 2, 28.32)):
        expect(dialog.get_by_text(f"Column 'mag_{band}_lsst': 99 in {count} cells")).to_have_text(
            re.compile(rf"'not detected', and its error was read as the limit \({limit}\)")
        )
    for band in "ugrizy":
        error = page.get_by_label(f"Use mag_err_{band}_lsst as")
        expect(error.locator("option:checked")).to_have_text(f"error of mag_{band}_lsst")
        expect(page.get_by_label(f"Use mag_{band}_lsst as")).to_have_value("=")
    expect(page.get_by_label("Use redshift as")).to_have_value("z")
    expect(page.get_by_label("Use id as")).to_have_value("")
    expect(dialog.get_by_role("combobox", name="Which column is")).to_have_count(0)
    press(page, "Use this table")
    kept = page.get_by_text(f"{RAIL.name}: 10,225 rows")
    expect(kept).to_be_visible(timeout=PATIENCE)
    press(page, "Train")
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    expect(status(page)).to_contain_text(re.compile("^(running|started|converged|finished|limit)"),
                                         timeout=PATIENCE)  # fmt: skip
    if button(page, "Stop").is_enabled():
        button(page, "Stop").click()
