"""What axe, the accessibility checker, has against a page, light and dark."""

from __future__ import annotations

import re
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

PATIENCE = 60_000  # ms; other work may share the machine's cores

# Not ours to mend: rules, and what marks the elements that panel-material-ui draws against them.
UPSTREAM = {
    # The mark with a setting's explanation is a bare span that carries it as its label; it can be
    # pointed at and is read out all the same.
    "aria-prohibited-attr": 'sx="[object Object]"',
    # Minus and plus in a field for numbers have no names; the arrow keys do the same in the field.
    "button-name": "MuiIconButton-sizeSmall",
    # The layer in which menus and tooltips come up lies outside of the landmarks, empty.
    "region": "data-pmui-layer",
}

# No animation or transition with an end runs, in whichever shadow root: half faded, colors have
# another contrast.
RESTING = """() => {
  const roots = [document]
  for (const root of roots)
    for (const {shadowRoot} of root.querySelectorAll('*')) if (shadowRoot) roots.push(shadowRoot)
  return roots.flatMap((root) => root.getAnimations()).every((one) =>
    one.playState !== 'running' || one.effect?.getComputedTiming().endTime === Infinity)
}"""
OF_COLOR = ["color-contrast", "link-in-text-block"]  # all that the dark theme can change


def violations(page: Page, **options: Any) -> list[str]:
    """What axe has against the page at rest, without what is `UPSTREAM`."""
    page.wait_for_function(RESTING, polling=100, timeout=PATIENCE)
    found = Axe().run(page, options={"resultTypes": ["violations"], **options})
    return [
        f"{rule['id']}: {rule['help']}: {node['target']}: {node['html']}"
        for rule in found.response["violations"]
        for node in rule["nodes"]
        if UPSTREAM.get(rule["id"], "\n") not in node["html"]
    ]


def assert_accessible(page: Page, last: str) -> None:
    """Axe finds nothing against a page, light and dark, down to the heading `last`."""
    heading = page.get_by_role("heading", name=last).first
    heading.scroll_into_view_if_needed(timeout=PATIENCE)  # far figures are built by then
    found = violations(page)
    assert not found, "\n".join(found)
    body, theme = page.locator("body"), page.get_by_role("button", name="Toggle theme")
    theme.click()
    dark = re.compile(r"^rgb\((\d|[1-3]\d), ")
    expect(body).to_have_css("background-color", dark, timeout=PATIENCE)
    page.mouse.move(5, 300)
    expect(page.get_by_role("tooltip")).to_have_count(0)
    found = violations(page, runOnly={"type": "rule", "values": OF_COLOR})
    assert not found, "\n".join(found)
    theme.click()
    expect(body).not_to_have_css("background-color", dark, timeout=PATIENCE)
