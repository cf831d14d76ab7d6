"""Nothing is cut: columns of tables, and the first screen of a page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from scant.studies import STUDIES
from tests.browser.visiting import PATIENCE, button, figure

# How far each table of figures reaches beyond its frame, in pixels.
BEYOND = """() => {
  const deep = (root) => [...root.querySelectorAll('*')]
    .flatMap((n) => n.shadowRoot ? [n, ...deep(n.shadowRoot)] : [n])
  return deep(document).filter((n) => n.classList.contains('frame') && n.clientWidth)
    .map((n) => n.scrollWidth - n.clientWidth)
}"""


@pytest.mark.parametrize("study", STUDIES)
def test_no_column_of_a_table_is_cut(visit: Callable[[str], Page], study: str) -> None:
    page = visit(f"/{study}")
    before = page.viewport_size
    page.wait_for_function(f"() => ({BEYOND})().length", timeout=PATIENCE)
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(f"() => innerWidth === {width}")
        page.wait_for_function(f"() => ({BEYOND})().every((pixels) => pixels <= 1)")
    if before is not None:
        page.set_viewport_size(before)


def test_the_first_screen_has_train_the_curve_and_the_main_figure(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(app_url + "/redshift", timeout=PATIENCE)
    expect(page).to_have_title("Redshift · Scant")
    expect(button(page, "Train")).to_be_in_viewport(ratio=1, timeout=PATIENCE)
    for title in ("Objective", "Prediction against truth"):
        drawn = figure(page, title).get_by_role("img").first
        expect(drawn).to_be_in_viewport(ratio=0.7, timeout=PATIENCE)
