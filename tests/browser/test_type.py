"""The type of figures, as a browser draws it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, reading

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


def test_axes_are_read_from_the_back_row(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(f"{app_url}/aggregation?present=1")
    expect(reading(page, "Objective")).to_contain_text("Step", timeout=PATIENCE)
    sizes = [re.search(r"([\d.]+)px", font) for font in page.evaluate(FONTS)]
    assert len(sizes) >= 4
    assert all(size is not None and float(size[1]) >= 18 for size in sizes)
