"""The log of a normal day: pages opened, left, loaded anew and used, and not a line about it."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import OPENING, Served
from tests.browser.visiting import button, drop, train, until, until_step

# A run that goes on while its pages come and go.
LIVE = "training_size=200&validation_size=80&test_size=120&n_basis=4&max_steps=3000&restarts=1"
LOUD = re.compile(
    r"Traceback|WARNING|ERROR|CRITICAL|Warning:|Error\b|never retrieved|never awaited"
)

# Models that the server has sent and the browser would send back whole, as new ones of its own.
TAKEN_FOR_NEW = """() => {
  const doc = Bokeh.documents[0]
  return [...doc._new_models].filter((model) => /^p\\d+$/.test(model.id)).map((model) => model.type)
}"""


def test_a_normal_visit_leaves_no_warning_in_the_log(browser: Browser, served: Served) -> None:
    log = served.data.parent / "log"
    before = log.stat().st_size
    context = browser.new_context()
    context.set_default_timeout(OPENING)
    page = context.new_page()
    train(page, f"{served.url}/redshift?{LIVE}")
    until_step(page, 5)
    second = context.new_page()
    second.goto(page.url)
    until_step(second, 10)
    second.close()  # in the midst of training
    page.reload()
    page.reload()  # while the page is being built
    until_step(page, 20)
    drop(page, "mine.csv", (Path("data/templates/redshift.csv")).read_bytes())
    expect(page.get_by_text("mine.csv").first).to_be_visible()
    assert page.evaluate(TAKEN_FOR_NEW) == []
    page.set_viewport_size({"width": 300, "height": 500})
    until(page, "converged|^finished|^limit reached")
    page.goto(f"{served.url}/omniglot")
    button(page, "Train").wait_for()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.close()
    context.close()
    lines = log.read_bytes()[before:].decode().splitlines()
    assert [line for line in lines if LOUD.search(line)] == []
