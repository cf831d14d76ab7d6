"""A strip of what a visitor sees at set times of a visit, as the browser drew it."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import BrowserContext

from measuring.browser import NOTE, PATIENCE, chromium
from measuring.table import Row

TIMES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # seconds after the address is sent
SIZE = {"width": 1280, "height": 800}
THUMB = (480, 300)
CALM = 0.002  # share of pixels that may differ in what counts as the same picture

Frame = tuple[float, Image.Image]


def strips(url: str, pages: Sequence[str], folder: Path) -> list[Row]:
    """Rows on each page, and its two strips as `film-PAGE-cold.png` and `-warm.png` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with chromium() as browser:
        for page in pages:
            context = browser.new_context(viewport=SIZE)
            for kind in ("cold", "warm"):
                frames, shift = _filmed(context, url + page)
                file = folder / f"film-{page.strip('/') or 'gallery'}-{kind}.png"
                _strip(frames).save(file)
                made += _rows(f"{page}, {kind}", frames, shift)
            context.close()
    return made


def _filmed(context: BrowserContext, address: str) -> tuple[list[Frame], float]:
    """Pictures with their seconds, and by how much the layout has jumped."""
    page = context.new_page()
    page.add_init_script(NOTE)
    page.goto("about:blank")
    wire = context.new_cdp_session(page)
    frames: list[Frame] = []

    def keep(event: dict[str, object]) -> None:
        picture = Image.open(io.BytesIO(base64.b64decode(str(event["data"])))).convert("RGB")
        frames.append((float(event["metadata"]["timestamp"]), picture))  # type: ignore[index]
        wire.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    wire.on("Page.screencastFrame", keep)
    limits = {"maxWidth": SIZE["width"], "maxHeight": SIZE["height"]}
    wire.send("Page.startScreencast", {"format": "png", **limits})
    page.wait_for_timeout(300)  # a picture of the empty tab
    began = page.evaluate("() => Date.now()") / 1000
    page.goto(address, timeout=PATIENCE)
    page.wait_for_timeout(1000 * (TIMES[-1] + 0.5))
    wire.send("Page.stopScreencast")
    shift = float(page.evaluate("() => noted.shift"))
    page.close()
    return [(at - began, picture) for at, picture in frames], shift


def _at(frames: Sequence[Frame], seconds: float) -> Image.Image:
    """What stood on the screen then."""
    before = [picture for at, picture in frames if at <= seconds]
    return before[-1] if before else Image.new("RGB", THUMB, "white")


def _strip(frames: Sequence[Frame]) -> Image.Image:
    strip = Image.new("RGB", (THUMB[0] * len(TIMES), THUMB[1]), "gray")
    for place, seconds in enumerate(TIMES):
        strip.paste(_at(frames, seconds).resize(THUMB), (place * THUMB[0], 0))
    return strip


def _rows(what: str, frames: Sequence[Frame], shift: float) -> list[Row]:
    first = next((at for at, picture in frames if at > 0 and not _empty(picture)), float("nan"))
    later = [seconds for seconds in TIMES if seconds > first]
    empty = sum(_empty(_at(frames, seconds)) for seconds in later)
    still = _differ(_at(frames, max(first, TIMES[2])), _at(frames, TIMES[-1]))
    return [
        Row(f"first picture of {what}", "", f"{first:.2f} s"),
        Row(f"empty pictures after it, {what}", "0", f"{empty} of {len(later)}"),
        Row(f"pixels that change afterwards, {what}", "", f"{100 * still:.1f} %"),
        Row(f"layout shift of {what}", "< 0.05", f"{shift:.3f}"),
    ]


def _empty(picture: Image.Image) -> bool:
    """Whether all pixels but a few have one color."""
    pixels = np.asarray(picture.resize(THUMB)).reshape(-1, 3)
    common = np.median(pixels, axis=0)
    return bool((np.abs(pixels - common).max(1) > 24).mean() < CALM)


def _differ(one: Image.Image, other: Image.Image) -> float:
    a, b = (np.asarray(each.resize(THUMB)).astype(int) for each in (one, other))
    return float((np.abs(a - b).max(2) > 24).mean())
