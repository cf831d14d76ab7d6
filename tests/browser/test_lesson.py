"""Lessons as a class meets them: a link that hides and says, keys, and guesses before answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from scant_dashboard.page_parts.guess_first import HIDDEN_TEXT
from tests.browser.visiting import PATIENCE, button, come_to, figure, reading


@pytest.fixture(scope="module")
def room(browser: Browser) -> Iterator[Page]:
    """One window for all of these, as a presenter has it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    loud = ("error", "warning")
    page.on("console", lambda m: complaints.append(m.text) if m.type in loud else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []
    context.close()


def visit(page: Page, address: str) -> None:
    page.goto(address)
    page.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)


def test_a_link_is_made_and_holds_what_it_says(room: Page, app_url: str) -> None:
    visit(room, f"{app_url}/aggregation")
    button(room, "Make a lesson link +").click()
    room.get_by_label("Text above the figures").fill("Where is <b>detail</b> made?")
    room.get_by_label("Guess first: answers").check()
    link = room.get_by_label("Link to this lesson")
    expect(link).to_have_value(re.compile("run=demo-aggregation.*guess=1"), timeout=PATIENCE)
    expect(link).to_have_value(re.compile("text=Where"))
    visit(room, link.input_value() + "&hide=data,settings,keep,nothing")
    expect(room.get_by_text("Where is <b>detail</b> made?")).to_be_visible(timeout=PATIENCE)
    expect(room.get_by_text("There is nothing called 'nothing' to hide")).to_be_visible()
    for name in ("Data", "Settings", "Keep"):
        expect(room.get_by_role("heading", name=name, exact=True)).to_have_count(0)


def test_coverage_is_said_nowhere_before_it_is_revealed(room: Page) -> None:
    """Goes on where the test before has ended: at a lesson that asks for guesses."""
    caption = come_to(room, "Coverage of intervals")
    expect(caption).to_have_text(HIDDEN_TEXT, timeout=PATIENCE)
    asked = figure(room, "Coverage of intervals")
    expect(asked.get_by_text("How many of a hundred intervals contain their value?")).to_be_visible(
        timeout=PATIENCE
    )
    everything = room.content() + room.evaluate("() => document.body.innerText")
    assert "lie in the 95% interval" not in everything
    expect(figure(room, "Figures").get_by_text("coverage of the 95% interval")).to_have_count(0)
    for title in (
        "Held-out values",
        "Posterior mean and deviation",
    ):  # they count rows in intervals
        expect(reading(room, title)).to_have_text(HIDDEN_TEXT)
    asked.get_by_role("slider").press("ArrowRight")
    for count in ("1 guess so far", "2 guesses so far"):
        button(room, "Count this guess").click()
        expect(asked.get_by_text(count)).to_be_visible()
    asked.get_by_role("button", name="Reveal").click()
    said = asked.get_by_text(
        re.compile(
            r"of 1,000 intervals contain their value, \d+ of a hundred\. Of 2 guesses the nearest"
        )
    )
    expect(said).to_be_visible(timeout=PATIENCE)
    expect(caption).to_contain_text("lie in the 95% interval", timeout=PATIENCE)
    expect(figure(room, "Figures").get_by_text("coverage of the 95% interval")).to_be_visible()
    expect(reading(room, "Held-out values")).to_contain_text("within their 95% interval")


def test_keys_step_from_the_figure_that_the_link_begins_at(room: Page, app_url: str) -> None:
    visit(room, f"{app_url}/clamp?present&guess&step=3")
    at = room.locator("nav.steps .at")
    expect(at).to_have_text(re.compile(r"^3 of \d+: Next queries$"), timeout=PATIENCE)
    asked = figure(room, "Next queries")
    expect(asked.get_by_role("button", name="B", exact=True)).to_be_in_viewport(timeout=PATIENCE)
    expect(reading(room, "Next queries")).to_have_text(
        "4 rows of the pool, A to D.", timeout=PATIENCE
    )
    room.keyboard.press("?")
    expect(room.get_by_text("leave present mode")).to_be_visible()
    room.keyboard.press("Escape")
    expect(room.get_by_text("leave present mode")).to_be_hidden()
    room.keyboard.press("ArrowLeft")
    expect(at).to_have_text(re.compile(r"^2 of \d+: "))
    assert "step=2" in room.url
    room.keyboard.press("n")
    expect(at).to_have_text(re.compile(r"^3 of \d+: "))
    asked.get_by_role("button", name="B", exact=True).click()
    room.keyboard.press(" ")  # on a button a space presses it
    expect(asked.get_by_role("button", name="B · 2")).to_be_visible()
    room.keyboard.press("g")
    said = asked.get_by_text(re.compile(r"It selects [A-D], with p = 0"))
    expect(said).to_be_visible(timeout=PATIENCE)
    expect(reading(room, "Next queries")).to_contain_text("p from", timeout=PATIENCE)
    room.keyboard.press("r")  # the queue does not move in a replay: the curve's figure is shown
    expect(at).to_have_text(re.compile(r"^[^3] of \d+: "))
    expect(button(room, "Pause replay")).to_be_visible(timeout=PATIENCE)
    room.keyboard.press("r")
    expect(button(room, "Resume replay")).to_be_visible()
