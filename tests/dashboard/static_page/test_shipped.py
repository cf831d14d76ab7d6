"""The static pages of the package, which visitors get until a server has made its own."""

from __future__ import annotations

import asyncio
import gzip
import re
from pathlib import Path

import pytest

from scant_dashboard.static_page import published
from scant_dashboard.static_page.pictures import apart
from scant_dashboard.static_page.published import PAGES, SHIPPED, Published, styles_key
from scripts import ship_pages


def taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What visitors get of a server that is starting, by page."""

    async def start() -> list[str | None]:
        pages = Published(folder, "sqlite://", 2.0)
        pages.start()
        result = [pages.markup(page, False) for page in PAGES]
        pages.close()
        return result

    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr(Published, "_make", nothing)
    return asyncio.run(start())


def test_they_are_there_before_anything_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "SHIPPED", tmp_path)
    for page in PAGES:
        file = tmp_path / f"{page}-{styles_key()}.html.gz"
        file.write_bytes(gzip.compress(f"<h1>{page}</h1>".encode()))
    assert taken(tmp_path, monkeypatch) == [f"<h1>{page}</h1>" for page in PAGES]
    monkeypatch.setattr(published, "styles_key", lambda: "of other styles")
    assert taken(tmp_path, monkeypatch) == [None] * len(PAGES)


@pytest.mark.slow("assets", "data")
def test_they_are_those_that_a_server_would_make() -> None:
    """Run `python scripts/ship_pages.py` where this fails. Numbers may differ by the processor."""

    def words(page: str) -> str:
        page, _ = apart(page)
        return re.sub(r"<svg.*?</svg>|data:image/[^\"')]+|-?[\d.]+(e-?\d+)?", "", page, flags=re.S)

    for page, text in ship_pages.pages().items():
        shipped = SHIPPED.joinpath(f"{page}-{styles_key()}.html.gz")
        assert shipped.is_file(), page
        assert words(gzip.decompress(shipped.read_bytes()).decode()) == words(text), page
