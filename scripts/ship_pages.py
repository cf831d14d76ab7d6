"""Write data/pages/: the static pages that a server shows until it has made its own.

    python scripts/ship_pages.py

Run this again whenever a recording, a style or the words of a page have changed.
"""

from __future__ import annotations

import asyncio
import gzip
import tempfile
from pathlib import Path

from scant.store import Store
from scant_dashboard.server.options import ServerOptions
from scant_dashboard.static_page import make
from scant_dashboard.static_page.published import PAGES, styles_key

PLACE = Path(__file__).parent.parent / "data" / "pages"


def pages() -> dict[str, str]:
    """The pages of a server as `scant serve` starts it, by the study."""
    make.prepare()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/runs.db")
        store.import_shipped()
        service = make.ReadOnlyService(store, ServerOptions().hours_per_run)
        return {page: asyncio.run(make.made(page, service)) for page in PAGES}


def main() -> None:
    """Write them in place of those that are there."""
    made, key = pages(), styles_key()
    PLACE.mkdir(exist_ok=True)
    for file in PLACE.glob("*.html.gz"):
        file.unlink()
    for page, text in made.items():
        packed = gzip.compress(text.encode(), 9, mtime=0)
        (PLACE / f"{page}-{key}.html.gz").write_bytes(packed)
        print(f"{page}: {len(packed) / 1000:,.0f} kB")


if __name__ == "__main__":
    main()
