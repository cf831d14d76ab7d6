"""Figures of `/publications`: drawn once their details are opened, in the page's theme."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE

pytestmark = pytest.mark.slow("data/published", "dashboard/scant_dashboard/static_page", "assets")

NAME = "Y21 Figure 5.2"
# Of each figure: the width of its frame, its numbers of ticks, and the color of its tick labels
# beside that of the page's quiet text.
AXES = """() => Bokeh.index.roots.filter(({frame}) => frame).map((view) => {
  const quiet = getComputedStyle(document.body).getPropertyValue('--quiet').trim()
  const axes = [...view.model.below, ...view.model.left].filter((one) => one.ticker)
  return {
    width: view.frame.bbox.width,
    ticks: axes.map((axis) => axis.ticker.ticks.length),
    colors: [quiet, ...axes.map((axis) => axis.major_label_text_color)],
  }
})"""
INK = """() => {
  const canvas = Bokeh.index.roots.find(({frame}) => frame).export('png', false).canvas
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
  return data.filter((value, i) => i % 4 === 3 && value > 0).length
}"""


def test_a_figure_is_drawn_when_it_is_opened_light_and_dark(page: Page, app_url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{app_url}/publications")
    place = page.locator(f"[data-figures='{NAME}']")
    expect(place).to_be_hidden()
    page.wait_for_load_state("networkidle")
    assert not any("bokeh" in url or "?figures" in url for url in asked)

    place.locator("xpath=ancestor::details").locator("summary").click()
    place.scroll_into_view_if_needed()
    expect(place.locator(".plot[data-drawn]")).to_have_count(2, timeout=PATIENCE)
    assert sum("?figures=" in url for url in asked) == 1
    for dark in (False, True):
        if dark:
            page.get_by_role("button", name="Toggle theme").click()
            expect(page.locator("html.dark")).to_have_count(1)
        page.wait_for_function(
            f"() => ({AXES})().every(({{colors}}) => new Set(colors).size === 1)", timeout=PATIENCE
        )
        axes = page.evaluate(AXES)
        assert len(axes) == 2
        for one in axes:
            assert one["width"] > 100
            assert all(ticks >= 3 for ticks in one["ticks"])
        assert page.evaluate(INK) > 1000
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_settings_fit_into_a_narrow_screen(page: Page, app_url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app_url}/publications")
    page.evaluate(
        "for (const one of document.querySelectorAll('details.settings')) one.open = true"
    )
    frames = page.locator("details.settings .frame")
    assert frames.count() > 0
    widths = frames.evaluate_all("(all) => all.map((one) => [one.scrollWidth, one.clientWidth])")
    assert all(scroll <= client for scroll, client in widths), widths
