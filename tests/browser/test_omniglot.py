"""The omniglot page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import PATIENCE, button, come_to, drop, reading, status, use_and_train
from tests.engine.tables.images.test_image_table import archive

# A stroke is told, and the paper emptied before the server has looked at it.
STROKE_AND_EMPTY = """(paper, button) => {
  for (const key of [' ', 'ArrowDown', ' '])
    paper.dispatchEvent(new KeyboardEvent('keydown', {key}))
  button.click()
}"""
SMALL = "size=8&n_latent=2&n_inducing=6&max_steps=12&patience=0&baselines=false&test_share=0.5"
ALIKE = "Which classes the model finds alike"
DRAW = "Draw an image"
GREEK = ("alpha", "beta", "gamma", "delta")

pytestmark = pytest.mark.usefixtures("nothing_complains")


def test_it_opens_alive_and_a_drawing_is_recognized(visit: Callable[[str], Page]) -> None:
    page = visit("/omniglot")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(page.get_by_text("With these settings, a fit takes about")).to_be_visible(
        timeout=PATIENCE
    )
    expect(reading(page, ALIKE)).to_contain_text("Most alike", timeout=PATIENCE)
    come_to(page, DRAW)
    paper = page.get_by_role("application", name="Paper to draw")
    said = reading(page, DRAW)
    expect(said).to_contain_text("Most probable in each group", timeout=PATIENCE)
    paper.evaluate(STROKE_AND_EMPTY, button(page, "Empty the paper").element_handle())
    expect(said).to_contain_text("Draw an image, or start", timeout=PATIENCE)
    paper.hover(position={"x": 80, "y": 60}, timeout=PATIENCE)  # waits until it stands still
    page.mouse.down()
    paper.hover(position={"x": 190, "y": 220})
    page.mouse.up()
    expect(said).to_contain_text("Most probable in each group", timeout=PATIENCE)
    paper.press("Delete")
    expect(said).to_contain_text("Draw an image, or start", timeout=PATIENCE)
    for key in ("Space", *["ArrowDown"] * 5, "Space"):
        paper.press(key)
    expect(said).to_contain_text("Most probable in each group", timeout=PATIENCE)


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/omniglot"), "What if it were trained otherwise?")


def test_a_zip_of_images_is_shown_and_trained_on_and_a_broken_one_is_said(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/omniglot?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    drop(page, "mine.zip", archive(255, 0)[:-30])
    alert = page.locator("p.error[role=alert]")
    expect(alert).to_contain_text("mine.zip is not a ZIP archive", timeout=PATIENCE)
    drop(page, "mine.zip", archive(255, 0, GREEK))
    expect(page.get_by_role("img", name="alpha of Greek")).to_be_visible(timeout=PATIENCE)
    use_and_train(page, "mine.zip: 8 rows")
    expect(reading(page, ALIKE)).to_contain_text("Most alike", timeout=PATIENCE)
