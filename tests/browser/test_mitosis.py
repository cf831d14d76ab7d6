"""The mitosis page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import PATIENCE, come_to, drop, figure, reading, status, use_and_train

SHARED = "The space that all classes share"
WALK, CELL, LINE = "Walk through the latent space", "Classify a row", "Decision threshold"

pytestmark = pytest.mark.usefixtures("nothing_complains")


def cell() -> bytes:
    """A dark plate on light ground, larger than what the model has learned from."""
    gray = np.full((70, 70), 200, np.uint8)
    gray[30:40, 15:55] = 60
    file = BytesIO()
    Image.fromarray(gray).save(file, "PNG")
    return file.getvalue()


def test_it_opens_alive_and_a_cell_is_decoded_placed_and_judged(
    visit: Callable[[str], Page],
) -> None:
    page = visit("/mitosis")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, SHARED)).to_contain_text("mitosis overlaps the others", timeout=PATIENCE)

    said = come_to(page, WALK)
    expect(said).to_contain_text("Expected image of mitosis", timeout=PATIENCE)
    before = said.inner_text()
    slider = figure(page, WALK).get_by_role("slider").first
    for _ in range(3):
        slider.press("ArrowRight")
    expect(said).not_to_have_text(before, timeout=PATIENCE)
    before = said.inner_text()
    plane = figure(page, WALK).locator(".bk-Figure").first
    plane.click(position={"x": 200, "y": 120}, timeout=PATIENCE)
    expect(said).not_to_have_text(before, timeout=PATIENCE)

    said = come_to(page, CELL)
    expect(said).to_contain_text("This held-out row is", timeout=PATIENCE)
    chosen = figure(page, CELL).locator("input[type=file]")
    chosen.set_input_files({"name": "mine.png", "mimeType": "image/png", "buffer": cell()})
    expect(said).to_contain_text(re.compile(r"mine\.png is \w+ with probability"), timeout=PATIENCE)
    chosen.set_input_files({"name": "bad.png", "mimeType": "image/png", "buffer": b"no image"})
    alert = page.locator("p.error[role=alert]")
    expect(alert).to_contain_text("bad.png is not an image", timeout=PATIENCE)

    said = come_to(page, LINE)
    expect(said).to_contain_text("SCLVM detects", timeout=PATIENCE)
    before = said.inner_text()
    figure(page, LINE).get_by_role("slider").press("End")
    expect(said).not_to_have_text(before, timeout=PATIENCE)


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/mitosis"), "What if it were trained otherwise?")


def cells() -> bytes:
    """Twelve rare rows and sixty others by eight measured features, of three slides."""
    g = np.random.default_rng(0)
    lines = ["class,slide," + ",".join(f"feature {j}" for j in range(8))]
    for row in range(72):
        values = g.normal(size=8) + 1.5 * (row < 12)
        name = "dividing" if row < 12 else "at rest"
        lines.append(f"{name},slide {row % 3}," + ",".join(f"{v:.3f}" for v in values))
    return "\n".join([*lines, ""]).encode()


def test_an_own_table_is_trained_on_and_a_broken_one_is_said(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/mitosis?max_steps=12&baselines=false&n_inducing=8")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    drop(page, "mine.csv", cells().replace(b"at rest,slide 1", b"at rest,slide 1,none", 1))
    alert = page.locator("p.error[role=alert]")
    expect(alert).to_contain_text("mine.csv, row", timeout=PATIENCE)
    drop(page, "mine.csv", cells())
    use_and_train(page, "mine.csv: 72 rows")
    expect(reading(page, SHARED)).to_contain_text("dividing", timeout=PATIENCE)
    expect(page.get_by_role("row", name="this run")).to_be_visible(timeout=PATIENCE)
