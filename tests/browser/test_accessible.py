"""What axe, the accessibility checker, finds on our pages, light and dark."""

from __future__ import annotations

import re

import pytest
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


def violations(page: Page) -> list[str]:
    """What axe has against the page as it stands, without what is `UPSTREAM`."""
    return [
        f"{rule['id']}: {rule['help']}: {node['target']}: {node['html']}"
        for rule in Axe().run(page).response["violations"]
        for node in rule["nodes"]
        if UPSTREAM.get(rule["id"], "\n") not in node["html"]
    ]


@pytest.mark.parametrize(
    ("path", "last"),
    [
        ("/", "Redshift"),
        ("/redshift", "Keep only what it is sure of"),
        ("/redshift?present", "Keep only what it is sure of"),
        ("/genes", "What do hierarchy and correlation each contribute?"),
        ("/omniglot", "What if it were trained otherwise?"),
        ("/mitosis", "What if it were trained otherwise?"),
        ("/events", "What if it were trained otherwise?"),
        ("/clamp", "What if it were asked otherwise?"),
    ],
)
def test_axe_finds_nothing_against_our_pages(
    page: Page, app_url: str, path: str, last: str
) -> None:
    page.goto(app_url + path)
    heading = page.get_by_role("heading", name=last).first
    heading.scroll_into_view_if_needed(timeout=PATIENCE)  # far figures are built by then
    if path.startswith("/redshift"):
        kept = page.get_by_role("slider", name=re.compile("Share of galaxies kept"))
        expect(kept).to_be_visible(timeout=PATIENCE)
        expect(page.get_by_role("checkbox", name="mag_u")).to_be_attached(timeout=PATIENCE)
    assert violations(page) == []
    page.get_by_role("button", name="Toggle theme").click()
    expect(page.locator("body")).to_have_css(
        "background-color", re.compile(r"^rgb\((\d|[1-3]\d), "), timeout=PATIENCE
    )
    page.mouse.move(5, 300)
    expect(page.get_by_role("tooltip")).to_have_count(0)  # axe measures contrast, half faded, too
    assert violations(page) == []
