"""One short walk through every page: it opens with its recorded run, trains, and shows the result.

Nothing on the way may complain. What is particular to a page is tested in a file of its own.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from scant.studies import STUDIES
from tests.browser.visiting import PATIENCE, press, status, until
from tests.tiny import query

pytestmark = pytest.mark.usefixtures("nothing_complains")


def test_the_gallery_leads_to_every_page(page: Page, app_url: str) -> None:
    page.goto(app_url)
    for study in STUDIES:
        expect(page.locator(f"main a[href$='/{study}']").first).to_be_visible(timeout=PATIENCE)


@pytest.mark.parametrize("study", STUDIES)
def test_a_page_opens_trains_and_shows_the_result(study: str, page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{study}?{query(study)}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    press(page, "Train")
    page.wait_for_url("**/*run=*", timeout=PATIENCE)
    until(page, "converged|^finished|^limit reached")
    expect(page.get_by_role("row", name="this run").first).to_be_visible(timeout=PATIENCE)
