"""Figures of static pages look as on live pages: their pictures, and what BokehJS draws of them."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from scant.studies import STUDIES
from scant_dashboard.static_page.published import SHIPPED, styles_key
from scripts.figure_pictures import DEEP, RESTS, SIZES, TEXT_WIDTHS
from tests.browser.conftest import ARGS, Served, serving
from tests.browser.visiting import PATIENCE

pytestmark = pytest.mark.slow("dashboard", "assets", "data/pages")

REST = 10  # looks at the live page until it rests
TALL = 16_000  # pixels of a window that shows a whole page
# Letters and lines of a picture are smoothed by Chromium's SVG, those of a canvas by its canvas; in
# a figure of many small markers their edges are a few percent of the pixels. A missing name, a
# stretched square or a filled ring differ within: by more than half of a color's range.
CLEARLY = 128  # of 255
# A missing or pale fill is hardly seen in any one pixel. Means over squares show it, while smoothed
# edges and shifts below a pixel average out: of 16 faithful pictures at most 0.5 % of the squares
# differed by more than 8. Where opacities of .04 to .15 had been rounded, 1.5 to 37 % did. Edges of
# black and white images, which fall half a pixel elsewhere, move means, too (6 % of the squares),
# but few pixels of a square; a fill changes most of them.
SQUARE, HAZE = 16, 8  # pixels, of 255
LIMITS = (0.02, 0.01)  # shares of a figure's pixels that differ clearly, of its squares by haze

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
  // The part of an element that nothing around it clips.
  const seen = (el) => {
    let {left, top, right, bottom} = el.getBoundingClientRect()
    for (let at = el; (at = at.parentElement ?? at.getRootNode().host);) {
      if (getComputedStyle(at).overflow === 'visible') continue
      const box = at.getBoundingClientRect()
      left = Math.max(left, box.left), top = Math.max(top, box.top)
      right = Math.min(right, box.right), bottom = Math.min(bottom, box.bottom)
    }
    return [left, top, right - left, bottom - top].map(Math.round)
  }
  let heading = ''
  for (const node of deep()) {
    if (/^H[1-3]$/.test(node.tagName)) heading = node.textContent.trim()
    const isFigure = isStatic ? node.matches('.plot') : views.has(node)
    if (!isFigure || !node.getClientRects().length) continue
    const box = isStatic ? shown(node) : node
    found.push({heading, box: seen(box)})
  }
  return found
}"""
# Whether no figure is on its way from its picture to BokehJS.
STEADY = """() => [...document.querySelectorAll('.plot [data-canvas]')]
  .every((canvas) => canvas.getBoundingClientRect().height > 0)"""
DRAWN = """() => [...document.querySelectorAll('.plot')].every((plot) =>
  !plot.getClientRects().length || plot.dataset.drawn !== undefined)"""


@pytest.fixture(scope="module")
def browser(launch_browser: Callable[..., Browser]) -> Iterator[Browser]:
    """A browser whose letters are as wide as in the pictures, so that legends break alike."""
    made = launch_browser(args=[*ARGS, TEXT_WIDTHS])
    yield made
    made.close()


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that shows the shipped static pages."""
    with serving(tmp_path_factory.mktemp("same"), SCANT_STATIC_PAGES="1") as server:
        yield server


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("kind", SIZES)
def test_figures_are_those_of_the_live_page(
    browser: Browser, still: Served, study: str, kind: str
) -> None:
    """Run `python scripts/ship_pages.py` where a picture differs."""
    assert SHIPPED.joinpath(f"{study}-{styles_key()}.html.gz").is_file(), "ship the pages first"
    context = browser.new_context(viewport={"width": SIZES[kind][0], "height": TALL})
    page = context.new_page()
    page.add_init_script(DEEP)
    page.goto(f"{still.url}/{study}", timeout=PATIENCE)
    page.wait_for_timeout(1_000)
    _wait(page, STEADY)
    pictures = _shown(page)
    page.evaluate("Figures.all()")
    _wait(page, DRAWN)
    page.wait_for_timeout(1_000)
    drawn = _shown(page)
    live = context.new_page()
    _open(live, f"{still.url}/{study}?live=1")
    differing: dict[Any, Any] = {("", "not seen", 0): (1.0, 1.0)}
    for _ in range(REST):  # answers of the model may come, and the layout rest
        shown = _shown(live)
        if shown.keys() == pictures.keys() == drawn.keys() != set():
            differing = {
                (how, *name): shares
                for how, seen in (("picture", pictures), ("drawn", drawn))
                for name in shown
                if np.any(np.greater(shares := _difference(shown[name], seen[name]), LIMITS))
            }
            if not differing:
                break
        live.wait_for_timeout(2_000)
    context.close()
    assert differing == {}


def _open(page: Page, address: str) -> None:
    """Open a live page, and wait until its figures are built."""
    page.add_init_script(DEEP)
    page.goto(address, timeout=PATIENCE)
    page.wait_for_function("() => main() && Bokeh.documents.length", timeout=PATIENCE)
    page.wait_for_function(RESTS, timeout=PATIENCE)


def _wait(page: Page, script: str) -> None:
    """Wait until a script returns true; static pages forbid what `wait_for_function` does."""
    for _ in range(PATIENCE // 100):
        if page.evaluate(script):
            return
        page.wait_for_timeout(100)
    raise AssertionError(script)


def _shown(page: Page) -> dict[tuple[str, int], np.ndarray]:
    """Return the pixels of each figure by its heading and its place under it."""
    figures: list[Any] = page.evaluate(FIGURES)
    image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    seen: dict[tuple[str, int], np.ndarray] = {}
    places: Counter[str] = Counter()
    for figure in figures:
        left, top, width, height = figure["box"]
        at = places[figure["heading"]]
        places[figure["heading"]] += 1
        pixels = image[top : top + height, left : left + width].astype(int)
        if pixels.shape[:2] == (height, width) and pixels.size:  # whole, within the window
            seen[figure["heading"], at] = pixels
    return seen


def _difference(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return the shares of pixels that differ clearly and of squares that differ as a whole.

    They are the least of those shifted by at most a pixel.
    """
    if np.abs(np.subtract(one.shape, other.shape)).max() > 1:
        return 1.0, 1.0
    height, width = (min(sizes) - 2 for sizes in zip(one.shape[:2], other.shape[:2]))
    inner = one[1 : 1 + height, 1 : 1 + width]
    moved = [other[y : y + height, x : x + width] for y in range(3) for x in range(3)]
    return min(
        (
            float((np.abs(inner - pixels).max(-1) > CLEARLY).mean()),
            float(_hazy(inner - pixels).mean()),
        )
        for pixels in moved
    )


def _hazy(difference: np.ndarray) -> np.ndarray:
    """Return for each square of `SQUARE` pixels whether its mean and most of its pixels differ."""
    height, width = (size // SQUARE for size in difference.shape[:2])
    whole = difference[: height * SQUARE, : width * SQUARE]
    squares = whole.reshape(height, SQUARE, width, SQUARE, -1)
    mean = np.abs(squares.mean((1, 3))).max(-1)
    median = np.median(np.abs(squares).max(-1), (1, 3))
    hazy: np.ndarray = (mean > HAZE) & (median > HAZE)
    return hazy
