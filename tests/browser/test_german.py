"""A page in German: chosen by the address, kept by a cookie, and what the scripts say."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.browser.visiting import PATIENCE

# The tick labels of all axes of numbers.
TICKS = """() => [...Bokeh.index.query((view) => view.model.type === 'LinearAxis')]
  .flatMap((view) => view.model.formatter.doFormat([0, 0.5], {loc: 0}))"""


def test_the_language_of_the_address_stays(browser: Browser, app_url: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{app_url}/redshift?training_size=500")
    page.get_by_role("link", name="Deutsch").click()
    page.wait_for_url(re.compile("training_size=500.*lang=de"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Rotverschiebung")
    expect(page.get_by_role("button", name="Trainieren", exact=True)).to_be_visible()
    expect(page.get_by_role("status").first).to_contain_text("konvergiert (aufgezeichneter Lauf)")
    expect(page.locator("dd").filter(has_text=re.compile(r"^\d+ von \d+$")).first).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"
    expect(page.get_by_role("img", name="Vorhersage gegen wahren Wert. ")).to_be_visible()
    reading = page.locator("p.reading").filter(has_text="Jenseits der gestrichelten Linien")
    expect(reading.first).to_contain_text(re.compile(r"^\d+ von \d+ .* in ihrem 95-%-Intervall"))
    assert "0,5" in page.evaluate(TICKS)
    page.goto(f"{app_url}/redshift?present")
    page.keyboard.press("?")
    expect(page.get_by_text("Vortrag verlassen")).to_be_visible()
    expect(page.locator("nav.steps .at")).to_have_text(re.compile(r"^\d+ (von|Abbildungen)"))
    page.keyboard.press("Escape")
    page.goto(f"{app_url}/gp")  # the language goes along
    expect(page.locator(".gp .reading")).to_contain_text("Das Band ist am breitesten bei x = ")
    expect(page.locator(".evidence-value")).to_have_text(re.compile(r"^−\d+,\d$"))
    page.goto(f"{app_url}/redshift")
    page.get_by_role("link", name="English").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Redshift")
    assert faults == []
    context.close()
