"""A table of one's own from anywhere: dropped on the page, pasted, mended and dropped again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, button, drop, press, status, until

DROP = """(text) => {
  const carried = new DataTransfer()
  carried.items.add(new File([text], 'mine.csv', {type: 'text/csv'}))
  for (const name of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent(
    new DragEvent(name, {bubbles: true, cancelable: true, composed: true, dataTransfer: carried}))
}"""
PASTE = """(text) => {
  const carried = new DataTransfer()
  carried.setData('text/plain', text)
  document.body.dispatchEvent(new ClipboardEvent('paste',
    {bubbles: true, cancelable: true, composed: true, clipboardData: carried}))
}"""
SMALL = "training_size=60&validation_size=30&test_size=30&n_basis=3&max_steps=4&restarts=1"


def survey(scale: float, sign: str = ",") -> str:
    rows = [[k / 7 % 3, k % 5, (k / 7 % 3) * scale] for k in range(150)]
    return "\n".join(sign.join(map(str, row)) for row in [["u", "g", "z"], *rows])


@pytest.mark.usefixtures("nothing_complains")
def test_a_table_is_dropped_pasted_mended_and_trained(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/redshift?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    assert page.title() == "Redshift · Scant"
    page.evaluate(PASTE, "https://example.org/table.csv")
    expect(page.get_by_text("does not download files from web addresses")).to_be_visible(
        timeout=PATIENCE
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.evaluate(PASTE, survey(0.1, "\t"))
    expect(page.get_by_text("pasted.tsv: 150 rows, 3 columns")).to_be_visible(timeout=PATIENCE)
    for scale in (0.2, 0.3):  # the second in place of the first, under the same name
        if page.get_by_role("dialog").count():
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_be_hidden()
        page.evaluate(DROP, survey(scale))
        press(page, "Use this table")
        expect(page.get_by_text("mine.csv: 150 rows, 3 columns, kept")).to_be_visible(
            timeout=PATIENCE
        )
    button(page, "Train").click()
    expect(page).to_have_url(re.compile("[?&]run="), timeout=PATIENCE)
    until(page, "converged|^finished|^limit reached")
    expect(page.get_by_role("combobox", name="Source")).to_have_text(re.compile("mine.csv"))


@pytest.mark.usefixtures("nothing_complains")
def test_a_table_goes_to_the_page_that_it_suits(page: Page, app_url: str) -> None:
    rows = "".join(f"{k / 7},{k % 5},{'ab'[k % 3 == 0]}\n" for k in range(90))
    page.goto(f"{app_url}/redshift")
    drop(page, "cells.csv", f"area,perimeter,kind\n{rows}".encode())
    page.get_by_role("link", name="Open it on Mitosis").click(timeout=PATIENCE)
    expect(page).to_have_url(re.compile("/mitosis"), timeout=PATIENCE)
    expect(page.get_by_text("cells.csv: 90 rows, 3 columns")).to_be_visible(timeout=PATIENCE)
    target = page.get_by_role("combobox", name="Use kind as")
    expect(target).to_have_value("label")
    press(page, "Use this table")
    expect(page.get_by_text("cells.csv: 90 rows, 3 columns, kept")).to_be_visible(timeout=PATIENCE)
