"""Write data/pages/: the static pages that a server shows until it has made its own.

    python scripts/ship_pages.py

Needs Playwright, and Chromium or Chrome, in which BokehJS draws the pictures of the figures. Run
this again whenever a recording, a style or the words of a page have changed.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scant.store import Store
from scant_dashboard.server.options import ServerOptions
from scant_dashboard.static_page import make
from scant_dashboard.static_page.pictures import PICTURE, PLOT
from scant_dashboard.static_page.published import PAGES, styles_key

PLACE = Path(__file__).parent.parent / "data" / "pages"
STARTING = 120.0  # seconds


def pages() -> dict[str, str]:
    """The pages of a server as `scant serve` starts it, by the study, without pictures."""
    make.prepare()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/runs.db")
        store.import_shipped()
        service = make.ReadOnlyService(store, ServerOptions().hours_per_run)
        return {page: asyncio.run(make.made(page, service)) for page in PAGES}


@contextmanager
def serving() -> Iterator[str]:
    """A server of live pages; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    code = "from scant_dashboard.cli.main import app; app()"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", code, "serve", "--port", str(port), "--data-dir", folder]
        server = subprocess.Popen(command, env={**os.environ, "SCANT_STATIC_PAGES": "0"})
        try:
            until = time.monotonic() + STARTING
            while time.monotonic() < until and server.poll() is None:
                try:
                    urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
                    break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.2)
            yield url
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Write them in place of those that are there."""
    from scripts import figure_pictures

    made, key = pages(), styles_key()
    with serving() as url:
        for page, pictures in figure_pictures.pictures(url, made):
            rest = iter(pictures)
            made[page] = PLOT.sub(lambda match, rest=rest: match[0] + next(rest), made[page])
            seen = sum(
                len(PICTURE.findall(both)) == len(figure_pictures.SIZES) for both in pictures
            )
            print(f"{page}: {seen} of {len(pictures)} figures seen at each size", flush=True)
    PLACE.mkdir(exist_ok=True)
    for file in PLACE.glob("*.html.gz"):
        file.unlink()
    for page, text in made.items():
        packed = gzip.compress(text.encode(), 9, mtime=0)
        (PLACE / f"{page}-{key}.html.gz").write_bytes(packed)
        print(f"{page}: {len(packed) / 1000:,.0f} kB")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main()
