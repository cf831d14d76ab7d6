"""The events page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import PATIENCE, button, come_to, reading, status

SMALL = "max_steps=12&baselines=false&repeats=1&train_rows=80"
PROBABILITIES = "Probabilities by class"
WORTH = "What is each view worth?"

pytestmark = pytest.mark.usefixtures("nothing_complains")


def test_it_opens_alive_and_a_view_is_taken_away(visit: Callable[[str], Page]) -> None:
    page = visit("/events")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, PROBABILITIES)).to_contain_text("above one half", timeout=PATIENCE)
    expect(reading(page, "What each neuron contributes")).to_contain_text("contributes")
    expect(page.get_by_role("heading", name="How long will this patient live?")).not_to_be_visible()
    said = come_to(page, WORTH)
    expect(said).to_contain_text("Untick a view", timeout=PATIENCE)
    page.locator(".figure").filter(has_text=WORTH).get_by_role("checkbox").first.uncheck()
    button(page, "Train with these").click()
    expect(said).to_contain_text(re.compile("F1 is 0.* against 0"), timeout=PATIENCE)
    row = come_to(page, "One row, neuron by neuron")
    expect(row).to_contain_text("with a probability of", timeout=PATIENCE)


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/events"), "What if it were trained otherwise?")


def test_survival_is_another_task_with_figures_of_its_own(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/events?data=survival&{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    button(page, "Train").click()
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    expect(status(page)).to_contain_text(re.compile("^converged|^hit limit"), timeout=PATIENCE)
    curves = reading(page, "Survival, observed and predicted")
    expect(curves).to_contain_text("Half live beyond", timeout=PATIENCE)
    expect(page.get_by_role("heading", name=PROBABILITIES)).not_to_be_visible()
    patient = come_to(page, "How long will this patient live?")
    expect(patient).to_contain_text("predicted, between", timeout=PATIENCE)
