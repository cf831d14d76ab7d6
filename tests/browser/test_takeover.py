"""A visitor who enters through the static page: it is readable, and the live page loses nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from scant_dashboard.static_page.published import FOLDER
from tests.browser.accessible import assert_accessible
from tests.browser.conftest import Served, serving
from tests.browser.visiting import PATIENCE, button, figure, status

# What Chromium counts as jumps of the layout.
SHIFTS = """new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    if (!one.hadRecentInput) window.jumped = (window.jumped ?? 0) + one.value
}).observe({type: 'layout-shift', buffered: true})"""

# Press a button; whether it is disabled, the status, and whether numbers and captions are visible.
PRESSED = """(button) => {
  button.click()
  const seen = (place) => getComputedStyle(document.querySelector(place)).visibility
  const said = document.querySelector("[role=status]").textContent
  return [button.disabled, said, seen(".line dl"), seen(".reading")]
}"""


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose static page of redshift is made."""
    with serving(tmp_path_factory.mktemp("still"), SCANT_STATIC_PAGES="1") as server:
        wait_for_pages(server.data / FOLDER)
        yield server


def wait_for_pages(folder: Path) -> None:
    until = time.monotonic() + PATIENCE / 1000
    while not [*folder.glob("redshift-*.html")]:
        assert time.monotonic() < until, "no static page was made"
        time.sleep(0.2)


def taken_over(page: Page) -> None:
    """Wait until the live page has taken over."""
    page.wait_for_url(re.compile("redshift"), timeout=PATIENCE)
    page.wait_for_function(
        "typeof Bokeh !== 'undefined' && Bokeh.documents.length"
        " && !document.getElementById('still')",
        timeout=PATIENCE,
    )


def test_without_scripts_the_recorded_run_can_be_read(browser: Browser, still: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{still.url}/redshift")
    expect(page.get_by_role("heading", level=1)).to_have_text("Redshift")
    expect(status(page)).to_contain_text("recorded run")
    expect(
        page.get_by_role("img", name=re.compile("log marginal likelihood")).first
    ).to_be_visible()
    page.get_by_text("Read on", exact=True).click()
    expect(page.locator("details.fold[open]")).to_contain_text("What is scarce")
    assert not [url for url in requests if "/static/" in url]
    context.close()


def test_the_gallery_is_dark_and_leads_on_without_a_session(page: Page, still: Served) -> None:
    sockets: list[Any] = []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.goto(still.url)
    assert_accessible(page, "Redshift")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    button(page, "Toggle theme").click()
    expect(page.locator("body")).not_to_have_css("background-color", light)
    page.get_by_role("link", name=re.compile("Redshift.*Open the finished run")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Redshift")
    expect(page.locator("body")).not_to_have_css("background-color", light)
    assert not sockets


def test_slider_and_keys_are_on_the_live_page_and_nothing_jumps(page: Page, still: Served) -> None:
    page.add_init_script(SHIFTS)
    page.goto(f"{still.url}/redshift")
    field = page.get_by_label("Training size").first
    field.click()
    field.press("End")
    page.keyboard.type("7")
    page.keyboard.type("53", delay=300)  # while the live page is on its way
    taken_over(page)
    expect(page.get_by_label("Training size")).to_have_value("2000753")
    expect(page.get_by_label("Training size")).to_be_focused()
    assert "live" not in page.url
    assert page.evaluate("window.jumped ?? 0") < 0.05

    page.goto(f"{still.url}/redshift")
    page.get_by_label(re.compile("^Scarcity")).focus()
    page.keyboard.press("ArrowLeft")
    taken_over(page)
    expect(page.get_by_label("Training size")).to_have_value("1000", timeout=PATIENCE)


def test_train_answers_at_once_and_opens_its_run(page: Page, still: Served) -> None:
    page.goto(f"{still.url}/redshift")
    told: list[Any] = []
    page.on("response", lambda answer: told.append(answer) if "start" in answer.url else None)
    # Before anything else happens, the page says so and no longer shows the earlier numbers.
    assert button(page, "Train").evaluate(PRESSED) == [True, "starting…", "hidden", "hidden"]
    page.wait_for_url(re.compile(r"redshift\?.*run="), timeout=PATIENCE)
    page.wait_for_url(re.compile(r"redshift\?run="), timeout=PATIENCE)
    taken_over(page)
    expect(status(page)).not_to_contain_text("recorded")
    assert [answer.status for answer in told] == [200]
    page.reload()
    expect(status(page)).to_contain_text(re.compile("running|converged|finished"), timeout=PATIENCE)


def test_a_box_drawn_in_a_figure_is_drawn_on_the_live_page(page: Page, still: Served) -> None:
    page.goto(f"{still.url}/redshift")
    page.get_by_role("heading", name="Select rows").scroll_into_view_if_needed()
    frame = figure(page, "Select rows").locator(".plot .frame").first
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.9 * box["height"], steps=5)
    page.mouse.up()
    taken_over(page)
    fewer = re.compile(r"^[1-9][\d,]* of 2,000 rows selected")
    expect(page.get_by_text(fewer)).to_be_visible(timeout=PATIENCE)


def test_a_list_opens_on_the_live_page_and_takes_a_choice(page: Page, still: Served) -> None:
    page.goto(f"{still.url}/redshift")
    page.get_by_role("combobox", name="Covariance").click()
    taken_over(page)
    page.get_by_role("menuitem", name="GC", exact=True).click(timeout=PATIENCE)
    expect(page.get_by_role("combobox", name="Covariance")).to_contain_text("GC")


def test_a_box_that_is_unticked_stays_so(page: Page, still: Served) -> None:
    page.goto(f"{still.url}/redshift")
    page.get_by_role("checkbox", name="mag_z").uncheck()
    taken_over(page)
    expect(page.get_by_role("checkbox", name="mag_z")).not_to_be_checked(timeout=PATIENCE)
    expect(page.get_by_role("checkbox", name="mag_u")).to_be_checked()


def test_a_file_that_is_dropped_is_read_on_the_live_page(page: Page, still: Served) -> None:
    page.goto(f"{still.url}/redshift")
    rows = "\n".join(f"{k},{k % 7},{k / 9}" for k in range(40))
    page.evaluate(
        """(text) => {
          const carrier = new DataTransfer()
          carrier.items.add(new File([text], 'mine.csv', {type: 'text/csv'}))
          const main = document.querySelector('main')
          for (const kind of ['dragover', 'drop'])
            main.dispatchEvent(new DragEvent(kind, {dataTransfer: carrier, bubbles: true,
              cancelable: true, composed: true}))
        }""",
        f"one,other,z\n{rows}\n",
    )
    taken_over(page)
    expect(page.get_by_role("dialog")).to_contain_text("mine.csv", timeout=PATIENCE)


def test_back_leads_to_the_page_before(page: Page, still: Served) -> None:
    page.goto(still.url)
    page.get_by_role("link", name=re.compile("Redshift.*Open the finished run")).click()
    page.get_by_label(re.compile("^Scarcity")).focus()
    page.keyboard.press("ArrowLeft")
    taken_over(page)
    page.go_back()
    expect(page).to_have_url(f"{still.url}/")
    expect(page.get_by_role("link", name=re.compile("Redshift"))).not_to_have_count(0)
