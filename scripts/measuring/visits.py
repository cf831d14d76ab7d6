"""What many visits leave in a server's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from measuring.followers import Follower
from measuring.gets import first_byte
from measuring.server import Server
from measuring.table import Row

CROWD = 40  # visits before memory is first looked at: a heap does not shrink to where it began
GONE = 45.0  # seconds after which nothing is kept of a visitor


async def rows(server: Server, pages: Sequence[str], count: int) -> list[Row]:
    """A row on `count` visits, each of a page and then of its live one."""
    await _visit(server.url, pages, CROWD)
    before = server.memory()
    await _visit(server.url, pages, count)
    after = server.memory()
    result = f"{after - before:+.1f} MB (from {before:.0f} MB)"
    return [Row(f"memory after {count} visits", "within 20 MB", result)]


async def _visit(url: str, pages: Sequence[str], count: int) -> None:
    for number in range(count):
        page = pages[number % len(pages)]
        await first_byte(url + page)
        visitor = Follower(url, f"{page}?live=1")
        await visitor.open()
        visitor.close()
    await asyncio.sleep(GONE)
