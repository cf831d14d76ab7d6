"""Pictures of the figures of live pages, for the static pages (`ship_pages.py`).

BokehJS draws them in Chromium, at the widths of a laptop and of a phone, and exports them as SVG.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from playwright.sync_api import Page, sync_playwright

SIZES = {"wide": (1280, 800), "narrow": (390, 844)}  # pixels of the window
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPENING = 120_000  # ms

# All elements, those of shadow roots among them, and the live page's scrolling element.
DEEP = """
window.deep = function* (root = document) {
  for (const node of root.querySelectorAll('*')) {
    yield node
    if (node.shadowRoot) yield* deep(node.shadowRoot)
  }
}
window.main = () => [...deep()].find((node) => node.classList.contains('main-content'))
"""
SCROLL = "(by) => { const top = main().scrollTop; main().scrollTop += by; return top }"
# Whether what is in view is built; what is further away is built once it comes near.
BUILT = """() => ![...deep()].some((node) => {
  const box = node.classList.contains('building') && node.getBoundingClientRect()
  return box && box.height > 0 && box.bottom > 0 && box.top < innerHeight
})"""
# The figures' sizes, steady once all are laid out.
LAID = """() => JSON.stringify([...Bokeh.index.query((view) => view.model.type === 'Figure')]
  .map((view) => [view.model.id, view.bbox.width, view.bbox.height, view.frame.bbox.width]))"""
# Figures as SVG under the heading above each, with the box of their data.
EXPORT = """async () => {
  const views = new Map([...Bokeh.index.query((view) => view.model.type === 'Figure')].map((view) => [view.el, view]))
  const found = []
  let heading = ''
  for (const node of deep()) {
    if (/^H[1-3]$/.test(node.tagName)) heading = node.textContent.trim()
    const view = views.get(node)
    if (!view || !node.getClientRects().length) continue
    const {left, top, width, height} = view.frame.bbox
    const svg = await (await view.export('svg').to_blob()).text()
    found.push({heading, svg, frame: [left, top, width, height], size: [view.bbox.width, view.bbox.height]})
  }
  return found
}"""
HEADINGS = """() => {
  let heading = ''
  return [...document.querySelectorAll('h1, h2, h3, .plot')].flatMap((node) => {
    if (!node.matches('.plot')) { heading = node.textContent.trim(); return [] }
    return [heading]
  })
}"""


def pictures(url: str, pages: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each page's name and the pictures of its figures, "" for those not seen.

    Args:
        url: Address of a server that runs.
        pages: Static pages by name.
    """
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("Neither Chromium nor Chrome is installed; install one of them.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, text in pages.items():
            page = browser.new_page()
            page.set_content(text)
            headings = page.evaluate(HEADINGS)
            page.close()
            made = [""] * len(headings)
            if headings:
                page = browser.new_page()
                for kind, figures in live_figures(page, f"{url}/{name}?live=1"):
                    for at, figure in _placed(headings, figures):
                        made[at] += svg(kind, figure, f"{kind[0]}{at}")
                page.close()
            yield name, made
        browser.close()


def live_figures(page: Page, address: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Open a live page; yield its figures at each size, once all are drawn."""
    page.set_default_timeout(OPENING)
    page.add_init_script(DEEP)
    for kind, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        if page.url == "about:blank":
            page.goto(address)
            page.wait_for_function("() => [...deep()].some((node) => node.tagName === 'H1')")
            page.wait_for_function("() => main() && Bokeh.documents.length")
            before = -1
            while before < (before := page.evaluate(SCROLL, 500)):
                page.wait_for_timeout(200)
                page.wait_for_function(BUILT)
        laid = ""
        while laid != (laid := page.evaluate(LAID)):
            page.wait_for_timeout(1_500)  # answers of the model, and tiles for this width, may come
        yield kind, page.evaluate(EXPORT)


def _placed(headings: list[str], figures: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the live figures with their places among the static ones, if all are there."""
    for heading, several in groupby(figures, key=lambda figure: figure["heading"]):
        group, at = list(several), [k for k, name in enumerate(headings) if name == heading]
        if len(group) == len(at):
            yield from zip(at, group, strict=True)


def svg(kind: str, figure: Any, name: str) -> str:
    """Return an SVG of Bokeh's as part of a page: lighter, with the colors of the page's theme."""
    text = re.sub(r"<(text|path)\b(?=[^>]*fill=\"none\")(?=[^>]*stroke(-opacity=\"0\"|=\"none\"))"
                  r"(?![^>]*/>)[^>]*>[^<]*</\1>", "", figure["svg"])  # fmt: skip
    text = re.sub(r"(?<!clipPath>)<path fill=\"none\" stroke=\"none\"[^>]*/>", "", text)
    text = re.sub(r"-?\d+\.\d{2,}", lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), text)
    text = _one_path(text)
    width, height = figure["size"]
    left, top, across, down = figure["frame"]
    head = (
        f"<svg class='{kind}' xmlns='http://www.w3.org/2000/svg' width='{width:g}' "
        f"height='{height:g}' viewBox='0 0 {width:g} {height:g}' aria-hidden='true'>"
    )
    frame = f"<rect class='frame' x='{left:g}' y='{top:g}' width='{across:g}' height='{down:g}' fill='none'/>"  # fmt: skip
    text = re.sub(r"^<svg[^>]*>", head, text).replace("</svg>", f"{frame}</svg>")
    for number, found in enumerate(dict.fromkeys(re.findall(r"id=\"(\w+)\"", text))):
        text = text.replace(f'id="{found}"', f'id="{name}-{number}"').replace(f"#{found})", f"#{name}-{number})")  # fmt: skip
    for usual in DEFAULTS:
        text = text.replace(usual, "")
    for color, variable in COLORS.items():
        text = text.replace(f'"{color}"', f'"{variable}"')
    return text


# What SVG takes to be so, or the page's style says.
DEFAULTS = (
    ' paint-order="fill"', ' stroke-miterlimit="10"', ' stroke-dasharray=""', ' stroke="none"',
    ' font-style="normal"', ' font-weight="normal"', ' text-decoration="normal"',
    ' text-anchor="start"', ' dominant-baseline="alphabetic"', ' transform="matrix(1, 0, 0, 1, 0, 0)"',
)  # fmt: skip
# Colors of the light theme (template.LIGHT) and of its grids.
COLORS = {
    "#1d2026": "var(--ink)", "#5b616c": "var(--quiet)", "rgb(29,32,38)": "var(--ink)",
    "rgba(0, 0, 0, 0.1)": "var(--grid)", "rgba(0,0,0,0.1)": "var(--grid)",
}  # fmt: skip
PATH = re.compile(r'<path([^>]*?) d="([^"]*)"([^>]*)/>')


def _one_path(text: str) -> str:
    """Merge successive opaque paths of the same attributes."""
    made: list[str] = []
    last, at = None, 0
    for match in PATH.finditer(text):
        style = match[1], match[3]
        opaque = "opacity" not in match[1] + match[3]
        if match.start() == at and style == last and opaque and made:
            made[-1] = made[-1].replace('"></path>', "")
            made[-1] = PATH.sub(lambda path, d=match[2]: f'<path{path[1]} d="{path[2]} {d}"{path[3]}/>', made[-1])  # fmt: skip
        else:
            made += [text[at : match.start()], match[0]]
        last, at = style, match.end()
    return "".join(made) + text[at:]
