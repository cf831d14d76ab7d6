"""What a crowd is told of a curve between two updates, as a browser draws it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.visiting import PATIENCE, reading

TELL = """(steps) => {
  const doc = Bokeh.documents[0]
  const values = steps.map((step) => step % 2 ? null : 0.5)
  doc._trigger_on_message('scant_news', {step: steps, elbo: values, score: values})
}"""
SHOWN = """() => {
  const doc = Bokeh.documents[0]
  const [news, extent] = ['news', 'extent'].map((name) => doc.get_model_by_name(name))
  return {step: Array.from(news.data.step), elbo: Array.from(news.data.elbo, String),
          right: extent.data.x[1]}
}"""
STREAM = """(step) => Bokeh.documents[0].get_model_by_name('curve')
  .stream({step: [step], elbo: [0.5], score: [0.5]}, undefined, {sync: false})"""


def test_news_are_drawn_after_the_curve_until_they_are_part_of_it(
    visit: Callable[[str], Page],
) -> None:
    page = visit("/aggregation")
    expect(reading(page, "Objective")).to_contain_text("Step", timeout=PATIENCE)
    last = int(
        page.evaluate("() => Bokeh.documents[0].get_model_by_name('curve').data.step.at(-1)")
    )

    def shown() -> Any:
        return page.evaluate(SHOWN)

    page.evaluate(TELL, [last - 1, last])  # known already
    assert shown()["step"] == []
    end = last + last % 2  # an even number, whose value is finite
    page.evaluate(TELL, [last, end + 1, end + 2])
    seen = shown()
    assert seen["step"] == [last, end + 1, end + 2]
    assert seen["elbo"][1:] == ["NaN", "0.5"]
    assert seen["right"] == end + 2
    page.evaluate(STREAM, end + 2)
    assert shown()["step"] == []
