"""A lesson that asks the room: a presenter's screen and two phones, from the code to the reveal."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visiting import PATIENCE, button, figure, step_to

WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def windows(browser: Browser) -> Iterator[list[Page]]:
    """The presenter's window at 1280 pixels, and two phones of 390."""
    sizes = [(1280, 800), (390, 780), (390, 780)]
    contexts = [
        browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if k == 2 else "light",
            has_touch=k > 0,
        )
        for k, (width, height) in enumerate(sizes)
    ]
    complaints: list[str] = []
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    yield pages
    assert complaints == []
    for context in contexts:
        context.close()


def test_a_room_answers_and_its_guesses_are_revealed(windows: list[Page], app_url: str) -> None:
    screen, *phones = windows
    screen.goto(f"{app_url}/aggregation?present&guess")
    button(screen, "Ask the room").click()
    dialog = screen.get_by_role("dialog")
    expect(dialog.get_by_role("img", name=re.compile("QR code of http"))).to_be_visible()
    expect(dialog.get_by_role("alert")).to_contain_text("phones cannot reach it")
    address = f"http://{dialog.locator('.address').inner_text()}"
    for phone in phones:
        phone.goto(address)
        expect(phone.get_by_role("heading", level=1)).to_have_text(
            "No question at the moment. Look at the screen."
        )
        assert phone.evaluate("document.scripts.length") == 3
        assert not phone.evaluate(WIDE)
    expect(dialog.get_by_text("2 phones so far")).to_be_visible()
    screen.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert "present" in screen.url  # the key has closed no more than that

    step_to(screen, "Coverage of intervals")
    for k, (phone, key) in enumerate(zip(phones, ("ArrowRight", "End"), strict=True)):
        expect(phone.get_by_role("heading", level=1)).to_contain_text("held-out values")
        expect(phone.locator("#where")).to_be_empty()  # the question, not the figure's title
        phone.get_by_role("slider").press(key)
        phone.get_by_role("button", name="Send").click()
        expect(phone.get_by_role("status")).to_contain_text("Wait for the reveal")
        expect(screen.get_by_text(f"{k + 1} of 2 phones have answered.").first).to_be_visible()
        assert not phone.evaluate(WIDE)
    first = phones[0]
    first.get_by_role("slider").press("ArrowRight")
    button(first, "Change my answer").click()
    expect(first.get_by_role("status")).to_contain_text("Sent: 77")
    first.reload()
    expect(first.get_by_role("status")).to_contain_text("Sent: 77")  # it is the same phone

    coverage = figure(screen, "Coverage of intervals")
    expect(coverage.get_by_text("The room's guesses")).to_have_count(0)
    coverage.get_by_role("button", name="Reveal").click()
    expect(coverage.get_by_text("2 guesses. They range from 77 to 100")).to_be_visible()
    expect(coverage.get_by_role("img", name="The room's guesses")).to_be_visible()
    expect(coverage.get_by_text(re.compile("Of 2 guesses the nearest was"))).to_be_visible()
    for phone, own in zip(phones, ("77", "100"), strict=True):
        expect(phone.get_by_role("status")).to_contain_text(f"of a hundred. You guessed {own}.")
        expect(phone.get_by_role("button", name="Send")).to_be_hidden()


def test_phones_and_pages_go_along_until_they_are_let_go(windows: list[Page]) -> None:
    """Goes on where the test before has ended."""
    screen, phone, other = windows
    link = phone.get_by_role("link", name="Open the figures here")
    follower = phone.context.new_page()
    follower.goto(link.evaluate("(link) => link.href"))
    follower.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)
    at = follower.get_by_role("heading", name="Aggregate check")
    screen.keyboard.press("Home")
    expect(phone.get_by_text("Posterior mean and deviation")).to_be_visible()
    screen.keyboard.press("n")
    screen.keyboard.press("n")
    expect(other.get_by_text("Aggregate check")).to_be_visible()
    expect(at).to_be_in_viewport(timeout=PATIENCE)
    note = follower.get_by_text("This page follows the presenter.")
    expect(note).to_be_visible()
    button(follower, "My own copy").click()
    expect(note).to_be_hidden()
    assert "room=" not in follower.url
    follower.close()
    screen.get_by_role("switch", name="Lead").uncheck()
    expect(other.get_by_text("Aggregate check")).to_be_hidden()
    button(screen, "End the room").click()
    for page in (phone, other):
        expect(page.get_by_role("heading", level=1)).to_contain_text("The lesson has ended.")
    expect(button(screen, "Ask the room")).to_be_visible()
    assert "room=" not in screen.url


# Where the dot of a run is on the screen: its number to [x, y].
DOT = """(number) => {
  for (const doc of Bokeh.documents) for (const model of doc._all_models.values()) {
    if (model.type !== 'Figure') continue
    const dots = model.renderers.find((one) => one.data_source?.name === 'wall')
    const view = dots && Bokeh.index.find_one(model)
    if (!view?.frame) continue
    const of = (name) => Array.from(dots.data_source.get(name))
    const k = of('number').indexOf(number)
    if (k < 0) return null
    const box = view.el.getBoundingClientRect(), {x_scale, y_scale} = view.frame
    return [box.left + x_scale.compute(of('x')[k]), box.top + y_scale.compute(of('y')[k])]
  }
  return null
}"""


def test_everyone_trains_and_the_wall_shows_every_run(windows: list[Page], app_url: str) -> None:
    screen, *phones = windows
    screen.goto(f"{app_url}/aggregation?present")
    button(screen, "Ask the room").click()
    address = f"http://{screen.get_by_role('dialog').locator('.address').inner_text()}"
    screen.keyboard.press("Escape")
    button(screen, "Everyone trains").click()
    dialog = screen.get_by_role("dialog", name="Everyone trains")
    dialog.get_by_role("spinbutton", name="Lowest fine rows").fill("900")
    button(screen, "Start the wall").click()
    expect(dialog.get_by_role("alert")).to_have_text(
        "The lowest fine rows must be below the highest."
    )
    dialog.get_by_role("spinbutton", name="Lowest fine rows").fill("40")
    button(screen, "Start the wall").click()
    expect(dialog).to_be_hidden()
    wall = figure(screen, "The wall")
    expect(wall).to_be_in_viewport()
    for phone in phones:
        phone.goto(address)
        expect(phone.get_by_role("heading", level=1)).to_have_text("Everyone trains")
        button(phone, "Start my run").click()
        expect(button(phone, "Start my run")).to_be_hidden()
        assert not phone.evaluate(WIDE)
    expect(button(screen, "The wall: 3 runs")).to_be_visible()
    for phone, rows in zip(phones, (300, 170), strict=True):
        expect(phone.locator("#run")).to_contain_text(
            f"Fine rows {rows}: RMSE 0.0", timeout=PATIENCE
        )
        expect(phone.get_by_role("img", name="The objective of your run")).to_be_visible()
    reading = wall.locator(".reading")
    expect(reading).to_contain_text("3 runs have ended. RMSE from 0.0", timeout=PATIENCE)
    expect(reading).to_contain_text("Bold: run 1, fine rows 40, the presenter's")
    screen.wait_for_function(f"() => ({DOT})(3) !== null", timeout=PATIENCE)
    screen.mouse.click(*screen.evaluate(DOT, 3))
    expect(reading).to_contain_text("Bold: run 3, fine rows 170: RMSE 0.0")
    phones[0].reload()
    expect(phones[0].locator("#run")).to_contain_text("Fine rows 300: RMSE 0.0")  # the same phone
    button(screen, "The wall: 3 runs").click()
    button(screen, "Take the wall down").click()
    expect(wall).to_be_hidden()
    expect(phones[0].get_by_role("heading", level=1)).to_contain_text("No question at the moment.")
    button(screen, "End the room").click()
