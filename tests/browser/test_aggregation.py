"""The aggregation page end to end, as a visitor lives through it, in a real browser."""

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
    figure,
    reading,
    status,
    use_and_train,
)

SMALL = "fine_rows=40&n_inducing=30&max_steps=40&patience=0"
PICTURE = "Posterior mean and deviation"
ASK = "Ask for the average"
CURVE = "How many fine values"


pytestmark = pytest.mark.usefixtures("nothing_complains")


def test_it_opens_alive_and_answers_a_box_and_a_curve(visit: Callable[[str], Page]) -> None:
    page = visit("/aggregation")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, PICTURE)).to_contain_text("against the truth", timeout=PATIENCE)
    expect(come_to(page, "Aggregate check")).to_contain_text("184 rows", timeout=PATIENCE)
    expect(come_to(page, ASK)).to_contain_text("95% interval", timeout=PATIENCE)
    first = page.get_by_text("is the average over the box").inner_text()
    age = page.get_by_label("age from")
    age.fill("20")
    age.press("Enter")
    said = page.get_by_text(re.compile(r"0\.\d+ ± 0\.\d+ is the average over the box"))
    expect(said).not_to_have_text(first, timeout=PATIENCE)
    before = said.inner_text()
    expect(reading(page, ASK)).to_contain_text("95% interval", timeout=PATIENCE)

    picture = figure(page, ASK)
    drawn = picture.get_by_role("img", name="Draw a box").nth(1)
    drawn.scroll_into_view_if_needed()
    mean = drawn.bounding_box()
    assert mean is not None
    page.mouse.move(mean["x"] + 0.4 * mean["width"], mean["y"] + 0.3 * mean["height"])
    page.mouse.down()
    page.mouse.move(mean["x"] + 0.6 * mean["width"], mean["y"] + 0.5 * mean["height"], steps=5)
    page.mouse.up()
    expect(said).not_to_have_text(before, timeout=PATIENCE)

    come_to(page, CURVE)
    button(page, "Compute the whole curve").click()
    whole = re.compile(r"With 5 fine observations, SMSE is 0\.")
    expect(reading(page, CURVE)).to_contain_text(whole, timeout=PATIENCE)
    slider = page.get_by_role("slider", name="Number of fine observations")
    slider.press("ArrowRight")
    expect(reading(page, CURVE)).to_contain_text("With 10 fine", timeout=PATIENCE)
    slider.press("ArrowLeft")
    expect(reading(page, CURVE)).to_contain_text("With 5 fine", timeout=PATIENCE)


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/aggregation"), "What is each task worth?")


def test_training_in_one_dimension_is_seen_and_a_task_can_be_left_out(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/aggregation?{SMALL}&data=counts")
    button(page, "Train").click()
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    expect(status(page)).to_contain_text(
        re.compile("^converged|^finished|^limit reached"), timeout=PATIENCE
    )
    expect(reading(page, "Objective")).to_contain_text("Step 40", timeout=PATIENCE)
    expect(reading(page, PICTURE)).to_contain_text("widest 95% interval", timeout=PATIENCE)
    expect(page.get_by_role("row", name="this run")).to_be_visible(timeout=PATIENCE)
    come_to(page, "What is each task worth?")
    button(page, "Train again without support 2").click()
    expect(page.get_by_label("Leave out")).to_have_value("support 2", timeout=PATIENCE)


def boxes(rows: int = 60) -> bytes:
    """Averages of a parabola over boxes of six units, and values at points."""
    lo = np.arange(rows / 2) * 2.0
    lines = [f"mean,{a},{a + 6},{((a + 3) ** 2 + 3) / 100}" for a in lo]
    lines += [f"point,{a},{a},{a * a / 100}" for a in lo]
    return "\n".join(["sensor,hour_lo,hour_hi,value", *lines, ""]).encode()


def test_an_own_table_of_boxes_is_trained_on_and_a_broken_one_is_said(
    page: Page, app_url: str
) -> None:
    page.goto(f"{app_url}/aggregation?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    broken = boxes().replace(b"mean,4.0,10.0", b"mean,10.0,4.0")
    drop(page, "boxes.csv", broken)
    alert = page.locator("p.error[role=alert]")
    expect(alert).to_contain_text("boxes.csv", timeout=PATIENCE)
    expect(alert).to_contain_text("row 4")
    drop(page, "boxes.csv", boxes())
    use_and_train(page, "boxes.csv: 60 rows")
    expect(reading(page, PICTURE)).to_contain_text("The mean is between", timeout=PATIENCE)
    expect(page.get_by_role("row", name="this run").first).to_be_visible(timeout=PATIENCE)
