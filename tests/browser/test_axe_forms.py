"""What axe has against the forms that a page opens only when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.accessible import assert_accessible, violations
from tests.browser.test_aggregation import boxes
from tests.browser.visiting import PATIENCE, button, come_to, drop, figure

ASKED = "Coverage of intervals"


def asked(page: Page) -> Locator:
    return figure(page, ASKED)


def test_the_guess_and_its_answer_and_the_form_of_a_lesson(visit: Callable[[str], Page]) -> None:
    page = visit("/aggregation")
    come_to(page, ASKED)
    asked(page).get_by_label("Guess first").check(timeout=PATIENCE)
    asked(page).get_by_role("button", name="Count this guess").click(timeout=PATIENCE)
    asked(page).get_by_role("button", name="Reveal").click()
    expect(asked(page).get_by_text("You guessed")).to_be_visible(timeout=PATIENCE)
    button(page, "Make a lesson link +").click(timeout=PATIENCE)
    expect(page.get_by_label("Link to this lesson")).to_have_value(re.compile("run="))
    assert_accessible(page, ASKED)


def test_the_form_of_an_upload_and_a_question(visit: Callable[[str], Page]) -> None:
    """Goes on where the test before has ended."""
    page = visit("/aggregation")
    drop(page, "mine.csv", boxes())
    expect(button(page, "Use this table")).to_be_visible(timeout=PATIENCE)
    # Its background is another color from then on.
    expect(page.get_by_text("Upload complete").first).to_be_visible(timeout=PATIENCE)
    found = violations(page)
    page.keyboard.press("Escape")
    come_to(page, ASKED)
    for turn in ("uncheck", "check"):  # it is asked anew
        getattr(asked(page).get_by_label("Guess first"), turn)(timeout=PATIENCE)
    expect(asked(page).get_by_role("slider")).to_be_enabled(timeout=PATIENCE)
    found += violations(page)
    assert not found, "\n".join(found)
