"""How soon a phone's vote is on the presenter's screen: a server, Chromium, and simulated phones.

    python scripts/measure_room.py --phones 40

The phones join, follow the room's news, and vote twice: spread over some seconds, and all at once.
Votes cannot be told apart on the screen: the k-th that is sent is taken for the k-th counted.
Needs Playwright, and Chromium or Chrome.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import Any

import numpy as np
from playwright.async_api import Page, async_playwright
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
PAGE = "/redshift?present&guess"
FIGURE = "Coverage of intervals"
SPREAD = 10.0  # seconds over which the first votes come
# When the number in "7 of 40 phones have answered." changes, by the machine's clock.
WATCH = """() => {
  window.counted = []
  const find = (root, found) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.matches('.form .count')) found.push(one)
      if (one.shadowRoot) find(one.shadowRoot, found)
    }
    return found
  }
  const [count] = find(document, []).filter((one) => one.textContent.includes('phones have'))
  new MutationObserver(() => window.counted.push([Date.now() / 1000, parseInt(count.textContent)]))
    .observe(count, {childList: true, characterData: true, subtree: true})
}"""


class Phone:
    """A phone without a screen."""

    def __init__(self, address: str) -> None:
        self._address, self._client = address, AsyncHTTPClient()
        self._news: asyncio.Future[Any] | None = None

    async def join(self) -> None:
        """Open the page, and follow the news until the room ends."""
        page = await self._client.fetch(self._address)
        self._cookie = page.headers["Set-Cookie"].split(";")[0]
        self.number = 0
        self._news = asyncio.ensure_future(
            self._client.fetch(
                HTTPRequest(f"{self._address}/news", headers={"Cookie": self._cookie},
                            streaming_callback=self._told, request_timeout=600)
            )
        )  # fmt: skip

    def _told(self, chunk: bytes) -> None:
        for line in chunk.decode().splitlines():
            if line.startswith("data: {"):
                self.number = json.loads(line[6:])["present"] or self.number

    async def vote(self, value: int, after: float) -> float:
        """Vote a while from now; when it was sent."""
        await asyncio.sleep(after)
        sent = time.time()
        body = json.dumps({"number": self.number, "value": value})
        headers = {"Cookie": self._cookie, "Content-Type": "application/json"}
        await self._client.fetch(
            f"{self._address}/votes", method="POST", body=body, headers=headers
        )
        return sent


async def ask(page: Page, base: str) -> str:
    """Open a room and put a question; the room's address."""
    page.set_default_timeout(60_000)
    await page.goto(base + PAGE)
    await page.get_by_role("button", name="Ask the room").click()
    await page.get_by_role("dialog").wait_for()
    address = await page.locator("dialog .address").inner_text()
    await page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await page.get_by_role("heading", name=FIGURE).scroll_into_view_if_needed()
    await page.get_by_text("0 phones have answered").first.wait_for()
    return f"http://{address}"


async def votes(page: Page, phones: list[Phone], seconds: float) -> np.ndarray:
    """Seconds from each vote to the screen, of votes spread over so many seconds."""
    await page.evaluate(WATCH)
    rng = np.random.default_rng(0)
    waits = rng.uniform(0, seconds, len(phones))
    sent = sorted(await asyncio.gather(*(p.vote(50, w) for p, w in zip(phones, waits))))
    await page.get_by_text(f"{len(phones)} of {len(phones)} phones have answered").first.wait_for()
    counted = await page.evaluate("() => window.counted")
    return np.array([next(at for at, n in counted if n > k) - when for k, when in enumerate(sent)])


async def measure(base: str, count: int) -> None:
    """Print both measurements."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("Neither Chromium nor Chrome is installed; install one of them.")
    AsyncHTTPClient.configure(None, max_clients=3 * count)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        for name, seconds in ((f"spread over {SPREAD:.0f} s", SPREAD), ("all at once", 0.0)):
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            phones = [Phone(await ask(page, base)) for _ in range(1)]
            phones += [Phone(phones[0]._address) for _ in range(count - 1)]
            await asyncio.gather(*(phone.join() for phone in phones))
            await page.get_by_text(f"0 of {count} phones have answered").first.wait_for()
            taken = 1000 * await votes(page, phones, seconds)
            print(
                f"{count} phones, {name}: vote to screen p50 {np.median(taken):.0f} ms, "
                f"p95 {np.quantile(taken, 0.95):.0f} ms, last {taken.max():.0f} ms"
            )
            await page.get_by_role("button", name="End the room").click()
            await page.close()
        await browser.close()


def main() -> None:
    """Start a server, measure, stop it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--phones", type=int, default=40)
    options.add_argument("--url", help="of a server that runs; without, one is started")
    given = options.parse_args()
    if given.url:
        asyncio.run(measure(given.url.rstrip("/"), given.phones))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from scant_dashboard.cli.main import app; app()", "serve"]
        command += ["--port", str(port), "--workers", "1", "--data-dir", folder]
        server = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            base = f"http://127.0.0.1:{port}"
            _wait(base)
            asyncio.run(measure(base, given.phones))
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait(base: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{base}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise SystemExit("the server did not come up")


if __name__ == "__main__":
    main()
