"""What axe has against the forms that a page opens only when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.test_clamp import begin
from tests.browser.test_clamp import press as label
from tests.browser.visiting import PATIENCE, SMALL, button, come_to, drop, until

TABLE = "u,g,r,z\n" + "\n".join(f"{i},{i + 1},{i + 2},0.{i}" for i in range(10, 99))
ASKED = "Coverage of intervals"


def asked(page: Page) -> Locator:
    return page.locator(".figure").filter(has=page.get_by_role("heading", name=ASKED))


def test_the_guess_and_its_answer_and_runs_laid_side_by_side(visit: Callable[[str], Page]) -> None:
    page = visit(f"/redshift?{SMALL}")
    button(page, "Train").click(timeout=PATIENCE)
    page.wait_for_url(re.compile("[?&]run="), timeout=PATIENCE)
    until(page, "converged|^hit limit")
    come_to(page, ASKED)
    asked(page).get_by_label("Guess first").check(timeout=PATIENCE)
    asked(page).get_by_role("button", name="Count this guess").click(timeout=PATIENCE)
    asked(page).get_by_role("button", name="Reveal").click()
    expect(asked(page).get_by_text("You guessed")).to_be_visible(timeout=PATIENCE)
    boxes = page.get_by_role("checkbox", name=re.compile("^compare"))
    for k in range(2):
        boxes.nth(k).check()
    expect(page.get_by_role("heading", name="Compared")).to_be_visible(timeout=PATIENCE)
    assert_accessible(page, "Compared")


def test_the_forms_of_upload_and_lesson_and_a_question(visit: Callable[[str], Page]) -> None:
    """Goes on where the test before has ended."""
    page = visit(f"/redshift?{SMALL}")
    drop(page, "mine.csv", TABLE.encode())
    expect(button(page, "Use this table")).to_be_visible(timeout=PATIENCE)
    button(page, "Make a lesson link +").click(timeout=PATIENCE)
    expect(page.get_by_label("Link to this lesson")).to_have_value(re.compile("run="))
    come_to(page, ASKED)
    for turn in ("uncheck", "check"):  # it is asked anew
        getattr(asked(page).get_by_label("Guess first"), turn)(timeout=PATIENCE)
    expect(asked(page).get_by_role("slider")).to_be_enabled(timeout=PATIENCE)
    assert_accessible(page, ASKED)


def test_the_desk_that_a_person_sits_at(page: Page, app_url: str) -> None:
    begin(page, app_url)
    label(page, "1")
    assert_accessible(page, "Label")
