"""The genes page end to end, as a visitor lives through it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessible import assert_accessible
from tests.browser.visiting import (
    PATIENCE,
    come_to,
    drop,
    figure,
    reading,
    select_rows,
    status,
    use_and_train,
)

SMALL = "n_inducing_outputs=2&n_inducing_inputs=6&max_steps=15&patience=0&baselines=false"
PICTURE = "Replicas, observed and missing"
HIDE = "Hide a replica"
BROWSE = "Every output"

pytestmark = pytest.mark.usefixtures("nothing_complains")


def test_it_opens_alive_and_a_hidden_replica_returns(visit: Callable[[str], Page]) -> None:
    page = visit("/genes")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    expect(reading(page, PICTURE)).to_contain_text("of 26 held-out points", timeout=PATIENCE)
    expect(reading(page, "Where the outputs lie")).to_contain_text("6 outputs", timeout=PATIENCE)
    expect(come_to(page, "The same rows")).to_contain_text("rows", timeout=PATIENCE)
    come_to(page, HIDE)
    grid = figure(page, HIDE)
    cells = grid.get_by_role("img", name="Click a replica")
    cells.scroll_into_view_if_needed(timeout=PATIENCE)
    box = cells.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    said = page.get_by_text(re.compile(r"the model predicts its \d+ points with an NMSE of \d"))
    expect(said).to_be_visible(timeout=PATIENCE)
    come_to(page, BROWSE)
    expect(reading(page, BROWSE)).to_contain_text("of 6 outputs", timeout=PATIENCE)


def test_rows_selected_in_one_figure_have_metrics_of_their_own(
    visit: Callable[[str], Page],
) -> None:
    (rows, value), (fewer, other) = select_rows(visit("/genes"), "NLPD")
    assert 0 < fewer < rows
    assert value != other


def test_axe_finds_nothing_against_it(visit: Callable[[str], Page]) -> None:
    assert_accessible(visit("/genes"), "What do hierarchy and correlation each contribute?")


def test_an_own_table_is_trained_on_and_a_broken_one_is_said(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/genes?{SMALL}")
    expect(status(page)).to_contain_text("recorded", timeout=PATIENCE)
    drop(page, "mine.csv", table().replace(b"joint 1,trial 2,0.0", b"joint 1,trial 2,noon"))
    alert = page.locator("p.error[role=alert]")
    expect(alert).to_contain_text("mine.csv, column 'time', row 12: got 'noon'", timeout=PATIENCE)
    drop(page, "mine.csv", table())
    use_and_train(page, "mine.csv: 80 rows")
    expect(reading(page, PICTURE)).to_contain_text("2 outputs, up to 4 replicas", timeout=PATIENCE)
    expect(page.get_by_role("row", name="this run")).to_be_visible(timeout=PATIENCE)


def table() -> bytes:
    """Two outputs in four trials of ten times."""
    lines = ["channel,trial,time,value"]
    for d in (1, 2):
        for r in (1, 2, 3, 4):
            lines += [
                f"joint {d},trial {r},{t / 2},{np.sin(t / 2 + d) + r / 10:.4f}" for t in range(10)
            ]
    return "\n".join([*lines, ""]).encode()
