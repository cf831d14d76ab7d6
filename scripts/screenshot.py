"""Make assets/screenshot.png for the README from the app as it is served.

    python scripts/screenshot.py [http://127.0.0.1:5006]

Needs `scant serve` at that address, Playwright, and Chromium or Chrome.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent.parent / "assets" / "screenshot.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def main(address: str) -> None:
    """Open the redshift page, wait for its curve, and take what a visitor sees first."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("Neither Chromium nor Chrome is installed; install one of them.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1080})
        page.goto(f"{address}/redshift")
        page.locator(".reading").filter(has_text="Step").first.wait_for(timeout=60_000)
        page.get_by_role("heading", name="Explore").wait_for(timeout=60_000)
        page.wait_for_timeout(3000)  # the plots fade in
        page.screenshot(path=TARGET)
        browser.close()
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:5006")
