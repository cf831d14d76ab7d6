"""Many who open a page at the same moment: how long until each gets the first byte."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from urllib.parse import urlsplit

from measuring.table import Row, spread

PATIENCE = 120.0  # seconds; who waits longer counts as not answered
TARGETS = {30: "p95 < 50 ms", 300: "p95 < 500 ms"}
HEAD = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n"
    "Accept: text/html\r\nConnection: close\r\n\r\n"
)


async def rows(url: str, pages: list[str], crowds: list[int]) -> list[Row]:
    """A row for each page and number of visitors."""
    made = []
    for page in pages:
        for count in crowds:
            answers = await asyncio.gather(*(first_byte(url + page) for _ in range(count)))
            well = [seconds for status, seconds in answers if status == 200]
            others = Counter(status for status, _ in answers if status != 200)
            told = "".join(f"; {n} answered {status or 'nothing'}" for status, n in others.items())
            target = TARGETS.get(count, "")
            made.append(Row(f"{count} GETs of {page} at once", target, spread(well) + told))
    return made


async def first_byte(address: str) -> tuple[int, float]:
    """The status of a GET (0: none) and the seconds to its first byte; all is read."""
    parts = urlsplit(address)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    began, status, seconds = time.monotonic(), 0, PATIENCE
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(HEAD.format(path=path, host=parts.netloc).encode())
            line = await reader.readline()
            status, seconds = int(line.split()[1]), time.monotonic() - began
            while await reader.read(2**16):
                pass
            writer.close()
    except (OSError, TimeoutError, IndexError, ValueError):
        return 0, PATIENCE
    return status, seconds
