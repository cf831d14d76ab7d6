"""The labeling desk's own script, told what a busy server tells it: all in one breath."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from scant_dashboard.template import assets, component
from tests.browser.conftest import Served

# The address is only a place to stand at: what is no page of ours may run no script.
pytestmark = pytest.mark.browser_context_args(bypass_csp=True)

# A component's model as the browser has it: values, and who is called when one of them changes.
DESK = """async (script) => {
  const heard = {}
  const model = {cards: [], queue: [], history: [], unsure: [], disputes: [], agreement: '',
    names: {}, progress: {}, classes: ['no', 'yes'], open: true, undoable: false, idle: 'wait',
    session: 0,
    send_msg: () => {},
    on: (names, act) => { for (const name of [names].flat()) (heard[name] ??= []).push(act) }}
  window.tell = (name, value) => {
    model[name] = value
    for (const act of heard[name]) act()
  }
  window.cards = (rows) => tell('cards', rows.map((row) => ({row, features: []})))
  const {render} = await import(URL.createObjectURL(new Blob([script], {type: 'text/javascript'})))
  render({model, el: document.body})
}"""
BEHIND = "cards([1, 2]); tell('session', 1); cards([3]); cards([4])"
BEFORE = "tell('session', 1); cards([1, 2]); cards([3]); cards([4])"


def stand_at(page: Page, served: Served) -> None:
    """Open an empty page that has the desk."""
    page.goto(f"{served.url}/healthz")
    page.add_script_tag(path=assets() / "words.js")
    page.evaluate(DESK, component("labeling"))


@pytest.mark.parametrize("told", [BEHIND, BEFORE])
@pytest.mark.parametrize("row", [2, 3, 4])
def test_cards_that_come_right_behind_others_replace_none(
    page: Page, served: Served, told: str, row: int
) -> None:
    """Panel may put the first cards of a session before the word that it begins."""
    stand_at(page, served)
    page.evaluate(f"() => {{ {told}; tell('queue', [{{row: {row}, why: 'asked'}}]) }}")
    expect(page.locator(".bench")).to_have_attribute("data-row", str(row))


def test_a_new_session_forgets_the_cards_of_the_one_before(page: Page, served: Served) -> None:
    stand_at(page, served)
    page.evaluate("() => { cards([1]); tell('queue', [{row: 1, why: 'asked'}]) }")
    expect(page.locator(".bench")).to_have_attribute("data-row", "1")
    page.evaluate("() => { cards([]); tell('session', 1) }")
    expect(page.locator(".bench")).to_have_attribute("data-row", "")
