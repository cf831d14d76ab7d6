"""Figures of static pages look as on live pages: their pictures, and what BokehJS draws of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from scant.studies import STUDIES
from scant_dashboard.static_page.published import SHIPPED, styles_key
from scripts.figure_pictures import BUILT, DEEP, LAID, SIZES
from tests.browser.conftest import Served, serving
from tests.browser.visiting import PATIENCE

pytestmark = pytest.mark.slow("dashboard", "assets", "data/pages")

TALL = 14_000  # pixels of a window that shows a whole page
# Letters and lines of a picture are smoothed by Chromium's SVG, those of a canvas by its canvas; in
# a figure of many small markers their edges are a few percent of the pixels. A missing name, a
# stretched square or a filled ring differ within: by more than half of a color's range.
CLEARLY = 128  # of 255
SAME = 0.02  # share of a figure's pixels that may differ clearly

# Pages on which a figure still differs, mostly in size: tiles and matrices on a phone.
DIFFERING = {
    ("omniglot", "wide"), ("omniglot", "narrow"), ("multiview", "narrow"), ("redshift", "narrow"),
    ("genes", "narrow"), ("aggregation", "narrow"),
}  # fmt: skip

FIGURES = """() => {
  const query = () => [...Bokeh.index.query((view) => view.model.type === 'Figure')]
  const all = typeof Bokeh === 'undefined' ? [] : query()
  const views = new Map(all.map((view) => [view.el, view]))
  const isStatic = document.querySelector('.plot') !== null
  const found = []
  // Figures of a fixed shape are narrower than the element around them.
  const visible = (one) => one.nodeName === 'svg' && one.getClientRects().length
  const shown = (plot) => [...views.keys()].find((el) => plot.contains(el))
    ?? [...plot.children].find(visible) ?? plot
  let heading = ''
  for (const node of deep()) {
    if (/^H[1-3]$/.test(node.tagName)) heading = node.textContent.trim()
    const isFigure = isStatic ? node.matches('.plot') : views.has(node)
    if (!isFigure || !node.getClientRects().length) continue
    const box = isStatic ? shown(node) : node, model = views.get(node)?.model
    const {left, top, width, height} = box.getBoundingClientRect()
    const tiles = Boolean(model?.frame_height && !model.frame_width)
    found.push({heading, tiles, box: [left, top, width, height].map(Math.round)})
  }
  return found
}"""
DRAWN = """() => [...document.querySelectorAll('.plot')].every((plot) =>
  !plot.getClientRects().length || plot.dataset.drawn !== undefined)"""


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that shows the shipped static pages."""
    with serving(tmp_path_factory.mktemp("same"), SCANT_STATIC_PAGES="1") as server:
        yield server


@pytest.mark.parametrize(
    ("study", "kind"),
    [
        pytest.param(
            *case,
            marks=[pytest.mark.xfail(run=False, reason="a figure differs")] if differs else [],
        )
        for case in product(STUDIES, SIZES)
        for differs in [case in DIFFERING]
    ],
)
def test_figures_are_those_of_the_live_page(
    browser: Browser, still: Served, study: str, kind: str
) -> None:
    """Run `python scripts/ship_pages.py` where a picture differs."""
    assert SHIPPED.joinpath(f"{study}-{styles_key()}.html.gz").is_file(), "ship the pages first"
    context = browser.new_context(viewport={"width": SIZES[kind][0], "height": TALL})
    live = _live(context.new_page(), f"{still.url}/{study}?live=1")
    page = context.new_page()
    page.add_init_script(DEEP)
    page.goto(f"{still.url}/{study}", timeout=PATIENCE)
    page.wait_for_timeout(1_000)
    pictures = _shown(page)
    page.evaluate("Figures.all()")
    _wait(page, DRAWN)
    page.wait_for_timeout(1_000)
    drawn = _shown(page)
    context.close()
    assert live
    missing = live.keys() - pictures.keys()
    assert not missing
    # Tiles are placed on the server by their width, once it is known; a drawing scales them.
    tiles = {name for name, (is_tiled, _) in live.items() if is_tiled}
    differing = {
        (how, *name): share
        for how, seen in (("picture", pictures), ("drawn", drawn))
        for name in live.keys() - (tiles if how == "drawn" else set())
        if (share := _difference(live[name][1], seen[name][1])) > SAME
    }
    assert differing == {}


def _live(page: Page, address: str) -> dict[tuple[str, int], tuple[bool, np.ndarray]]:
    """Open a live page, wait until it is whole, and return its figures."""
    page.add_init_script(DEEP)
    page.goto(address, timeout=PATIENCE)
    page.wait_for_function("() => main() && Bokeh.documents.length", timeout=PATIENCE)
    page.wait_for_function(BUILT, timeout=PATIENCE)
    laid = ""
    while laid != (laid := page.evaluate(LAID)):
        page.wait_for_timeout(2_000)
    return _shown(page)


def _wait(page: Page, script: str) -> None:
    """Wait until a script returns true; static pages forbid what `wait_for_function` does."""
    for _ in range(PATIENCE // 100):
        if page.evaluate(script):
            return
        page.wait_for_timeout(100)
    raise AssertionError(script)


def _shown(page: Page) -> dict[tuple[str, int], tuple[bool, np.ndarray]]:
    """Return the pixels of each figure by its heading and its place under it."""
    figures: list[Any] = page.evaluate(FIGURES)
    image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    seen: dict[tuple[str, int], tuple[bool, np.ndarray]] = {}
    for figure in figures:
        left, top, width, height = figure["box"]
        at = sum(heading == figure["heading"] for heading, _ in seen)
        pixels = image[top : top + height, left : left + width].astype(int)
        seen[figure["heading"], at] = figure["tiles"], pixels
    return seen


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of pixels that differ clearly, at best if shifted by at most a pixel."""
    if np.abs(np.subtract(one.shape, other.shape)).max() > 1:
        return 1.0
    height, width = (min(sizes) - 2 for sizes in zip(one.shape[:2], other.shape[:2]))
    inner = one[1 : 1 + height, 1 : 1 + width]
    return min(
        float((np.abs(inner - other[y : y + height, x : x + width]).max(-1) > CLEARLY).mean())
        for y in range(3)
        for x in range(3)
    )
