"""The multiview page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import (
    PATIENCE,
    button,
    come_to,
    drop,
    reading,
    select_rows,
    status,
    use_and_train,
)

SMALL = "max_steps=12&baselines=false&repeats=1&training_size=80"
PROBABILITIES = "Probabilities by class"
WORTH = "What is each view worth?"

pytestmark = pytest.mark.usefixtures("nothing_complains")


def test_it_opens_alive_and_a_view_is_taken_away(visit: Callable[[str], Page]) -> None:
    page = visit("/multiview")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, PROBABILITIES)).to_contain_text("above one half", timeout=PATIENCE)
    expect(reading(page, "What each neuron contributes")).to_contain_text("contributes")
    expect(page.get_by_role("heading", name="How long until the event?")).not_to_be_visible()
    said = come_to(page, WORTH)
    expect(said).to_contain_text("Clear a view", timeout=PATIENCE)
    page.locator(".figure").filter(has_text=WORTH).get_by_role("checkbox").first.uncheck()
    button(page, "Train with these").click()
    expect(said).to_contain_text(re.compile("F1 is 0.* against 0"), timeout=PATIENCE)
    row = come_to(page, "One row, neuron by neuron")
    expect(row).to_contain_text("with a probability of", timeout=PATIENCE)


def test_rows_selected_in_one_figure_have_metrics_of_their_own(
    visit: Callable[[str], Page],
) -> None:
    (rows, value), (fewer, other) = select_rows(visit("/multiview"), "accuracy")
    assert 0 < fewer < rows
    assert value != other


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/multiview"), "What if it were trained otherwise?")


def patients() -> str:
    """Forty patients of two slides each, whose life is shortened by what both views see."""
    g = np.random.default_rng(0)
    lines = ["patient;months;died;shape.a;shape.b;stain.a;stain.b"]
    for patient in range(40):
        risk = g.normal()
        time, died = np.exp(2 - risk), int(g.random() < 0.8)
        for _ in range(2):
            seen = ";".join(f"{risk + 0.3 * v:.3f}".replace(".", ",") for v in g.normal(size=4))
            lines.append(f"patient {patient};{time:.2f};{died};{seen}".replace(".", ",", 1))
    return "\n".join([*lines, ""])


def test_an_own_table_of_survival_is_trained_on_and_a_broken_one_is_said(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/multiview?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    drop(page, "mine.csv", patients().replace("patient 2;", "patient 2;soon", 1).encode())
    alert = page.locator("p.error[role=alert]")
    expect(alert).to_contain_text("mine.csv, column 'months', row 6: got 'soon", timeout=PATIENCE)
    drop(page, "mine.csv", patients().encode())
    use_and_train(page, "mine.csv: 80 rows")
    curves = reading(page, "Survival, observed and predicted")
    expect(curves).to_contain_text("Median time", timeout=PATIENCE)
    expect(page.get_by_role("heading", name=PROBABILITIES)).not_to_be_visible()
    patient = come_to(page, "How long until the event?")
    expect(patient).to_contain_text("predicted from", timeout=PATIENCE)
