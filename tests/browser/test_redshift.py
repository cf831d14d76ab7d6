"""The redshift page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

SMALL = "training_size=200&validation_size=80&test_size=120&n_basis=4&max_steps=25&restarts=1"
LONG = "training_size=1500&n_basis=40&max_steps=5000&patience=0&restarts=1&test_size=120"
PATIENCE = 120_000  # ms; other work may share the machine's cores


@pytest.fixture
def redshift(page: Page, app_url: str) -> Page:
    """The page as it opens, with the recorded run on it, and a list of what went wrong."""
    page.goto(f"{app_url}/redshift")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, "Objective")).to_contain_text("Step", timeout=PATIENCE)
    return page


def status(page: Page) -> Locator:
    return page.get_by_role("status").first


def reading(page: Page, title: str) -> Locator:
    """The caption of a figure."""
    return (
        page.locator(".figure")
        .filter(has=page.get_by_role("heading", name=title))
        .locator(".reading")
    )


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def test_it_opens_alive_and_every_figure_says_what_it_shows(redshift: Page) -> None:
    expect(status(redshift)).to_contain_text(re.compile("^converged|^hit limit"))
    for title in ("Coverage of intervals", "Bands missing", "Bin by bin"):
        expect(reading(redshift, title)).to_contain_text(re.compile(r"\d"), timeout=PATIENCE)
    labels = [f.get_attribute("aria-label") or "" for f in redshift.get_by_role("img").all()]
    plots = [label for label in labels if ". " in label]
    assert len(plots) >= 15
    assert [p for p in plots if "Nothing to show" in p and "p(z)" not in p] == []


def test_training_is_seen_from_the_first_step_to_the_result(
    page: Page, app_url: str, browser: Browser
) -> None:
    page.goto(f"{app_url}/redshift?{SMALL}")
    button(page, "Train").click()
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    expect(status(page)).not_to_contain_text("recorded")
    expect(status(page)).to_contain_text(re.compile("^converged|^hit limit"), timeout=PATIENCE)
    expect(reading(page, "Objective")).to_contain_text(re.compile(r"^Step \d+:"))
    expect(reading(page, "Prediction against truth")).to_contain_text("120 rows")
    expect(page.get_by_role("row", name="this run")).to_be_visible(timeout=PATIENCE)

    other = browser.new_context()
    try:
        watcher = other.new_page()
        watcher.goto(page.url)
        expect(status(watcher)).to_have_text(status(page).inner_text(), timeout=PATIENCE)
        expect(reading(watcher, "Objective")).to_have_text(reading(page, "Objective").inner_text())
    finally:
        other.close()


def test_pause_resume_and_stop_answer_and_leave_a_usable_result(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/redshift?{LONG}")
    button(page, "Train").click()
    expect(status(page)).to_contain_text(re.compile("^running"), timeout=PATIENCE)
    button(page, "Pause").click()
    expect(status(page)).to_contain_text(re.compile("^paus"))
    expect(status(page)).to_contain_text(re.compile("^paused"), timeout=PATIENCE)
    button(page, "Resume").click()
    expect(status(page)).to_contain_text(re.compile("^running"), timeout=PATIENCE)
    button(page, "Stop").click()
    expect(status(page)).to_contain_text(re.compile("^stopp"))
    expect(status(page)).to_contain_text(re.compile("^stopped"), timeout=PATIENCE)
    expect(page.get_by_role("heading", name="Explore")).to_be_visible(timeout=PATIENCE)


def test_a_band_switched_off_moves_metrics_and_density(redshift: Page) -> None:
    what_if = reading(redshift, "What if a band")
    expect(what_if).to_contain_text("Most likely", timeout=PATIENCE)
    before = what_if.inner_text()
    box = redshift.get_by_role("checkbox", name="mag_u")
    box.uncheck()
    grown = redshift.get_by_text(re.compile(r"RMSE grows by a factor of \d"))
    expect(grown).to_be_visible(timeout=PATIENCE)
    assert what_if.inner_text() != before
    box.check()
    expect(grown).to_be_hidden(timeout=PATIENCE)
    expect(what_if).to_have_text(before, timeout=PATIENCE)


def test_a_guess_is_asked_for_before_the_answer_is_shown(redshift: Page) -> None:
    redshift.get_by_label("Guess, then reveal").check()
    redshift.get_by_role("checkbox", name="mag_g").uncheck()
    expect(redshift.get_by_text("how much will the error grow?")).to_be_visible(timeout=PATIENCE)
    grown = redshift.get_by_text("RMSE grows by a factor of")
    expect(grown).to_be_hidden()
    redshift.wait_for_timeout(1500)
    button(redshift, "Reveal").click()
    expect(grown).to_be_visible(timeout=PATIENCE)
    expect(redshift.get_by_text("You guessed 2.0.")).to_be_visible()


def test_a_galaxy_is_chosen_by_number_or_by_a_click(redshift: Page) -> None:
    what_if = reading(redshift, "What if a band")
    expect(what_if).to_contain_text("the truth is", timeout=PATIENCE)
    before = what_if.inner_text()
    number = redshift.get_by_label("Galaxy (row of the test set)")
    number.press("ControlOrMeta+a")
    number.press_sequentially("7")
    number.press("Enter")
    expect(what_if).not_to_have_text(before, timeout=PATIENCE)
    before = what_if.inner_text()
    plot = redshift.locator(".figure").filter(has=what_if).get_by_role("img").first
    plot.scroll_into_view_if_needed()
    frame = plot.bounding_box()
    assert frame is not None
    for place in np.linspace(0.25, 0.6, 30):  # along the diagonal, until one is hit
        x = frame["x"] + 60 + place * (frame["width"] - 130)
        y = frame["y"] + (0.85 - 0.75 * place) * frame["height"]
        redshift.mouse.click(x, y)
        redshift.wait_for_timeout(100)
        if number.input_value() != "7":
            break
    assert number.input_value() != "7"
    expect(what_if).not_to_have_text(before, timeout=PATIENCE)


def test_the_slider_of_the_share_kept_reads_the_metrics(redshift: Page) -> None:
    kept = reading(redshift, "Keep only")
    expect(kept).to_contain_text("Keeping the 100%", timeout=PATIENCE)
    redshift.get_by_role("slider", name=re.compile("Share of galaxies kept")).press("ArrowLeft")
    expect(kept).to_contain_text("Keeping the 95%", timeout=PATIENCE)


def test_zooming_holds_the_curve_until_follow(redshift: Page) -> None:
    plot = redshift.locator(".figure").first.get_by_role("img").first
    frame = plot.bounding_box()
    assert frame is not None
    expect(button(redshift, "Follow")).to_be_hidden()
    plot.hover()
    redshift.locator(".figure").first.locator(".bk-tool-icon-wheel-zoom").first.click()
    redshift.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    redshift.mouse.wheel(0, -300)
    expect(button(redshift, "Follow")).to_be_visible(timeout=PATIENCE)
    button(redshift, "Follow").click()
    expect(button(redshift, "Follow")).to_be_hidden(timeout=PATIENCE)


def test_downloads_hold_the_run(redshift: Page, tmp_path: Path) -> None:
    for name, word in (("Script", "engine.fit("), ("Predictions", "z_mean"), ("Figures", "Bokeh")):
        with redshift.expect_download(timeout=PATIENCE) as waiting:
            button(redshift, name).click()
        waiting.value.save_as(tmp_path / name)
        assert word in (tmp_path / name).read_text(encoding="utf-8")


def test_figures_open_alone_and_offline(redshift: Page, browser: Browser, tmp_path: Path) -> None:
    with redshift.expect_download(timeout=PATIENCE) as waiting:
        button(redshift, "Figures").click()
    waiting.value.save_as(tmp_path / "figures.html")
    offline = browser.new_context(offline=True)
    try:
        page = offline.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"file://{tmp_path / 'figures.html'}")
        expect(page.locator("canvas").first).to_be_visible(timeout=PATIENCE)
        assert errors == []
    finally:
        offline.close()
