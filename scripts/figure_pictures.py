"""Pictures of the figures of live pages, for the static pages (`ship_pages.py`).

BokehJS draws them in Chromium, at the widths of a laptop and of a phone, and exports them as SVG.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from math import ceil, floor
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from scant_dashboard.plots.theme import GRAY

SIZES = {"wide": (1280, 800), "narrow": (390, 844)}  # pixels of the window
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Chromium's headless shell rounds the widths of letters to whole pixels, a browser with a window
# does not. Names of 12 pixels differ by up to 1.4 % in width, and rows of a legend break elsewhere.
TEXT_WIDTHS = "--font-render-hinting=none"
OPENING = 120_000  # ms
# A page is still once it has been equal so many times, a pause apart; the server fills one part of
# it every 100 ms (page_parts.widgets.DeferredRenderer).
EQUAL, PAUSE, LOOKS = 3, 300, 400  # times, ms, times
SHARP, QUALITY = 2, 80  # pixels of an image per pixel of the page; of WebP

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
# Bring the next figure that is not yet built into view, where it is built. Whether the page rests:
# all figures are built and drawn, the server has handled what came before and no query is running.
RESTS = """async () => {
  await document.fonts.ready
  await fetch('/healthz')
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame)
  const shown = [...deep()].filter((node) => node.getClientRects().length)
  const waiting = shown.find((node) => node.classList.contains('building'))
  waiting?.scrollIntoView()
  const figures = [...Bokeh.index.query((view) => view.model.type === 'Figure')]
  return !waiting && !shown.some((node) => node.classList.contains('asking'))
    && Bokeh.documents.every((doc) => doc.is_idle) && figures.every((view) => view.has_finished())
}"""
# Figures as SVG under the heading above each, with the box of their data.
EXPORT = """async () => {
  const query = Bokeh.index.query((view) => view.model.type === 'Figure')
  const views = new Map([...query].map((view) => [view.el, view]))
  const found = []
  let heading = ''
  for (const node of deep()) {
    if (/^H[1-3]$/.test(node.tagName)) heading = node.textContent.trim()
    const view = views.get(node)
    if (!view || !node.getClientRects().length) continue
    const {left, top, width, height} = view.frame.bbox
    const svg = await (await view.export('svg').to_blob()).text()
    const size = [view.bbox.width, view.bbox.height]
    found.push({heading, svg, size, frame: [left, top, width, height]})
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
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", TEXT_WIDTHS]
        )
        for name, text in pages.items():
            page = browser.new_page(device_scale_factor=SHARP)
            page.set_content(text)
            headings, painter = page.evaluate(HEADINGS), page
            made = [""] * len(headings)
            if headings:
                page = browser.new_page()
                for kind, figures in live_figures(page, f"{url}/{name}?live=1"):
                    for at, figure in _placed(headings, figures):
                        made[at] += lighter(painter, svg(kind, figure, f"{kind[0]}{at}"))
                page.close()
            painter.close()
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
            page.wait_for_function("() => main() && Bokeh.documents.length")
        yield kind, _resting(page)


def _resting(page: Page) -> list[dict[str, Any]]:
    """Return the figures of a live page once they no longer change.

    A busy machine makes this slower: all but the pause is counted in answers and frames.
    """
    before, equal = "", 0
    for _ in range(LOOKS):
        page.wait_for_timeout(PAUSE)
        figures = page.evaluate(EXPORT) if page.evaluate(RESTS) else []
        now = ID.sub("", json.dumps(figures))
        equal = equal + 1 if figures and now == before else 0
        if equal == EQUAL:
            return figures
        before = now
    raise SystemExit(f"{page.url} does not come to rest.")


def _placed(headings: list[str], figures: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the live figures with their places among the static ones, if all are there."""
    for heading, several in groupby(figures, key=lambda figure: figure["heading"]):
        group, at = list(several), [k for k, name in enumerate(headings) if name == heading]
        if len(group) == len(at):
            yield from zip(at, group, strict=True)


def svg(kind: str, figure: Any, name: str) -> str:
    """Return an SVG of Bokeh's as part of a page: lighter, with the colors of the page's theme.

    Args:
        kind: Name of the window's size.
        figure: What `EXPORT` returns of a figure.
        name: Beginning of the ids in the SVG.
    """
    text = UNSEEN.sub("", figure["svg"])
    text = ATTRIBUTE.sub(_rounded, text)
    for usual in DEFAULTS:
        text = text.replace(usual, "")
    for color, variable in COLORS.items():
        text = text.replace(f'"{color}"', f'"{variable}"')
    text = GRID.sub("currentColor", text)
    text = _merged(text)
    for number, found in enumerate(dict.fromkeys(re.findall(r'id="(\w+)"', text))):
        text = text.replace(f'id="{found}"', f'id="{name}-{number}"')
        text = text.replace(f"#{found})", f"#{name}-{number})")
    width, height = figure["size"]
    left, top, across, down = figure["frame"]
    head = (
        f"<svg class='{kind}' xmlns='http://www.w3.org/2000/svg' width='{width:g}' "
        f"height='{height:g}' viewBox='0 0 {width:g} {height:g}' aria-hidden='true'{LAYER}>"
    )
    frame = (
        f"<rect class='frame' x='{left:g}' y='{top:g}' width='{across:g}' height='{down:g}' "
        "fill='none'/></svg>"
    )
    return head + text[text.index(">") + 1 : text.rindex("</svg>")] + frame


def lighter(page: Page, picture: str) -> str:
    """Return a picture with its marks as an image, if that is smaller than their SVG.

    Args:
        page: An empty page of `SHARP` pixels per pixel.
        picture: An SVG made by `svg`.
    """
    head = picture[: picture.index(">") + 1]
    texts = "".join(TEXT.findall(picture))
    frame = picture[picture.rindex("<rect class='frame'") :]
    width, height = (float(found) for found in re.findall(r" (?:width|height)='([\d.]+)'", head))
    page.set_viewport_size({"width": ceil(width), "height": ceil(height)})
    page.set_content(f"<body style='margin:0;{MEDIUM}'>{TEXT.sub('', picture)}")
    file = io.BytesIO()
    shot = Image.open(io.BytesIO(page.screenshot(omit_background=True)))
    shot.save(file, "WEBP", quality=QUALITY, method=4)
    href = f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
    size = f"width='{ceil(width)}' height='{ceil(height)}'"
    texts = re.sub(r' clip-path="[^"]*"', "", texts)
    painted = f"{head}<image {size} href='{href}'/>{texts}{frame}"
    return min(painted, picture, key=lambda text: len(gzip.compress(text.encode())))


# Pale fills are summed up on a transparent layer, as on a canvas: in bytes, hundreds of them make
# another color there than upon the page, by up to 14 of 255.
LAYER = " style='filter:opacity(1)'"
TEXT = re.compile(r"<text.*?</text>", re.DOTALL)
ID = re.compile(r'(?<=id=\\")\w+|(?<=url\(#)\w+')  # in JSON; random
MEDIUM = f"color:{GRAY};--ink:{GRAY};--quiet:{GRAY}"  # visible in both themes
# Texts and paths that are neither filled nor stroked, but for those that clip others.
UNSEEN = re.compile(
    r'<text fill="none"[^>]*stroke-opacity="0"[^>]*>[^<]*</text>|(?<!">)<path fill="none" stroke="none"[^>]*/>'  # noqa: E501
)
# Attributes of tags, not what is written between them; the pixels among them; numbers to round.
ATTRIBUTE = re.compile(r'(?<= )([\w-]+)="([^"<>]*)"(?=[^<>]*>)')
PIXELS = ("d", "x", "y", "width", "height")
DECIMALS = re.compile(r"-?\d+\.\d+(?:e-\d+)?|-?\d+e-\d+")
ARC = re.compile(r"A (\S+) (\S+)")
# What SVG takes to be so, or the page's style says.
DEFAULTS = (
    ' paint-order="fill"', ' stroke-miterlimit="10"', ' stroke-dasharray=""', ' stroke="none"',
    ' font-style="normal"', ' font-weight="normal"', ' text-decoration="normal"',
    ' text-anchor="start"', ' dominant-baseline="alphabetic"',
    ' transform="matrix(1, 0, 0, 1, 0, 0)"',
)  # fmt: skip
# Colors of the light theme (template.LIGHT). Pale black strokes are those of its grids; the black
# of data remains black.
COLORS = {"#1d2026": "var(--ink)", "rgb(29,32,38)": "var(--ink)", "#5b616c": "var(--quiet)"}
GRID = re.compile(r'(?<= stroke=")rgb\(0,0,0\)(?="[^<>]*stroke-opacity="0\.)')
PATH = re.compile(r'<path([^>]*?) d="([^"]*)"([^>]*)/>')


def _rounded(attribute: re.Match[str]) -> str:
    """Round pixels to a tenth, and opacities, scales and widths of lines to four decimals."""
    name, value = attribute.groups()
    if name == "href":
        return attribute[0]
    if name == "d":
        value = ARC.sub(lambda arc: f"A {_below(arc[1])} {_below(arc[2])}", value)
    digits = 1 if name in PIXELS else 4

    def short(number: re.Match[str]) -> str:
        return f"{float(number[0]):.{digits}f}".rstrip("0").rstrip(".")

    return f'{name}="{DECIMALS.sub(short, value)}"'


def _below(radius: str) -> str:
    """Return a radius that is at most half of the way between the rounded ends of a half circle.

    A larger one bends less, and makes a lens of the circle; SVG enlarges one that is too small.
    """
    return f"{max(floor(10 * float(radius) - 0.5) / 10, 0.1):g}"


def _merged(text: str) -> str:
    """Make one path of successive opaque ones that differ in their course only."""
    made, style, courses, at = [], None, list[str](), 0

    def end() -> None:
        if style is not None:
            made.append(f'<path{style[0]} d="{" ".join(courses)}"{style[1]}/>')

    for match in PATH.finditer(text):
        same = (match[1], match[3]) == style and match.start() == at
        if not same or "opacity" in match[1] + match[3]:
            end()
            made.append(text[at : match.start()])
            style, courses = (match[1], match[3]), []
        courses.append(match[2])
        at = match.end()
    end()
    return "".join(made) + text[at:]
