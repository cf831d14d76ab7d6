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


def test_a_picture_is_lighter_and_says_the_same() -> None:
    pytest.importorskip("playwright")
    from scripts.figure_pictures import svg

    text = (
        '<svg version="1.1"><defs><clipPath id="ab"><path fill="none" stroke="none" d="M 0.123 4"/>'
        '</clipPath></defs><path fill="#111" d="M 1.26 2"/><path fill="#111" d="M 3 4"/>'
        '<path fill="#111" fill-opacity="0.5" d="M 5 6"/><path fill="#111" fill-opacity="0.5" '
        'd="M 7 8" clip-path="url(#ab)"/><text fill="#5b616c" x="1.234">0.005</text>'
        '<text fill="none" stroke-opacity="0">0.005</text></svg>'
    )
    made = svg("wide", {"svg": text, "size": (9, 8), "frame": (1, 2, 3, 4)}, "w0")
    assert made.count(">0.005<") == 1
    assert 'x="1.2"' in made
    assert 'd="M 1.3 2 M 3 4"' in made
    assert made.count('fill-opacity="0.5"') == 2
    assert 'id="w0-0"><path fill="none" d="M 0.1 4"/>' in made
    assert "url(#w0-0)" in made
    assert 'fill="var(--quiet)"' in made
    assert made.endswith("<rect class='frame' x='1' y='2' width='3' height='4' fill='none'/></svg>")


def test_numbers_of_a_picture_are_rounded_by_what_they_mean() -> None:
    pytest.importorskip("playwright")
    from scripts.figure_pictures import svg

    circle = "M 4.4499 2.6 A 1.7499 1.7499 0 0 1 0.9501 2.6 A 1.7499 1.7499 0 0 1 4.4499 2.6"
    matrix = "matrix(0.70710678, 0, 0, 1.23456789, 10.5, -0.5)"
    text = (
        f'<svg version="1.1"><path d="{circle}" fill-opacity="0.0400000012"/>'
        '<path d="M 0.123 4.56e-17" stroke-opacity="0.1411764" stroke-width="0.75"/>'
        f'<text x="1.26" y="-0.26" font-size="12.32px" transform="{matrix}">x="1.26"</text></svg>'
    )
    made = svg("wide", {"svg": text, "size": (9, 8), "frame": (1, 2, 3, 4)}, "w0")
    assert 'fill-opacity="0.04"' in made
    assert 'd="M 0.1 0" stroke-opacity="0.1412" stroke-width="0.75"' in made
    assert (
        'x="1.3" y="-0.3" font-size="12.32px" transform="matrix(0.7071, 0, 0, 1.2346, 10.5, -0.5)"'
    ) in made
    assert '>x="1.26"</text>' in made
    (start, _), radii, (end, _) = (
        [float(number) for number in found.split()[:2]]
        for found in re.split(" A |M | 0 0 1 ", made[made.index("M ") :])[1:4]
    )
    assert max(radii) <= (start - end) / 2  # else the arcs of a circle bend less than half of it


def test_black_of_data_stays_black_in_a_dark_theme() -> None:
    pytest.importorskip("playwright")
    from scripts.figure_pictures import svg

    text = (
        '<svg version="1.1"><path stroke="rgb(0,0,0)" d="M 1 2" stroke-opacity="0.1"/>'
        '<path stroke="rgb(0,0,0)" d="M 1 2" stroke-opacity="1"/>'
        '<path fill="rgb(0,0,0)" d="M 1 2" fill-opacity="0.55"/></svg>'
    )
    made = svg("wide", {"svg": text, "size": (9, 8), "frame": (1, 2, 3, 4)}, "w0")
    assert re.findall('(?:stroke|fill)="([^"]*)"', made) == [
        "currentColor",
        "rgb(0,0,0)",
        "rgb(0,0,0)",
    ]
