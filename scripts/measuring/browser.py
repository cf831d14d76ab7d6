"""One visitor in Chromium: when a page is there, what it costs, and how a click is answered."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit

import numpy as np
from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright

from measuring.table import Row

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
ARGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PATIENCE = 120_000  # ms
SETTLING = 4_000  # ms after which a page moves no more
# What a page notes of itself: long tasks (start, duration) and shifts of its layout.
NOTE = """
window.noted = {tasks: [], shift: 0}
new PerformanceObserver((list) => { for (const e of list.getEntries())
  noted.tasks.push([e.startTime, e.duration]) }).observe({type: 'longtask', buffered: true})
new PerformanceObserver((list) => { for (const e of list.getEntries())
  if (!e.hadRecentInput) noted.shift += e.value }).observe({type: 'layout-shift', buffered: true})
"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
STATUS = "() => [...document.querySelectorAll('[role=status]')].map((one) => one.textContent)[0]"
GOING = re.compile("^(starting|running)")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("neither Chromium nor Chrome is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield browser
        browser.close()


def paints(url: str, pages: list[str], times: int) -> list[Row]:
    """Rows on the first paint of each page, with an empty cache and with a full one."""
    made = []
    with chromium() as browser:
        for page in pages:
            seen = {"cold": list[dict[str, float]](), "warm": list[dict[str, float]]()}
            for _ in range(times):
                context = browser.new_context()
                for kind in seen.values():
                    kind.append(_paint(context, url + page))
                context.close()
            made += _paint_rows(page, seen)
    return made


def _paint(context: BrowserContext, address: str) -> dict[str, float]:
    page = context.new_page()
    page.add_init_script(NOTE)
    got = [0.0]
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on("Network.loadingFinished", lambda e: got.append(e["encodedDataLength"]))
    page.goto(address, timeout=PATIENCE)
    page.wait_for_function(f"() => !isNaN(({PAINT})())", timeout=PATIENCE)
    paint = page.evaluate(PAINT)
    page.wait_for_timeout(SETTLING)
    noted = page.evaluate("() => noted")
    page.close()
    blocked = sum(duration for start, duration in noted["tasks"] if start < paint)
    return {"paint": paint, "blocked": blocked, "shift": noted["shift"], "bytes": sum(got)}


def _paint_rows(page: str, seen: dict[str, list[dict[str, float]]]) -> Iterator[Row]:
    def middle(kind: str, name: str) -> float:
        return float(np.median([one[name] for one in seen[kind]]))

    for kind, target in (("warm", "< 500 ms"), ("cold", "< 1000 ms")):
        yield Row(f"first paint of {page}, {kind}", target, f"{middle(kind, 'paint'):.0f} ms")
    blocked = max(middle(kind, "blocked") for kind in seen)
    yield Row(f"main thread blocked before it, {page}", "< 200 ms", f"{blocked:.0f} ms")
    transfer = middle("cold", "bytes") / 1e6
    yield Row(f"transfer of {page}, cold", "≤ 1.5 MB", f"{transfer:.2f} MB")
    yield Row(f"layout shift of {page}, cold", "< 0.05", f"{middle('cold', 'shift'):.3f}")


def clicks(url: str, pages: list[str], times: int) -> list[Row]:
    """Rows on how long after a click on Train the page answers, and the run starts."""
    made = []
    with chromium() as browser:
        for page in pages:
            answered, started = [], []
            for _ in range(times):
                first, going = _click(browser, url + page)
                answered.append(first)
                started.append(going)
            for what, values, target in (
                ("an answer", answered, "< 0.3 s"),
                ("“starting”", started, "< 0.3 s"),
            ):
                result = f"{np.median(values):.2f} s (longest {max(values):.2f} s)"
                made.append(Row(f"click on Train of {page} → {what}", target, result))
    return made


def _click(browser: Browser, address: str) -> tuple[float, float]:
    """Seconds to the first answer and to a run that starts; the run is stopped."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address, timeout=PATIENCE)
    train = page.get_by_role("button", name="Train", exact=True)
    train.wait_for(timeout=PATIENCE)
    before = page.evaluate(STATUS)
    train.click(timeout=PATIENCE, no_wait_after=True)
    began, first = time.monotonic(), float("nan")
    while time.monotonic() - began < PATIENCE / 1000:
        said = None
        with suppress(Error):  # between two documents
            said = page.get_by_role("status").first.text_content(timeout=1000)
        now = time.monotonic() - began
        if said and said != before and np.isnan(first):
            first = now
        if said and GOING.match(said):
            break
        time.sleep(0.01)
    page.get_by_role("button", name="Stop", exact=True).click(timeout=PATIENCE)
    page.get_by_text(re.compile("^stopped")).first.wait_for(timeout=PATIENCE)
    context.close()
    return first, now


def labels(url: str, count: int, pause: float = 0.5) -> list[Row]:
    """Rows on how long after a key the next patch is on the screen, of so many labels."""
    taken = []
    with chromium() as browser:
        page = browser.new_context().new_page()
        page.goto(f"{url}/clamp?expert=you", timeout=PATIENCE)
        page.get_by_role("button", name="Train", exact=True).click(timeout=PATIENCE)
        desk = page.locator(".bench[data-row]:not([data-row=''])")
        desk.wait_for(timeout=PATIENCE)
        desk.scroll_into_view_if_needed()
        for turn in range(1, count + 1):
            page.keyboard.press("1" if turn % 10 == 1 else "2")
            page.locator(f".bench[data-turn='{turn}']").wait_for(timeout=PATIENCE)
            taken.append(float(desk.get_attribute("data-took") or "nan"))
            time.sleep(pause)
        page.context.close()
    result = f"p50 {np.median(taken):.0f} ms, p95 {np.quantile(taken, 0.95):.0f} ms"
    return [Row(f"key → next patch, {count} labels", "p95 < 150 ms", result)]


def train(browser: Browser, address: str) -> str:
    """Have a run trained at a page's address; its id."""
    page = browser.new_context().new_page()
    page.goto(address, timeout=PATIENCE)
    page.get_by_role("button", name="Train", exact=True).click(timeout=PATIENCE)
    page.wait_for_url(re.compile("[?&]run="), timeout=PATIENCE)
    run = parse_qs(urlsplit(page.url).query)["run"][0]
    page.context.close()
    return run
