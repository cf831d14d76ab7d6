"""Layout and type as a browser has them: a change lays out the parts that it concerns and no
others (assets/upstream/layout.js), and figures are read from the back row.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, figure, reading, settled

# Counts how often each plot is laid out anew, and names what the tests look at.
FIND = """() => {
  const plots = [], walk = (view) => {
    if (view.frame?.bbox) plots.push(view)
    for (const child of view.child_views ?? []) walk(child)
  }
  Bokeh.index.roots.forEach(walk)
  window.seen = plots.filter((plot) => plot.is_displayed)
  for (const plot of seen) {
    if ('anew' in plot) continue
    const update = plot._update_layout
    plot.anew = 0
    plot._update_layout = function () { this.anew += 1; return update.call(this) }
  }
  return seen.length
}"""
# The last plot below something of some height, which may be hidden: what comes late may be empty.
LAST = """() => seen.findLastIndex((plot) => {
  const head = plot.parent.child_views[0].el.getBoundingClientRect()
  return head.height > 0 && head.bottom <= plot.el.getBoundingClientRect().top + 1
})"""
# A change, as it would come from the server, and some frames after which it shows.
CHANGE = """async ([at, change]) => {
  const turn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
  for (const plot of seen) plot.anew = 0
  const heading = seen[at].parent.child_views[0].model
  const on = change.visible === undefined ? seen[at].model : heading
  on.setv(change, {sync: false})
  for (let turns = 0; turns < 12; turns++) await turn()
  // Below the first plot: where the page is scrolled, the browser holds still what is in view.
  const first = seen[0].el.getBoundingClientRect().top
  return seen.map((plot) => {
    const at = plot.el.getBoundingClientRect(), {left, top, width, height} = plot.frame.bbox
    const below = at.top - first
    return {anew: plot.anew, top: below, height: at.height, frame: [left, top, width, height]}
  })
}"""


def test_only_what_a_change_concerns_is_laid_out(visit: Callable[[str], Page]) -> None:
    page = visit("/genes")
    expect(reading(page, "Objective")).to_contain_text("Step", timeout=PATIENCE)
    # Figures are built when a visitor comes near.
    for title in ("What each level explains", "What more data would remove"):
        settled(figure(page, title))
    page.wait_for_function(f"() => ({FIND})() > 3 && ({LAST})() >= 3", timeout=PATIENCE)
    last = page.evaluate(LAST)
    before = page.evaluate(CHANGE, [last, {"height": 300}])

    taller = page.evaluate(CHANGE, [last, {"height": 400}])
    assert [plot["anew"] > 0 for plot in taller[:3]] == [False] * 3
    assert taller[last]["height"] == 400
    gained = 400 - before[last]["height"]
    assert taller[last]["frame"][3] == before[last]["frame"][3] + gained

    hidden = page.evaluate(CHANGE, [last, {"visible": False}])
    assert [plot["anew"] > 0 for plot in hidden[:3]] == [False] * 3
    assert hidden[last]["top"] < taller[last]["top"], "what was hidden leaves no room"
    shown = page.evaluate(CHANGE, [last, {"visible": True}])
    assert shown[last]["top"] == taller[last]["top"]

    again = page.evaluate(CHANGE, [last, {"height": 300}])
    assert [plot["frame"] for plot in again] == [plot["frame"] for plot in before]


FONTS = """() => {
  const fonts = [], walk = (view) => {
    for (const axis of view.axis_views ?? []) {
      const {major_label_text, axis_label_text} = axis.visuals
      fonts.push(major_label_text.font_value(), axis_label_text.font_value())
    }
    for (const child of view.child_views ?? []) walk(child)
  }
  Bokeh.index.roots.forEach(walk)
  return fonts
}"""
# What is written in figures beside their axes, on color bars and as glyphs: its pixels.
WRITTEN = """(kind) => {
  const found = {bars: [], glyphs: []}
  const pixels = (font) => parseFloat(font.match(/[\\d.]+px/)[0])
  const walk = (view) => {
    for (const part of view.computed_renderer_views ?? []) {
      const bar = part._axis_view?.visuals.major_label_text, text = part.glyph?.visuals?.text
      if (bar) found.bars.push(pixels(bar.font_value()))
      if (text) found.glyphs.push(pixels(text.font_value(0)))
    }
    for (const child of view.child_views ?? []) walk(child)
  }
  Bokeh.index.roots.forEach(walk)
  return found[kind].length && found[kind]
}"""


def test_figures_are_read_from_the_back_row(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(f"{app_url}/aggregation?present=1")
    expect(reading(page, "Posterior mean and deviation")).to_contain_text("cells", timeout=PATIENCE)
    sizes = [re.search(r"([\d.]+)px", font) for font in page.evaluate(FONTS)]
    assert len(sizes) >= 4
    assert all(size is not None and float(size[1]) >= 24 for size in sizes)
    for kind, path in (("bars", "aggregation"), ("glyphs", "genes")):
        if path not in page.url:
            page.goto(f"{app_url}/{path}?present=1")
        assert min(page.wait_for_function(WRITTEN, arg=kind, timeout=PATIENCE).json_value()) >= 24


# Pixels of the smallest text in view. Roots of shadow trees are open.
SMALLEST = """() => {
  const sizes = []
  const walk = (node) => {
    const words = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim())
    if (words && node.checkVisibility?.()) sizes.push(parseFloat(getComputedStyle(node).fontSize))
    for (const child of [...node.children, ...node.shadowRoot?.children ?? []]) walk(child)
  }
  walk(document.querySelector('main'))
  return Math.min(...sizes)
}"""


def test_publications_are_read_from_the_back_row(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(f"{app_url}/publications")
    assert page.evaluate(SMALLEST) < 16
    page.goto(f"{app_url}/publications?present=1")
    assert page.evaluate(SMALLEST) >= 24
    page.set_viewport_size({"width": 1280, "height": 720})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
