"""What the tests of all pages do in a browser, and where they look."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Locator, Page, expect

KINDS = {"zip": "application/zip", "hdf5": "application/x-hdf5"}
PATIENCE = 120_000  # milliseconds; other work may share the machine's cores
SMALL = "training_size=200&validation_size=80&test_size=120&n_basis=4&max_steps=15&restarts=1"
LONG = "training_size=3000&n_basis=100&max_steps=5000&patience=0&restarts=1&test_size=120"

# The steps that the browser's own copy of the curve holds.
DRAWN = """() => {
  const of = (data, name) => data instanceof Map ? data.get(name) : data?.[name]
  for (const doc of Bokeh.documents) for (const model of doc._all_models.values()) {
    if (of(model.data, 'elbo') && of(model.data, 'score'))
      return Array.from(of(model.data, 'step')).filter(Number.isFinite)
  }
  return []
}"""


def status(page: Page) -> Locator:
    return page.get_by_role("status").first


def figure(page: Page, title: str) -> Locator:
    """A figure with its heading, plots and caption."""
    return page.locator(".figure").filter(has=page.get_by_role("heading", name=title))


def reading(page: Page, title: str) -> Locator:
    """The caption of a figure."""
    return figure(page, title).locator(".reading")


def come_to(page: Page, title: str) -> Locator:
    """Scroll to a figure, which is built when a visitor comes near; its caption."""
    page.get_by_role("heading", name=title).scroll_into_view_if_needed(timeout=PATIENCE)
    return reading(page, title)


def step_to(page: Page, title: str) -> None:
    """Step to a figure in present mode, where one figure is shown at a time.

    Figures come one after another as the page is built, and their number with them: on the last one
    so far, the next is waited for.
    """
    at = page.locator("nav.steps .at")
    expect(at).to_contain_text(" of ", timeout=PATIENCE)
    while not (before := at.inner_text()).endswith(f": {title}"):
        page.keyboard.press("ArrowRight")
        expect(at, f"no step is called {title}").not_to_have_text(before, timeout=PATIENCE)


def settled(plot: Locator) -> tuple[float, float, float, float]:
    """Scroll to a figure and wait until it rests; left, top, width and height of its box.

    Figures above it take their heights late, and so does the figure itself.
    """
    box, same = None, 0
    for _ in range(PATIENCE // 100):
        plot.scroll_into_view_if_needed(timeout=PATIENCE)
        before, box = box, plot.bounding_box()
        same = same + 1 if box == before else 0
        if box is not None and same == 5:
            return box["x"], box["y"], box["width"], box["height"]
        plot.page.wait_for_timeout(100)
    raise AssertionError("the figure does not come to rest")


def select_rows(page: Page, metric: str) -> list[tuple[int, str]]:
    """Draw a box in the first figure of "Select rows"; rows and metric before and after."""
    said = come_to(page, "Select rows")
    expect(said).to_contain_text("rows selected", timeout=PATIENCE)
    before = said.inner_text()
    left, top, width, height = settled(figure(page, "Select rows").get_by_role("img").first)
    page.mouse.move(left + 0.3 * width, top + 12)
    page.mouse.down()
    page.mouse.move(left + 0.62 * width, top + height - 70, steps=10)
    page.mouse.up()
    expect(said).not_to_have_text(before, timeout=PATIENCE)
    told = [
        re.findall(rf"^([\d,]+) of .* {metric} (\S+)", s)[0] for s in (before, said.inner_text())
    ]
    return [(int(rows.replace(",", "")), value.rstrip(";.")) for rows, value in told]


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def drop(page: Page, name: str, content: bytes) -> None:
    """Drop a file on the upload wizard, opening it first if need be."""
    if not page.get_by_role("dialog").count():
        press(page, "Use your own data")
    expect(page.get_by_role("dialog")).to_be_visible(timeout=PATIENCE)
    kind = KINDS.get(name.rpartition(".")[2], "text/csv")
    page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": kind, "buffer": content}
    )


def press(page: Page, name: str) -> None:
    button(page, name).click(timeout=PATIENCE)


def train(page: Page, address: str) -> str:
    """Open a page with these settings, press Train, and return the run's id."""
    page.goto(address, timeout=PATIENCE)
    page.get_by_role("heading", level=1).wait_for(timeout=PATIENCE)
    press(page, "Train")
    page.wait_for_url(re.compile("[?&]run="), timeout=PATIENCE)
    return parse_qs(urlsplit(page.url).query)["run"][0]


def use_and_train(page: Page, said: str) -> None:
    """Keep the table that was dropped, of which the page then says this, and train on it."""
    button(page, "Use this table").click(timeout=PATIENCE)
    expect(page.get_by_text(said)).to_be_visible(timeout=PATIENCE)
    button(page, "Train").click()
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    expect(status(page)).not_to_contain_text("recorded", timeout=PATIENCE)
    until(page, "converged|^finished|^limit reached")


def until(page: Page, what: str) -> None:
    """Wait until the status begins so."""
    expect(status(page)).to_contain_text(re.compile(f"^{what}"), timeout=PATIENCE)


def step_of(page: Page) -> int:
    drawn = page.evaluate(DRAWN)
    return int(drawn[-1]) if drawn else 0


def until_step(page: Page, step: int) -> None:
    for _ in range(PATIENCE // 100):
        if step_of(page) >= step:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"step {step} was never drawn; the page is at {step_of(page)}")


def assert_whole(steps: list[float]) -> None:
    """Every step once, in order; above a thousand the page thins its curve evenly."""
    gaps = np.diff(steps)
    assert steps[0] == 1
    assert gaps.min() >= 1
    assert gaps.max() <= max(1, len(steps) // 200)


def log_in(page: Page, name: str, word: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(word)
    press(page, "Log in")
