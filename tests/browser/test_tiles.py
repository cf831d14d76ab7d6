"""Tiles are placed by the browser: within the width, none over another, in whole rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from scant_dashboard.page_parts.widgets import column
from scant_dashboard.plots.coregionalization_grid import HintonGrid
from scant_dashboard.plots.images import GalleryPlot
from scant_dashboard.static_page.markup import Markup
from scant_dashboard.static_page.page import colors
from scant_dashboard.static_page.replay import _bokeh
from scant_dashboard.template import assets, style

pytestmark = pytest.mark.slow("dashboard/scant_dashboard/plots", "assets")

SCRIPTS = ("tiles", "figures")
# Boxes of the first rectangles that have data, in pixels, and the frame's size.
BOXES = """() => {
  const [figure] = [...Bokeh.index.query((view) => view.model.type === 'Figure')]
  const {width, height} = figure.frame.bbox
  const quads = [...Bokeh.index.query((view) => view.model.type === 'Quad')]
  const {sleft, sright, stop, sbottom} = quads.find((glyph) => glyph.data_size > 0)
  const boxes = [sleft, stop, sright, sbottom].map((side) => Array.from(side))
  return {boxes, frame: [width, height]}
}"""
NAMES = """() => [...Bokeh.index.query((view) => view.model.type === 'GlyphRenderer')]
  .filter(({model}) => model.glyph.type === 'Text' && model.glyph.text_font_size.value === '11px')
  .map(({model}) => model.visible)"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


def shown(page: Page, plot: Any, width: int) -> Any:
    """Draw a plot as on pages without a session."""
    page.set_viewport_size({"width": width, "height": 2_000})
    markup = Markup()
    html = markup.of(column(plot.panel))
    page.set_content(f"<style>body {{ margin: 0 }} {colors()} {style('plots')}</style>{html}")
    for script in (_bokeh(), *((assets() / f"{n}.js").read_text("utf-8") for n in SCRIPTS)):
        page.add_script_tag(content=script)
    page.evaluate("Figures.all()")
    page.wait_for_function("() => document.querySelector('.plot[data-drawn]')")
    page.wait_for_function(f"() => ({BOXES})().boxes[2].every((right) => right > 0)")
    return page.evaluate(BOXES)


# A toolbar of 30 pixels stands beside the tiles.
@pytest.mark.parametrize(("width", "n", "columns"), [
    (230, 7, 2), (390, 7, 4), (871, 40, 9), (2000, 40, 22), (2000, 1, 1),
])  # fmt: skip
def test_tiles_fit_the_width(page: Page, width: int, n: int, columns: int) -> None:
    plot = GalleryPlot("g", min_side=88, max_side=112)
    plot.show(np.zeros((n, 4, 6)), [["a", "b"]] * n, "some")
    made = shown(page, plot, width)
    left, top, right, bottom = map(np.array, made["boxes"])
    wide, high = made["frame"]
    assert len(left) == n
    assert len(np.unique(left.round())) == min(n, columns)
    assert right.max() <= wide + 1
    assert bottom.max() + 2 * 15 <= high + 1  # with its two lines of text
    assert ((bottom - top) / (right - left)).tolist() == pytest.approx([4 / 6] * n, rel=0.02)
    apart = (left[:, None] >= right) | (right[:, None] <= left)
    apart |= (top[:, None] >= bottom) | (bottom[:, None] <= top)
    assert (apart | np.eye(n, dtype=bool)).all()


@pytest.mark.parametrize(("width", "named"), [(900, True), (150, False)])
def test_names_that_are_too_small_are_not_shown(page: Page, width: int, named: bool) -> None:
    plot = HintonGrid("B", min_side=100, max_side=460)
    names = [f"digit {k}" for k in range(10)]
    plot.show(np.eye(10)[None], [""], names, ["digits"] * 10)
    shown(page, plot, width)
    assert page.evaluate(NAMES) == [named] * 2


def test_tiles_may_change_before_the_figure_is_laid_out(page: Page) -> None:
    for script in (_bokeh(), (assets() / "tiles.js").read_text("utf-8")):
        page.add_script_tag(content=script)
    page.evaluate("Tiles.arrange(new (Bokeh.Models.get('Figure'))({tags: [1]}))")
